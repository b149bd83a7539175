/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall.c - system calls by number: syscall, tgkill.
 *
 *	has a name here		the body of that name, but it is no cancellation point,
 *				and what the kernel does differently from libc is done
 *	futex			runtime/sync/futex.h
 *	the caller's own	answered for the fiber: gettid, its signal mask
 *	per kernel thread	the fiber is wired first: it keeps what it asked for
 *	may block for long	the real call, announced
 *	all others		the real call
 *
 * The caller may be anybody, before our constructor as well: allocators call this
 * to avoid themselves.
 */
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/signal/timer.h"
#include "preload/thread/kernel_state.h"
#include "preload/thread/schedule.h"
#include "preload/time.h"
#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/futex.h"

/* Numbers that only newer headers have are the same for all CPUs. */
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#endif

enum {
	KERNEL_SIGSET_SIZE = 8,
	IOPRIO_WHO_THREAD = 1,		/* the kernel calls it IOPRIO_WHO_PROCESS */
};

static bool is_running(void)
{
	/* acquire: pairs with fz_sched_start(). */
	return atomic_load_explicit(&fz_sched.started, memory_order_acquire);
}

static long real(long number, const long *a)
{
	return fz_real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- descriptors: any thread -------------------------------------------- */

static bool on_descriptors(long number, const long *a, long *ret)
{
	switch (number) {
	case SYS_close: *ret = close((int)a[0]); return true;
	case SYS_close_range:
		if (!fz_real.close_range)
			return false;
		*ret = close_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
		return true;
	case SYS_dup: *ret = dup((int)a[0]); return true;
#ifdef SYS_dup2
	case SYS_dup2: *ret = dup2((int)a[0], (int)a[1]); return true;
#endif
	case SYS_dup3: *ret = dup3((int)a[0], (int)a[1], (int)a[2]); return true;
	case SYS_fcntl: *ret = fcntl((int)a[0], (int)a[1], a[2]); return true;
	case SYS_ioctl: *ret = ioctl((int)a[0], (unsigned long)a[1], a[2]); return true;
#ifdef SYS_pipe
	case SYS_pipe: *ret = pipe((int *)a[0]); return true;
#endif
	case SYS_pipe2: *ret = pipe2((int *)a[0], (int)a[1]); return true;
	case SYS_socket: *ret = socket((int)a[0], (int)a[1], (int)a[2]); return true;
	case SYS_socketpair:
		*ret = socketpair((int)a[0], (int)a[1], (int)a[2], (int *)a[3]);
		return true;
	case SYS_setsockopt:
		*ret = setsockopt((int)a[0], (int)a[1], (int)a[2], (void *)a[3],
				  (socklen_t)a[4]);
		return true;
	default:
		return false;
	}
}

/* ---- processes: any thread ---------------------------------------------- */

/* A child without the parent's memory is dormant, like fork's. */
static long clone_process(long number, const long *a)
{
	uint64_t all = ~(uint64_t)0, old;
	long ret;

	fz_fdtab_share_all();
	fz_carrier_makes_process(fz_self());
	fz_sys_sigmask(SIG_SETMASK, &all, &old);
	ret = real(number, a);
	if (ret == 0) {
		fz_after_fork_in_child();
		/* relaxed: the only thread. */
		atomic_store_explicit(fz_tcb_tid(fz_tcb_get()), (int)fz_sys_gettid(),
				      memory_order_relaxed);
	}
	fz_sys_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static bool on_processes(long number, const long *a, long *ret)
{
	const struct clone_args *args = (void *)a[0];
	long without_memory[6];

	switch (number) {
#ifdef SYS_fork
	case SYS_fork:
		*ret = clone_process(number, a);
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
		/* On a stack of its own, the child is none of our business. */
		if (a[1] || (a[0] & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
			return false;
		/* As vfork: it may not use the parent's runtime, so not its memory. */
		memcpy(without_memory, a, sizeof(without_memory));
		without_memory[0] &= ~(long)CLONE_VM;
		*ret = clone_process(number, without_memory);
		return true;
	case SYS_clone3:
		if ((size_t)a[1] < CLONE_ARGS_SIZE_VER0 || !fz_sys_readable(args) ||
		    args->flags & CLONE_VM || args->stack)
			return false;
		*ret = clone_process(number, a);
		return true;
	default:
		return false;
	}
}

/* ---- threads: any thread ------------------------------------------------ */

static int signal_thread(int pid, int tid, int sig, bool *ret_known)
{
	struct fz_fiber *fiber;

	*ret_known = false;
	if (!is_running() ||
	    pid != (int)fz_sys_getpid() || tid <= 0)
		return 0;
	fiber = fz_fiber_by_tid(tid);
	*ret_known = fiber != NULL;
	return fiber ? (int)fz_leave(-pthread_kill((pthread_t)fiber->tcb, sig)) : 0;
}

FZ_EXPORT int tgkill(pid_t pid, pid_t tid, int sig)
{
	bool known;
	int ret;

	fz_enter(FZ_SYM_tgkill);
	ret = signal_thread(pid, tid, sig, &known);
	return known ? ret : fz_real.tgkill(pid, tid, sig);
}

static long create_timer(long number, const long *a)
{
	long changed[6];
	struct sigevent event;

	if (!is_running() || (a[1] && !fz_sys_readable((void *)a[1])))
		return real(number, a);
	memcpy(changed, a, sizeof(changed));
	if (a[1]) {
		memcpy(&event, (void *)a[1], sizeof(event));
		changed[1] = (long)&event;
	}
	changed[0] = fz_timer_prepare((clockid_t)a[0], a[1] ? &event : NULL);
	return real(number, changed);
}

static long io_priority(long number, const long *a)
{
	long changed[6];
	pid_t tid;

	memcpy(changed, a, sizeof(changed));
	if (number == SYS_ioprio_get)
		tid = fz_schedule_tid((pid_t)a[1]);
	else if (!fz_schedule_change((pid_t)a[1], &tid))
		return 0;
	changed[1] = tid;
	return real(number, changed);
}

static bool on_threads(struct fz_fiber *self, long number, const long *a, long *ret)
{
	long others[6];
	bool known;

	switch (number) {
	case SYS_futex:
		*ret = fz_leave(fz_futex(self, (uint32_t *)a[0], (int)a[1], (uint32_t)a[2], a[3],
					 (uint32_t *)a[4], (uint32_t)a[5]));
		return true;
	case SYS_gettid:
		*ret = gettid();
		return true;
	case SYS_tgkill:
		*ret = signal_thread((int)a[0], (int)a[1], (int)a[2], &known);
		return known;
	case SYS_tkill:
		*ret = signal_thread((int)fz_sys_getpid(), (int)a[0], (int)a[1], &known);
		return known;
	case SYS_timer_create:
		*ret = create_timer(number, a);
		return true;
	case SYS_timer_settime:
	case SYS_timer_delete:
	case SYS_timer_getoverrun:
	case SYS_setitimer:
#ifdef SYS_alarm
	case SYS_alarm:
#endif
		return fz_timer_by_number(number, a, ret);
	case SYS_sched_setaffinity:
		*ret = sched_setaffinity((pid_t)a[0], (size_t)a[1], (const cpu_set_t *)a[2]);
		return true;
	case SYS_sched_setscheduler:
		*ret = sched_setscheduler((pid_t)a[0], (int)a[1], (const struct sched_param *)a[2]);
		return true;
	case SYS_sched_setparam:
		*ret = sched_setparam((pid_t)a[0], (const struct sched_param *)a[1]);
		return true;
	case SYS_sched_setattr:
		*ret = sched_setattr((pid_t)a[0], (struct sched_attr *)a[1], (unsigned)a[2]);
		return true;
	case SYS_sched_getattr:
		*ret = sched_getattr((pid_t)a[0], (struct sched_attr *)a[1], (unsigned)a[2],
				     (unsigned)a[3]);
		return true;
	case SYS_setpriority:
		*ret = setpriority((__priority_which_t)a[0], (id_t)a[1], (int)a[2]);
		return true;
	/* Of these libc's results are others. */
	case SYS_sched_getaffinity:
	case SYS_sched_getscheduler:
	case SYS_sched_getparam:
		memcpy(others, a, sizeof(others));
		others[0] = fz_schedule_tid((pid_t)a[0]);
		*ret = real(number, others);
		return true;
	case SYS_ioprio_get:
	case SYS_ioprio_set:
		if (a[0] != IOPRIO_WHO_THREAD)
			return false;
		*ret = io_priority(number, a);
		return true;
	case SYS_clock_gettime:
		*ret = clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
		return true;
	case SYS_getrusage:
		*ret = getrusage((__rusage_who_t)a[0], (struct rusage *)a[1]);
		return true;
	case SYS_rseq:
		/* Per-CPU caches in a thread's memory would not follow a fiber. */
		if (!self && (fz_stays_native() || is_running()))
			return false;
		*ret = fz_leave(-ENOSYS);
		return true;
	default:
		return false;
	}
}

/* ---- what waits: fibers ------------------------------------------------- */

/* Unlike libc, the kernel tells what is left of a timeout. */
static void store_remaining(struct timespec *timeout, fz_nsec begin, fz_nsec span)
{
	fz_nsec spent = fz_now() - begin;
	fz_nsec left = spent < span ? span - spent : 0;

	timeout->tv_sec = (time_t)(left / FZ_SEC);
	timeout->tv_nsec = (long)(left % FZ_SEC);
}

static long kernel_ppoll(const long *a)
{
	struct timespec *timeout = (void *)a[2];
	fz_nsec begin = fz_now(), span;
	int ret;

	if ((a[3] && a[4] != KERNEL_SIGSET_SIZE) ||
	    (timeout && !fz_timespec_readable(timeout)))
		return real(SYS_ppoll, a);
	span = timeout ? fz_timespec_nsec(timeout) : 0;
	ret = ppoll((struct pollfd *)a[0], (nfds_t)a[1], timeout, (void *)a[3]);
	if (span && (ret >= 0 || errno != EINVAL))
		store_remaining(timeout, begin, span);
	return ret;
}

static long kernel_pselect(struct fz_fiber *self, const long *a)
{
	const struct mask {
		const sigset_t *set;
		size_t size;
	} *mask = (void *)a[5];
	struct timespec *timeout = (void *)a[4];
	fz_nsec begin = fz_now(), span;
	int ret;

	if ((timeout && !fz_timespec_readable(timeout)) ||
	    (mask && (!fz_sys_readable(&mask->set) || !fz_sys_readable(&mask->size) ||
		      (mask->set && mask->size != KERNEL_SIGSET_SIZE)))) {
		fz_announce(self);
		return real(SYS_pselect6, a);
	}
	span = timeout ? fz_timespec_nsec(timeout) : 0;
	ret = pselect((int)a[0], (fd_set *)a[1], (fd_set *)a[2], (fd_set *)a[3], timeout,
		      mask ? mask->set : NULL);
	if (span && (ret >= 0 || errno != EINVAL))
		store_remaining(timeout, begin, span);
	return ret;
}

static bool on_io(struct fz_fiber *self, long number, const long *a, long *ret)
{
	int fd = (int)a[0];
	void *buf = (void *)a[1];
	size_t n = (size_t)a[2];
	const struct iovec *iov = (void *)a[1];
	int count = (int)a[2];

	switch (number) {
	case SYS_read: *ret = read(fd, buf, n); return true;
	case SYS_write: *ret = write(fd, buf, n); return true;
	case SYS_readv: *ret = readv(fd, iov, count); return true;
	case SYS_writev: *ret = writev(fd, iov, count); return true;
	case SYS_pread64: *ret = pread(fd, buf, n, a[3]); return true;
	case SYS_pwrite64: *ret = pwrite(fd, buf, n, a[3]); return true;
	/* Offsets come as two words, of which the first has it all. */
	case SYS_preadv: *ret = preadv(fd, iov, count, a[3]); return true;
	case SYS_pwritev: *ret = pwritev(fd, iov, count, a[3]); return true;
	case SYS_preadv2: *ret = preadv2(fd, iov, count, a[3], (int)a[5]); return true;
	case SYS_pwritev2: *ret = pwritev2(fd, iov, count, a[3], (int)a[5]); return true;
	case SYS_recvfrom:
		*ret = recvfrom(fd, buf, n, (int)a[3], (struct sockaddr *)a[4],
				(socklen_t *)a[5]);
		return true;
	case SYS_sendto:
		*ret = sendto(fd, buf, n, (int)a[3], (const struct sockaddr *)a[4],
			      (socklen_t)a[5]);
		return true;
	case SYS_recvmsg: *ret = recvmsg(fd, buf, (int)a[2]); return true;
	case SYS_sendmsg: *ret = sendmsg(fd, buf, (int)a[2]); return true;
	case SYS_recvmmsg:
		*ret = recvmmsg(fd, buf, (unsigned)a[2], (int)a[3], (struct timespec *)a[4]);
		return true;
	case SYS_sendmmsg: *ret = sendmmsg(fd, buf, (unsigned)a[2], (int)a[3]); return true;
	case SYS_accept: *ret = accept(fd, (struct sockaddr *)buf, (socklen_t *)a[2]); return true;
	case SYS_accept4:
		*ret = accept4(fd, (struct sockaddr *)buf, (socklen_t *)a[2], (int)a[3]);
		return true;
	case SYS_connect:
		*ret = connect(fd, (const struct sockaddr *)buf, (socklen_t)a[2]);
		return true;
	case SYS_flock: *ret = flock(fd, (int)a[1]); return true;
#ifdef SYS_poll
	case SYS_poll:
		*ret = poll((struct pollfd *)a[0], (nfds_t)a[1], (int)a[2]);
		return true;
#endif
	case SYS_ppoll: *ret = kernel_ppoll(a); return true;
#ifdef SYS_select
	case SYS_select:
		*ret = select((int)a[0], (fd_set *)a[1], (fd_set *)a[2], (fd_set *)a[3],
			      (struct timeval *)a[4]);
		return true;
#endif
	case SYS_pselect6: *ret = kernel_pselect(self, a); return true;
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
		*ret = epoll_wait(fd, (struct epoll_event *)buf, (int)a[2], (int)a[3]);
		return true;
#endif
	case SYS_epoll_pwait:
		if (a[4] && a[5] != KERNEL_SIGSET_SIZE)
			return false;
		*ret = epoll_pwait(fd, (struct epoll_event *)buf, (int)a[2], (int)a[3],
				   (const sigset_t *)a[4]);
		return true;
	case SYS_epoll_pwait2:
		if (!fz_real.epoll_pwait2 || (a[4] && a[5] != KERNEL_SIGSET_SIZE))
			return false;
		*ret = epoll_pwait2(fd, (struct epoll_event *)buf, (int)a[2],
				    (const struct timespec *)a[3], (const sigset_t *)a[4]);
		return true;
	default:
		return false;
	}
}

static bool on_time(long number, const long *a, long *ret)
{
	switch (number) {
	case SYS_nanosleep:
		*ret = nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
		return true;
	case SYS_clock_nanosleep:
		*ret = fz_leave(-clock_nanosleep((clockid_t)a[0], (int)a[1],
						 (const struct timespec *)a[2],
						 (struct timespec *)a[3]));
		return true;
	case SYS_sched_yield: *ret = sched_yield(); return true;
#ifdef SYS_pause
	case SYS_pause: *ret = pause(); return true;
#endif
	case SYS_wait4:
		*ret = wait4((pid_t)a[0], (int *)a[1], (int)a[2], (struct rusage *)a[3]);
		return true;
	case SYS_waitid:
		/* The kernel's has one argument more. */
		if (a[4])
			return false;
		*ret = waitid((idtype_t)a[0], (id_t)a[1], (siginfo_t *)a[2], (int)a[3]);
		return true;
	default:
		return false;
	}
}

/* ---- signals: fibers ---------------------------------------------------- */

/* The kernel's layout, with one word of a mask. */
struct kernel_sigaction {
	__sighandler_t handler;
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static long kernel_sigaction(int sig, const struct kernel_sigaction *sa,
			     struct kernel_sigaction *ret_old)
{
	struct sigaction new = { .sa_flags = 0 }, old;

	if (sa) {
		new.sa_handler = sa->handler;
		new.sa_flags = (int)sa->flags;
		memcpy(&new.sa_mask, &sa->mask, sizeof(sa->mask));
	}
	if (sigaction(sig, sa ? &new : NULL, ret_old ? &old : NULL) < 0)
		return -1;
	if (ret_old) {
		*ret_old = (struct kernel_sigaction){
			.handler = old.sa_handler,
			.flags = (unsigned long)(unsigned)old.sa_flags,
			.restorer = old.sa_restorer,
		};
		memcpy(&ret_old->mask, &old.sa_mask, sizeof(ret_old->mask));
	}
	return 0;
}

static bool readable_or_null(long address)
{
	return !address || fz_sys_readable((void *)address);
}

static long kernel_sigmask(struct fz_fiber *self, const long *a)
{
	uint64_t old, *ret_old = (void *)a[2];
	int err = fz_signal_set_mask(self, (int)a[0], (const uint64_t *)a[1], &old);

	if (!err && ret_old)
		*ret_old = old;
	return fz_leave(err);
}

/* Odd sizes and addresses are the kernel's to refuse. */
static bool on_signals(struct fz_fiber *self, long number, const long *a, long *ret)
{
	switch (number) {
	case SYS_rt_sigaction:
		if (a[3] != KERNEL_SIGSET_SIZE || a[0] < 1 || a[0] > FZ_SIGNALS ||
		    FZ_SIGNALS_OF_LIBC & fz_signal_bit((int)a[0]) ||
		    !readable_or_null(a[1]) || !readable_or_null(a[2]))
			return false;
		*ret = kernel_sigaction((int)a[0], (void *)a[1], (void *)a[2]);
		return true;
	case SYS_rt_sigprocmask:
		if (a[3] != KERNEL_SIGSET_SIZE || !readable_or_null(a[1]) ||
		    !readable_or_null(a[2]))
			return false;
		*ret = kernel_sigmask(self, a);
		return true;
	case SYS_rt_sigpending:
		if (a[1] != KERNEL_SIGSET_SIZE)
			return false;
		*ret = sigpending((sigset_t *)a[0]);
		return true;
	case SYS_rt_sigsuspend:
		if (a[1] != KERNEL_SIGSET_SIZE || !fz_sys_readable((void *)a[0]))
			return false;
		*ret = sigsuspend((const sigset_t *)a[0]);
		return true;
	case SYS_rt_sigtimedwait:
		if (a[3] != KERNEL_SIGSET_SIZE || !fz_sys_readable((void *)a[0]))
			return false;
		*ret = sigtimedwait((const sigset_t *)a[0], (siginfo_t *)a[1],
				    (const struct timespec *)a[2]);
		return true;
	case SYS_sigaltstack:
		*ret = sigaltstack((const stack_t *)a[0], (stack_t *)a[1]);
		return true;
	default:
		return false;
	}
}

/* ---- the rest: fibers --------------------------------------------------- */

/* Calls without a body of ours that may wait for something for long. */
static bool may_block(long number)
{
	switch (number) {
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_mq_timedsend:
	case SYS_mq_timedreceive:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
#ifdef SYS_open
	case SYS_open:
#endif
	case SYS_openat:
	case SYS_openat2:
	case SYS_splice:
	case SYS_tee:
	case SYS_vmsplice:
	case SYS_sendfile:
	case SYS_copy_file_range:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync_file_range:
	case SYS_sync:
	case SYS_syncfs:
	case SYS_msync:
	case SYS_futex_wait:
#ifdef SYS_futex_waitv
	case SYS_futex_waitv:
#endif
	case SYS_pselect6:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_waitid:
	case SYS_rt_sigtimedwait:
		return true;
	default:
		return false;
	}
}

static bool waits(struct fz_fiber *self, long number, const long *a, long *ret)
{
	bool disable = !fz_cancel_type_is_asynchronous(self), done;
	int state = PTHREAD_CANCEL_ENABLE;

	/* Whatever name it has, by number it is no cancellation point. */
	if (disable)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	done = on_io(self, number, a, ret) || on_time(number, a, ret) ||
	       on_signals(self, number, a, ret);
	if (disable)
		pthread_setcancelstate(state, NULL);
	return done;
}

FZ_EXPORT long syscall(long number, ...)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_syscall);
	long a[6], ret;
	va_list list;

	/* Six words, whatever their number and types: as in libc. */
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (on_threads(self, number, a, &ret) || on_descriptors(number, a, &ret) ||
	    on_processes(number, a, &ret))
		return ret;
	if (number == SYS_prctl)
		return prctl((int)a[0], a[1], a[2], a[3], a[4]);
	if (fz_syscall_is_of_thread(number)) {
		fz_wire_for_state();
		return real(number, a);
	}
	if (!self)
		return real(number, a);
	if (waits(self, number, a, &ret))
		return ret;
	if (number == SYS_exit)
		fz_fiber_vanish(self, (int)a[0]);
	if (may_block(number))
		fz_announce(self);
	return real(number, a);
}
