/* SPDX-License-Identifier: MIT */
/*
 * preload/signal/kill.c - signals that the program sends to itself and its threads.
 *
 * For kill() and sigqueue() to the own process the kernel would choose one of the kernel threads, so
 * the library chooses a fiber. If the library chooses the caller, the handler has run on return. A
 * signal that no fiber accepts, or that the program does not handle, is sent by the kernel. A signal
 * for a process group is, too; the caller then waits until the signal has arrived.
 */
#include "preload/signal/kill.h"

#include "preload/gate.h"
#include "preload/init.h"
#include "runtime/signal/signal.h"

static bool valid(int sig)
{
	return sig >= 1 && sig <= FZ_SIGNALS;
}

static int code_of(const struct fz_siginfo *info)
{
	return ((const struct fz_siginfo_head *)info)->code;
}

/* Returns 0 or -errno. */
static int send_to_self(struct fz_fiber *self, int sig, const struct fz_siginfo *info)
{
	/* A blocked signal must not stay pending for a carrier, which other fibers use as well. */
	if (self->mask & fz_signal_bit(sig))
		return fz_signal_send(self, sig, info, code_of(info) == SI_QUEUE);
	return fz_signal_send_here(self, sig, info);
}

FZ_EXPORT int raise(int sig)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_raise);
	struct fz_siginfo info;

	if (!self || !valid(sig) || FZ_SIGNALS_OF_LIBC & fz_signal_bit(sig))
		return fz_real.raise(sig);
	info = fz_signal_info(sig, SI_TKILL, 0);
	return (int)fz_leave(send_to_self(self, sig, &info));
}
FZ_EXPORT_ALIAS(gsignal, raise);

int fz_kill_own_process(struct fz_fiber *self, int sig, const struct fz_siginfo *info)
{
	struct fz_sending sending;
	int err;

	if (fz_signal_is_mine(self, sig))
		return fz_signal_send_here(self, sig, info);
	if (fz_signal_send_to_process(sig, info))
		return 0;
	sending = fz_signal_sending(self, sig);
	/* The kernel refuses SI_USER in rt_sigqueueinfo() by a thread that is not the process's first. */
	if (code_of(info) == SI_USER)
		err = (int)fz_syscall2(__NR_kill, fz_sys_getpid(), sig);
	else
		err = (int)fz_syscall3(__NR_rt_sigqueueinfo, fz_sys_getpid(), sig, (long)info);
	if (!err)
		fz_signal_sent(self, &sending);
	return err;
}

bool fz_kill_is_ours(const struct fz_fiber *self, int sig)
{
	return self && valid(sig) && !(FZ_SIGNALS_OF_LIBC & fz_signal_bit(sig));
}

static bool is_own_group(pid_t id)
{
	return id == 0 || (id < -1 && -id == getpgrp());
}

/*
 * Translate a fiber's virtual tid to the process id: kill() accepts the id of a thread in place of its
 * process's, but the kernel does not know virtual tids.
 */
static pid_t process_of(pid_t id)
{
	const pid_t largest = 1 << 22;	/* the kernel's largest id: PID_MAX_LIMIT */

	/* relaxed: only this thread and its handlers write it. */
	if (FZ_LIKELY(id <= largest) ||
	    atomic_load_explicit(&fz_self()->in_runtime, memory_order_relaxed))
		return id;
	return fz_fiber_by_tid(id) ? (pid_t)fz_sys_getpid() : id;
}

FZ_EXPORT int kill(pid_t id, int sig)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_kill);
	pid_t pid = process_of(id);
	struct fz_sending sending;
	struct fz_siginfo info;
	int ret;

	if (fz_kill_is_ours(self, sig) && pid == (pid_t)fz_sys_getpid()) {
		info = fz_signal_info(sig, SI_USER, 0);
		return (int)fz_leave(fz_kill_own_process(self, sig, &info));
	}
	if (!fz_kill_is_ours(self, sig) || !is_own_group(pid))
		return fz_real.kill(pid, sig);
	sending = fz_signal_sending(self, sig);
	ret = fz_real.kill(pid, sig);
	if (ret == 0)
		fz_signal_sent(self, &sending);
	return ret;
}

FZ_EXPORT int killpg(pid_t group, int sig)
{
	fz_enter(FZ_SYM_killpg);
	return group < 0 ? (int)fz_leave(-EINVAL) : kill(-group, sig);
}

FZ_EXPORT int sigqueue(pid_t id, int sig, const union sigval value)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigqueue);
	pid_t pid = process_of(id);
	struct fz_siginfo info;

	if (!fz_kill_is_ours(self, sig) || pid != (pid_t)fz_sys_getpid())
		return fz_real.sigqueue(pid, sig, value);
	info = fz_signal_info(sig, SI_QUEUE, (uintptr_t)value.sival_ptr);
	return (int)fz_leave(fz_kill_own_process(self, sig, &info));
}

