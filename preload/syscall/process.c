/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall/process.c - system calls by number: fork, clone, vfork, exec, and
 * locking of memory.
 */
#include "preload/process/copy.h"
#include "preload/process/parent.h"
#include "preload/syscall/families.h"

#include <linux/sched.h>

/* Make a child with its own copy of the memory. The child is dormant, like a child of fork(). */
static long clone_process(long number, const long *a, unsigned long flags)
{
	struct fz_copy copy;
	long ret;

	fz_copy_begin(&copy, flags);
	ret = fz_syscall_real(number, a);
	if (ret) {
		fz_copy_end(&copy);
		fz_child_made((pid_t)ret);
		return ret;
	}
	/* relaxed: the child has only this thread. */
	atomic_store_explicit(fz_tcb_tid(fz_tcb_get()), (int)fz_sys_gettid(),
			      memory_order_relaxed);
	fz_copy_in_child(&copy);
	return 0;
}

bool fz_syscall_process(long number, const long *a, long *ret)
{
	const struct clone_args *args = (void *)a[0];
	long without_memory[6];

	switch (number) {
#ifdef SYS_fork
	case SYS_fork:
		*ret = clone_process(number, a, 0);
		return true;
#endif
#ifdef SYS_vfork
	case SYS_vfork:
		*ret = vfork();
		return true;
#endif
	case SYS_execve:
		*ret = execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
		return true;
	case SYS_execveat:
		if (!fz_real.execveat)
			return false;
		*ret = execveat((int)a[0], (const char *)a[1], (char *const *)a[2],
				(char *const *)a[3], (int)a[4]);
		return true;
	case SYS_clone:
		/* A child with a stack of its own, or a thread: left to the kernel. */
		if (a[1] || (a[0] & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
			return false;
		/*
		 * Like vfork() here: the child must not use the parent's runtime, so it gets a
		 * copy of the memory.
		 */
		memcpy(without_memory, a, sizeof(without_memory));
		without_memory[0] &= ~(long)CLONE_VM;
		*ret = clone_process(number, without_memory, (unsigned long)a[0]);
		return true;
	case SYS_clone3:
		if ((size_t)a[1] < CLONE_ARGS_SIZE_VER0 || !fz_sys_readable(args) ||
		    args->flags & CLONE_VM || args->stack)
			return false;
		*ret = clone_process(number, a, args->flags);
		return true;
	case SYS_mlockall:
		*ret = mlockall((int)a[0]);
		return true;
	case SYS_munlockall:
		*ret = munlockall();
		return true;
	default:
		return false;
	}
}
