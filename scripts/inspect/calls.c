/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/calls.c - the system call in which a kernel thread is: what it waits for there.
 */
#include "waits.h"

#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>

enum form {
	FORM_NONE,			/* no argument is shown */
	FORM_FD,			/* the first argument is the descriptor */
	FORM_FDS,			/* the arguments of poll() */
	FORM_FUTEX,
	FORM_CHILD,			/* of wait4() */
	FORM_CHILDREN,			/* of waitid() */
};

/* The calls that wait, by the words for other waits where there is one. */
static const struct named {
	long number;
	const char *name;
	enum form form;
} named[] = {
	{ SYS_read, "read", FORM_FD }, { SYS_readv, "readv", FORM_FD },
	{ SYS_pread64, "pread", FORM_FD }, { SYS_preadv, "preadv", FORM_FD },
	{ SYS_preadv2, "preadv2", FORM_FD }, { SYS_write, "write", FORM_FD },
	{ SYS_writev, "writev", FORM_FD }, { SYS_pwrite64, "pwrite", FORM_FD },
	{ SYS_pwritev, "pwritev", FORM_FD }, { SYS_pwritev2, "pwritev2", FORM_FD },
	{ SYS_recvfrom, "recv", FORM_FD }, { SYS_recvmsg, "recvmsg", FORM_FD },
	{ SYS_recvmmsg, "recvmmsg", FORM_FD }, { SYS_sendto, "send", FORM_FD },
	{ SYS_sendmsg, "sendmsg", FORM_FD }, { SYS_sendmmsg, "sendmmsg", FORM_FD },
	{ SYS_sendfile, "sendfile", FORM_FD }, { SYS_accept, "accept", FORM_FD },
	{ SYS_accept4, "accept", FORM_FD }, { SYS_connect, "connect", FORM_FD },
	{ SYS_flock, "flock", FORM_FD }, { SYS_fcntl, "fcntl", FORM_FD },
	{ SYS_ioctl, "ioctl", FORM_FD }, { SYS_close, "close", FORM_FD },
	{ SYS_fsync, "fsync", FORM_FD }, { SYS_fdatasync, "fdatasync", FORM_FD },
	{ SYS_sync_file_range, "sync_file_range", FORM_FD }, { SYS_syncfs, "syncfs", FORM_FD },
	{ SYS_fallocate, "fallocate", FORM_FD }, { SYS_ftruncate, "ftruncate", FORM_FD },
	{ SYS_getdents64, "getdents64", FORM_FD }, { SYS_fstat, "fstat", FORM_FD },
	{ SYS_splice, "splice", FORM_FD }, { SYS_tee, "tee", FORM_FD },
	{ SYS_vmsplice, "vmsplice", FORM_FD }, { SYS_copy_file_range, "copy_file_range", FORM_FD },
	{ SYS_epoll_pwait, "epoll_wait", FORM_FD }, { SYS_epoll_pwait2, "epoll_wait", FORM_FD },
	{ SYS_io_uring_enter, "io_uring_enter", FORM_FD },
	{ SYS_mq_timedsend, "mq_timedsend", FORM_FD }, { SYS_mq_timedreceive, "mq_timedreceive", FORM_FD },
	{ SYS_ppoll, "poll", FORM_FDS }, { SYS_pselect6, "select", FORM_NONE },
	{ SYS_futex, "futex", FORM_FUTEX }, { SYS_futex_waitv, "futex", FORM_NONE },
	{ SYS_wait4, "child", FORM_CHILD }, { SYS_waitid, "child", FORM_CHILDREN },
	{ SYS_nanosleep, "sleep", FORM_NONE }, { SYS_clock_nanosleep, "sleep", FORM_NONE },
	{ SYS_rt_sigtimedwait, "signal", FORM_NONE }, { SYS_rt_sigsuspend, "signal", FORM_NONE },
	{ SYS_openat, "open", FORM_NONE }, { SYS_execve, "execve", FORM_NONE },
	{ SYS_clone, "clone", FORM_NONE }, { SYS_msgrcv, "msgrcv", FORM_NONE },
	{ SYS_msgsnd, "msgsnd", FORM_NONE }, { SYS_semop, "semop", FORM_NONE },
	{ SYS_semtimedop, "semtimedop", FORM_NONE }, { SYS_sync, "sync", FORM_NONE },
	{ SYS_msync, "msync", FORM_NONE }, { SYS_munmap, "munmap", FORM_NONE },
	{ SYS_mmap, "mmap", FORM_NONE }, { SYS_mprotect, "mprotect", FORM_NONE },
	{ SYS_madvise, "madvise", FORM_NONE }, { SYS_mount, "mount", FORM_NONE },
	{ SYS_io_getevents, "io_getevents", FORM_NONE }, { SYS_getrandom, "getrandom", FORM_NONE },
	{ SYS_mkdirat, "mkdir", FORM_NONE }, { SYS_unlinkat, "unlink", FORM_NONE },
	{ SYS_renameat2, "rename", FORM_NONE }, { SYS_newfstatat, "stat", FORM_NONE },
	{ SYS_statx, "statx", FORM_NONE }, { SYS_faccessat, "access", FORM_NONE },
	{ SYS_readlinkat, "readlink", FORM_NONE }, { SYS_tgkill, "tgkill", FORM_NONE },
	{ SYS_sched_yield, "sched_yield", FORM_NONE },
#ifdef SYS_open	/* older calls, which newer kinds of CPU lack */
	{ SYS_open, "open", FORM_NONE }, { SYS_poll, "poll", FORM_FDS },
	{ SYS_select, "select", FORM_NONE }, { SYS_epoll_wait, "epoll_wait", FORM_FD },
	{ SYS_pause, "signal", FORM_NONE }, { SYS_fork, "fork", FORM_NONE },
	{ SYS_vfork, "vfork", FORM_NONE }, { SYS_mkdir, "mkdir", FORM_NONE },
	{ SYS_unlink, "unlink", FORM_NONE }, { SYS_rename, "rename", FORM_NONE },
	{ SYS_stat, "stat", FORM_NONE }, { SYS_lstat, "lstat", FORM_NONE },
	{ SYS_access, "access", FORM_NONE }, { SYS_readlink, "readlink", FORM_NONE },
#endif
};