/* Returns 0 or -errno. */
static int queue_to_kernel_thread(int tid, int sig, struct fz_siginfo info)
{
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&info;

	if (head->code == SI_QUEUE)
		head->error = FZ_SIGNAL_DIRECTED;
	return (int)fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), tid, sig, (long)&info);
}

static int send_to_kernel_thread(struct fz_fiber *target, int sig, const struct fz_siginfo *info)
{
	int pid = (int)fz_sys_getpid(), tid = fz_fiber_kernel_tid(target);
	long err;

	/* The kernel lets a thread send SI_TKILL to another thread only by tgkill(). */
	if (code_of(info) == SI_TKILL)
		err = fz_syscall3(__NR_tgkill, pid, tid, sig);
	else
		err = queue_to_kernel_thread(tid, sig, *info);
	/* ESRCH, or tid 0: the thread has ended meanwhile. */
	return err == -ESRCH || tid == 0 ? 0 : (int)err;
}

/* Returns 0 or -errno. */
static int send_to_thread(struct fz_fiber *target, int sig, const struct fz_siginfo *info)
{
	struct fz_fiber *self = fz_self();
	uint32_t life;

	if (sig < 0 || sig > FZ_SIGNALS || (sig && FZ_SIGNALS_OF_LIBC & fz_signal_bit(sig)))
		return -EINVAL;
	/* acquire: pairs with the release where the fiber ends or is freed. */
	life = atomic_load_explicit(&target->thread.life, memory_order_acquire);
	if (life & FZ_LIFE_FREE)
		return -ESRCH;
	if (sig == 0 || life & FZ_LIFE_ENDED)
		return 0;
	/* A signal to the caller is handled on return. */
	if (target == self && self->kind == FZ_KIND_FIBER)
		return send_to_self(self, sig, info);
	if (target->kind == FZ_KIND_WIRED)
		return send_to_kernel_thread(target, sig, info);
	return fz_signal_send(target, sig, info, code_of(info) == SI_QUEUE);
}

FZ_EXPORT int pthread_kill(pthread_t thread, int sig)
{
	struct fz_fiber *target = fz_fiber_of_handle(thread);
	struct fz_siginfo info;

	fz_enter(FZ_SYM_pthread_kill);
	if (!fz_is_fiber(target))
		return fz_real.pthread_kill(thread, sig);
	info = fz_signal_info(sig, SI_TKILL, 0);
	return fz_leave_pthread(send_to_thread(target, sig, &info));
}

bool fz_kill_by_tid(int pid, int tid, int sig, const struct fz_siginfo *queued, long *ret)
{
	struct fz_fiber *fiber;
	struct fz_siginfo info;

	if (!fz_runtime_runs() || pid != (int)fz_sys_getpid() || tid <= 0)
		return false;
	fiber = fz_fiber_by_tid(tid);
	if (!fiber || (queued && !fz_is_fiber(fiber)))
		return false;
	info = queued ? *queued : fz_signal_info(sig, SI_TKILL, 0);
	*ret = fz_leave(fz_is_fiber(fiber) ? send_to_thread(fiber, sig, &info) :
					     -fz_real.pthread_kill((pthread_t)fiber->tcb, sig));
	return true;
}

FZ_EXPORT int tgkill(pid_t pid, pid_t tid, int sig)
{
	long ret;

	fz_enter(FZ_SYM_tgkill);
	return fz_kill_by_tid(pid, tid, sig, NULL, &ret) ? (int)ret : fz_real.tgkill(pid, tid, sig);
}

static int queue_to_native_thread(struct fz_fiber *target, pthread_t thread, int sig,
				  const union sigval value)
{
	/* relaxed: as libc reads its tid. */
	int tid = target ? atomic_load_explicit(fz_tcb_tid((uintptr_t)thread),
						memory_order_relaxed) : 0;

	if (!valid(sig) || FZ_SIGNALS_OF_LIBC & fz_signal_bit(sig) || tid <= 0 ||
	    !fz_runtime_runs())
		return fz_real.pthread_sigqueue(thread, sig, value);
	return fz_leave_pthread(queue_to_kernel_thread(
		tid, sig, fz_signal_info(sig, SI_QUEUE, (uintptr_t)value.sival_ptr)));
}

FZ_EXPORT int pthread_sigqueue(pthread_t thread, int sig, const union sigval value)
{
	struct fz_fiber *target = fz_fiber_of_handle(thread);
	struct fz_siginfo info;

	fz_enter(FZ_SYM_pthread_sigqueue);
	if (!fz_is_fiber(target))
		return queue_to_native_thread(target, thread, sig, value);
	info = fz_signal_info(sig, SI_QUEUE, (uintptr_t)value.sival_ptr);
	return fz_leave_pthread(send_to_thread(target, sig, &info));
}
