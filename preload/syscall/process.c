/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall/process.c - system calls by number: fork, clone, vfork, exec, and
 * locking of memory.
 */
#include "preload/process/copy.h"
#include "preload/process/exec_watch.h"
#include "preload/syscall/families.h"
#include "runtime/fiber/parent.h"

#include <linux/sched.h>

/*
 * Make a child with its own copy of the memory. The child is dormant, like a child of fork().
 * argument: points to the flags among the arguments; NULL if there are none, or if they cannot be
 * changed.
 */
static long clone_process(long number, const long *a, unsigned long flags, uint64_t *argument)
{
	struct fz_fiber *self = fz_self();
	struct fz_exec_watch *watch = NULL;
	struct fz_copy copy;
	long ret;

	if (flags & CLONE_VFORK)
		watch = fz_exec_watch_begin(self, argument);
	fz_copy_begin(&copy, watch ? flags & ~(unsigned long)CLONE_VFORK : flags);
	ret = fz_syscall_real(number, a);
	if (ret) {
		fz_child_made((pid_t)ret);
		fz_copy_end(&copy);
		fz_exec_watch_end(watch, self, (pid_t)ret);
		return ret;
	}
	/* relaxed: the child has only this thread.  Of an unknown libc the place of the tid is unknown, too. */
	if (fz_layout.tid)
		atomic_store_explicit(fz_tcb_tid(fz_tcb_get()), (int)fz_sys_gettid(),
				      memory_order_relaxed);
	fz_copy_in_child(&copy);
	fz_exec_watch_in_child(watch);
	return 0;
}

bool fz_syscall_process(long number, const long *a, long *ret)
{
	const struct clone_args *args = (void *)a[0];
	struct clone_args changed;
	long without_memory[6], changed_call[6];

	switch (number) {
#ifdef SYS_fork
	case SYS_fork:
		*ret = clone_process(number, a, 0, NULL);
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
		 * The child must not use the parent's runtime, so it gets a copy of the memory, as
		 * with vfork().
		 */
		memcpy(without_memory, a, sizeof(without_memory));
		without_memory[0] &= ~(long)CLONE_VM;
		*ret = clone_process(number, without_memory, (unsigned long)without_memory[0],
				     (uint64_t *)(void *)without_memory);
		return true;
	case SYS_clone3:
		if ((size_t)a[1] < CLONE_ARGS_SIZE_VER0 || !fz_sys_readable(args) ||
		    args->flags & CLONE_VM || args->stack)
			return false;
		/* A larger structure has fields that are unknown here: it is passed on unchanged. */
		if ((size_t)a[1] > sizeof(changed)) {
			*ret = clone_process(number, a, args->flags, NULL);
			return true;
		}
		memcpy(&changed, args, (size_t)a[1]);
		memcpy(changed_call, a, sizeof(changed_call));
		changed_call[0] = (long)&changed;
		*ret = clone_process(number, changed_call, changed.flags, (uint64_t *)(void *)&changed.flags);
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
