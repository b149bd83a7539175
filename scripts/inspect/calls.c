/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/calls.c - the system call in which a kernel thread is: what it waits for there.
 */
#include "waits.h"

#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
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
 * What a mutex's word says of its owner: the kernel's tid.  A tid of no thread of the process is another
 * process's.
 */
static void owned_by(const struct fibers *all, uint32_t word, struct wait_facts *w)
{
	const int tid = (int)(word & FUTEX_TID_MASK);
	const struct fiber *owner = fibers_by_tid(all, tid);

	w->kind = "mutex";
	w->owner = owner ? owner->tid : tid;
	w->is_elsewhere = !owner;
	w->by_threads = owner && !w->has_deadline;
}

/*
 * The owner that a lock of libc's names, which other processes may have, too; NULL: none, or one that cannot be told
 * from other processes' threads, since a fiber's tid is not the kernel's and each process has the same.
 */
static const struct fiber *shared_owner(const struct fibers *all, uint64_t tid)
{
	return tid && tasks_outer(&all->tasks, (int)tid) ? fibers_by_tid(all, (int)tid) : NULL;
}

/*
 * Is this the word of a reader-writer lock that is shared with other processes, and that a known thread has for
 * writing?
 */
static bool is_rwlock(const struct target *t, const struct fibers *all, uint64_t address, enum entry key,
		      struct wait_facts *w)
{
	const uint64_t lock = address - target_value(t, key), writer = target_field_at(t, ENTRY_rwlock_writer, lock);

	if (target_field_at(t, ENTRY_rwlock_shared, lock) != 1 || !shared_owner(all, writer))
		return false;
	owned_by(all, (uint32_t)writer, w);
	w->kind = key == ENTRY_rwlock_read_key ? "rwlock to read" : "rwlock to write";
	w->address = lock;
	return true;
}

/*
 * Is this the word of one of libc's locks, for which libc waits in the kernel, and is its owner known?  Any other word
 * can have such a value; but a lock names its owner, and says what it is, at other places.  Each owner of a robust
 * mutex writes another word, so the word need not be the one that the thread expected when it fell asleep.
 */
static bool is_robust_mutex(const struct target *t, const struct fibers *all, uint64_t address, uint32_t word,
			    uint32_t expected, struct wait_facts *w)
{
	const uint64_t kind = target_field_at(t, ENTRY_mutex_kind, address);
	const uint64_t owner = target_field_at(t, ENTRY_mutex_owner, address);

	if (!(word & expected & FUTEX_WAITERS) || !(kind & target_value(t, ENTRY_mutex_robust)))
		return false;
	if (!owner || owner != (word & FUTEX_TID_MASK))
		return false;
	owned_by(all, word, w);
	return true;
}

static bool is_shared_mutex(const struct target *t, const struct fibers *all, uint64_t address, uint32_t word,
			    struct wait_facts *w)
{
	enum { AWAITED = 2 };
	const uint64_t kind = target_field_at(t, ENTRY_mutex_kind, address);
	const uint64_t owner = target_field_at(t, ENTRY_mutex_owner, address);

	if (word != AWAITED || !(kind & target_value(t, ENTRY_mutex_shared)))
		return false;
	if ((kind & target_value(t, ENTRY_mutex_robust)) || !shared_owner(all, owner))
		return false;
	owned_by(all, (uint32_t)owner, w);
	return true;
}

static bool is_shared_rwlock(const struct target *t, const struct fibers *all, uint64_t address, uint32_t word,
			     struct wait_facts *w)
{
	enum { AWAITED = 3 };

	return word == AWAITED && (is_rwlock(t, all, address, ENTRY_rwlock_read_key, w) ||
				   is_rwlock(t, all, address, ENTRY_rwlock_write_key, w));
}

/*
 * The native thread in whose record of libc's this word is the tid, which the kernel clears at the thread's end; or
 * NULL.
 */
static const struct fiber *joined(const struct target *t, const struct fibers *all, uint64_t address, uint32_t word)
{
	const uint64_t ahead = target_root(t, ENTRY_layout_record) - target_root(t, ENTRY_layout_tid);
	const struct fiber *f = fibers_by_tid(all, (int)word);

	return f && f->state == STATE_NATIVE && f->address && f->address - ahead == address ? f : NULL;
}

/*
 * Tell what a thread waits for that sleeps in a futex call.  The thread that can end the wait is known if it is libc's
 * call for pthread_join() of a native thread, or for one of libc's locks.  Any other call is a futex.
 */
static void in_futex(const struct target *t, const struct fibers *all, const struct fiber *f,
		     const struct system_call *call, struct wait_facts *w)
{
	const uint64_t address = call->arguments[0];
	const uint32_t expected = (uint32_t)call->arguments[2];
	const struct fiber *other;
	uint32_t word;

	w->address = address;
	w->has_deadline = call->arguments[3] != 0;
	if (!target_read(t, address, &word, sizeof(word)))
		return;
	switch (call->arguments[1] & ~(uint64_t)FUTEX_CLOCK_REALTIME) {
	case FUTEX_WAIT: case FUTEX_WAIT_BITSET:
		if (is_robust_mutex(t, all, address, word, expected, w) || expected != word || !word)
			return;
		if (is_shared_mutex(t, all, address, word, w) || is_shared_rwlock(t, all, address, word, w))
			return;
		other = joined(t, all, address, word);
		if (other) {
			w->kind = "join";
			w->address = 0;
			w->owner = other->tid;
			w->by_threads = !w->has_deadline;
		}
		break;
	case FUTEX_LOCK_PI: case FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG:
	case FUTEX_LOCK_PI2: case FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG:
		/* The kernel gives the mutex to a thread that has not left the call yet, and may stop there. */
		other = fibers_by_tid(all, (int)(word & FUTEX_TID_MASK));
		if (!other || other->tid != f->tid)
			owned_by(all, word, w);
		break;
	}
}

static bool call_of(const struct target *t, const struct fiber *f, const struct registers *stopped,
		    struct system_call *ret)
{
	if (stopped)
		return registers_call(&t->source, stopped, ret);
	return f->kernel_tid && t->source.ops->call && t->source.ops->call(&t->source, f->kernel_tid, ret);
}

/*
 * After a stop, and after a signal that nobody handles, the kernel goes on with a call by restart_syscall(), and does
 * not tell with which.  The arguments are those of the call, so its kernel function is enough to know a futex().
 */
static bool is_restarted(const struct target *t, const struct fiber *f, struct system_call *call)
{
	if (call->number != SYS_restart_syscall)
		return false;
	if (target_is_core(t) || strncmp(kernel_function(t->source.pid, f->kernel_tid), "futex_", 6) != 0)
		return true;
	call->number = SYS_futex;
	return false;
}

bool wait_is_in_call(const struct target *t, const struct fiber *f)
{
	struct system_call call;

	return call_of(t, f, NULL, &call);
}

void wait_read_call(const struct target *t, const struct fibers *all, const struct fiber *f,
		    const struct registers *stopped, struct wait_facts *w)
{
	const struct named *found;
	struct system_call call;

	/* Before the call is read: if the number is the same later on, the thread is in this call still. */
	if (!target_is_core(t))
		w->times_run = task_usage(t->source.pid, f->kernel_tid).switches;
	if (!call_of(t, f, stopped, &call) || is_restarted(t, f, &call))
		return;
	found = named_of(call.number);
	w->is_in_call = true;
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
		in_futex(t, all, f, &call, w);
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