static const struct named *named_of(long number)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (named[i].number == number)
			return &named[i];
	return NULL;
}

/*
 * Tell what a thread waits for that sleeps in a futex call of libc. Two cases are known by the call's
 * operation: pthread_join() of a native thread (not a private futex; its word is that thread's tid), and
 * a mutex with priority inheritance (its word has the owner's tid).
 */
static void in_futex(const struct target *t, const struct system_call *call, struct wait_facts *w)
{
	const uint64_t word = call->arguments[0], value = call->arguments[2];
	uint32_t owner;

	w->address = word;
	if (!target_read(t, word, &owner, sizeof(owner)))
		return;
	switch (call->arguments[1] & ~(uint64_t)FUTEX_CLOCK_REALTIME) {
	case FUTEX_WAIT_BITSET:
		if (value != owner || !owner)
			return;
		w->kind = "join";
		w->address = 0;
		w->owner = (int)owner;
		break;
	case FUTEX_LOCK_PI: case FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG:
	case FUTEX_LOCK_PI2: case FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG:
		w->kind = "mutex";
		w->owner = (int)(owner & FUTEX_TID_MASK);
		break;
	default:
		return;
	}
	w->by_threads = true;
}

static bool call_of(const struct target *t, const struct fiber *f, const struct registers *stopped,
		    struct system_call *ret)
{
	if (stopped)
		return registers_call(&t->source, stopped, ret);
	return f->kernel_tid && t->source.ops->call && t->source.ops->call(&t->source, f->kernel_tid, ret);
}

bool wait_is_in_call(const struct target *t, const struct fiber *f)
{
	struct system_call call;

	return call_of(t, f, NULL, &call);
}

void wait_read_call(const struct target *t, const struct fiber *f, const struct registers *stopped,
		    struct wait_facts *w)
{
	const struct named *found;
	struct system_call call;

	/* After a stop the kernel goes on with a call by restart_syscall(), and does not tell with which. */
	if (!call_of(t, f, stopped, &call) || call.number == SYS_restart_syscall)
		return;
	found = named_of(call.number);
	w->kind = found ? found->name : "system call";
	if (!found)
		w->call = (int)call.number;
	switch (found ? found->form : FORM_NONE) {
	case FORM_FD:
		w->fd = (int)call.arguments[0];
		break;
	case FORM_FDS:
		wait_take_fds(t, call.arguments[0], (unsigned)call.arguments[1], w);
		break;
	case FORM_FUTEX:
		in_futex(t, &call, w);
		break;
	case FORM_CHILD:
		w->is_child = true;
		w->child = (int)call.arguments[0];
		break;
	case FORM_CHILDREN:
		wait_take_children((int)call.arguments[0], (int)call.arguments[1], w);
		break;
	case FORM_NONE:
		break;
	}
}
