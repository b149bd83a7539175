/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_to_self.c - a signal that a thread sends to itself, or to its
 * process when no other thread accepts it, has been handled when the call returns, whatever the
 * call is. What main blocks and has sent itself before there were threads stays main's.
 */
#include "check.h"

#include <dlfcn.h>
#include <stdbool.h>

enum { ROUNDS = 60, QUEUED = 3 };

/* Of pidfd_send_signal; in newer headers. */
enum { TO_THREAD = 1, TO_PROCESS = 2, TO_GROUP = 4 };

static volatile sig_atomic_t handled;
static siginfo_t told;
static int pidfd = -1, thread_pidfd = -1, directory = -1;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	told = *info;
	handled++;
}

static void set_handler(int sig)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

/* ---- the ways to send --------------------------------------------------- */

static siginfo_t info_of(int sig)
{
	siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = 77;
	return info;
}

static int by_kill(int sig)
{
	return kill(getpid(), sig);
}

static int by_kill_number(int sig)
{
	return (int)syscall(SYS_kill, getpid(), sig);
}

static int by_group(int sig)
{
	return kill(0, sig);
}

static int by_group_id(int sig)
{
	return kill(-getpgrp(), sig);
}

static int by_killpg(int sig)
{
	return killpg(getpgrp(), sig);
}

static int by_sigqueue(int sig)
{
	return sigqueue(getpid(), sig, (union sigval){ .sival_int = 77 });
}

static int by_info(int sig)
{
	siginfo_t info = info_of(sig);

	return (int)syscall(SYS_rt_sigqueueinfo, getpid(), sig, &info);
}

static int by_pidfd(int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* libc's function, if it has one. */
static int by_pidfd_function(int sig)
{
	int (*send)(int pidfd, int sig, siginfo_t *info, unsigned flags);

	*(void **)&send = dlsym(RTLD_DEFAULT, "pidfd_send_signal");
	if (!send)
		return by_pidfd(sig);
	CHECK_ERR(send(-1, sig, NULL, 0), EBADF);
	CHECK_ERR(send(pidfd, 65, NULL, 0), EINVAL);
	CHECK_ERR(send(pidfd, sig, NULL, 1 << 20), EINVAL);
	return send(pidfd, sig, NULL, 0);
}

static int by_pidfd_info(int sig)
{
	siginfo_t info = info_of(sig);

	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, &info, 0);
}

static int by_directory(int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, directory, sig, NULL, 0);
}

/* By a flag that this kernel may not have. */
static int by_flag(int fd, int sig, unsigned flag)
{
	int ret = (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, flag);

	return ret < 0 && errno == EINVAL ? by_pidfd(sig) : ret;
}

static int by_pidfd_process(int sig)
{
	return by_flag(pidfd, sig, TO_PROCESS);
}

static int by_pidfd_group(int sig)
{
	return by_flag(pidfd, sig, TO_GROUP);
}

static int by_raise(int sig)
{
	return raise(sig);
}

static int by_pthread_kill(int sig)
{
	return pthread_kill(pthread_self(), sig);
}

static int by_pthread_sigqueue(int sig)
{
	return pthread_sigqueue(pthread_self(), sig, (union sigval){ .sival_int = 77 });
}

static int by_tgkill(int sig)
{
	return tgkill(getpid(), gettid(), sig);
}

static int by_tkill(int sig)
{
	return (int)syscall(SYS_tkill, syscall(SYS_gettid), sig);
}

static int by_thread_info(int sig)
{
	siginfo_t info = info_of(sig);

	return (int)syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, &info);
}

/* To the main thread. */
static int by_thread_pidfd(int sig)
{
	return thread_pidfd < 0 ? raise(sig) : by_flag(thread_pidfd, sig, 0);
}

static int by_pidfd_thread(int sig)
{
	return thread_pidfd < 0 ? raise(sig) : by_flag(pidfd, sig, TO_THREAD);
}

struct way {
	int (*send)(int sig);
	int code;
	bool from_main;		/* the receiver is the main thread */
};

static const struct way ways[] = {
	{ by_kill, SI_USER, false },
	{ by_kill_number, SI_USER, false },
	{ by_group, SI_USER, false },
	{ by_group_id, SI_USER, false },
	{ by_killpg, SI_USER, false },
	{ by_sigqueue, SI_QUEUE, false },
	{ by_info, SI_QUEUE, false },
	{ by_pidfd, SI_USER, false },
	{ by_pidfd_function, SI_USER, false },
	{ by_pidfd_info, SI_QUEUE, false },
	{ by_directory, SI_USER, false },
	{ by_pidfd_process, SI_USER, false },
	{ by_pidfd_group, SI_USER, false },
	{ by_raise, SI_TKILL, false },
	{ by_pthread_kill, SI_TKILL, false },
	{ by_pthread_sigqueue, SI_QUEUE, false },
	{ by_tgkill, SI_TKILL, false },
	{ by_tkill, SI_TKILL, false },
	{ by_thread_info, SI_QUEUE, false },
	{ by_thread_pidfd, SI_TKILL, true },
	{ by_pidfd_thread, SI_TKILL, true },
};

/* Natively the same with a standard and a real-time signal; sleeps let the threads move. */
static void send_all(bool is_main)
{
	for (size_t i = 0; i < COUNT(ways); i++) {
		const struct way *way = &ways[i];

		if (way->from_main && !is_main)
			continue;
		for (int round = 1; round <= ROUNDS; round++) {
			int sig = round % 2 ? SIGUSR1 : SIGRTMIN + 2, before = handled;

			if (way->send(sig))
				fail(__FILE__, __LINE__, "way %d: errno %d\n", (int)i, errno);
			if (handled != before + 1)
				fail(__FILE__, __LINE__, "way %d, round %d: %d handled\n", (int)i,
				     round, (int)handled - before);
			CHECK_INT(told.si_signo, sig);
			if (!way->from_main)
				CHECK_INT(told.si_code, way->code);
			CHECK_INT(told.si_pid, getpid());
			CHECK_INT(told.si_uid, getuid());
			if (way->code == SI_QUEUE)
				CHECK_INT(told.si_value.sival_int, 77);
			if (round % 20 == 0)
				usleep(2000);
		}
	}
}

/* ---- refused as natively ------------------------------------------------ */

static void refused(void)
{
	siginfo_t info = info_of(SIGUSR1), claims = info_of(SIGUSR1);
	int before = handled;

	CHECK_ERR(syscall(SYS_pidfd_send_signal, pidfd, SIGUSR2, &info, 0), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, pidfd, 65, NULL, 0), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, NULL, 1 << 20), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, (void *)8, 0), EFAULT);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, -1, SIGUSR1, NULL, 0), EBADF);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, 0, SIGUSR1, NULL, 0), EBADF);
	CHECK_OK(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0));
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getpid(), 65, &info), EINVAL);
	CHECK_ERR(killpg(-2, SIGUSR1), EINVAL);
	CHECK_ERR(killpg(1 << 22, SIGUSR1), ESRCH);
	CHECK_OK(killpg(0, 0));
	/* A code of the kernel's may be claimed by the main thread only. */
	claims.si_code = SI_USER;
	if (gettid() == getpid()) {
		CHECK_OK(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &claims));
		CHECK_INT(handled, ++before);
		CHECK_OK(syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, &claims, 0));
		CHECK_INT(handled, ++before);
	} else {
		CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &claims), EPERM);
		CHECK_ERR(syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, &claims, 0), EPERM);
		CHECK_OK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &claims));
		CHECK_INT(handled, ++before);
	}
	CHECK_INT(handled, before);
}

/* ---- who sends ---------------------------------------------------------- */

static sigset_t mask_all(void)
{
	sigset_t all, old;

	sigfillset(&all);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, &old));
	return old;
}

static volatile bool stop;

/* Accepts no signal, and comes and goes. */
static void *naps(void *arg)
{
	mask_all();
	while (!stop)
		usleep(500);
	return arg;
}

/* Accepts no signal, and computes. */
static void *computes(void *arg)
{
	mask_all();
	while (!stop)
		continue;
	return arg;
}

static void *sends(void *arg)
{
	sigset_t none;

	sigemptyset(&none);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &none, NULL));
	send_all(false);
	refused();
	return arg;
}

/* ---- sent before there were threads ------------------------------------- */

static sigset_t pending(void)
{
	sigset_t set;

	CHECK_OK(sigpending(&set));
	return set;
}

static void *has_none(void *arg)
{
	sigset_t set = pending(), none;
	const struct timespec at_once = { 0, 0 };

	CHECK_INT(sigismember(&set, SIGUSR1), 0);
	CHECK_INT(sigismember(&set, SIGRTMIN + 2), 0);
	/* One for the process is everybody's. */
	CHECK_INT(sigismember(&set, SIGUSR2), 1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 2);
	CHECK_ERR(sigtimedwait(&set, NULL, &at_once), EAGAIN);
	sigemptyset(&none);
	sigaddset(&none, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &none, NULL));
	CHECK_INT(handled, 0);
	return arg;
}

static void sent_before(void)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t set, old = mask_all();
	siginfo_t info;

	CHECK_OK(raise(SIGUSR1));
	CHECK_OK(kill(getpid(), SIGUSR2));
	for (int i = 0; i < QUEUED; i++)
		CHECK_OK(pthread_sigqueue(pthread_self(), SIGRTMIN + 2,
					  (union sigval){ .sival_int = i }));
	finish(start(has_none, NULL));
	set = pending();
	CHECK_INT(sigismember(&set, SIGUSR1), 1);
	CHECK_INT(sigismember(&set, SIGUSR2), 1);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 2);
	for (int i = 0; i < QUEUED; i++) {
		CHECK_INT(sigtimedwait(&set, &info, &at_once), SIGRTMIN + 2);
		CHECK_INT(info.si_code, SI_QUEUE);
		CHECK_INT(info.si_value.sival_int, i);
	}
	CHECK_ERR(sigtimedwait(&set, &info, &at_once), EAGAIN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_INT(sigtimedwait(&set, &info, &at_once), SIGUSR2);
	CHECK_INT(handled, 0);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
	CHECK_INT(handled, 1);
	CHECK_INT(told.si_code, SI_TKILL);
}

int main(void)
{
	pthread_t others[3];
	sigset_t old;

	set_handler(SIGUSR1);
	set_handler(SIGUSR2);
	set_handler(SIGRTMIN + 2);
	if (getpgrp() != getpid())
		CHECK_OK(setpgid(0, 0));
	sent_before();
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	CHECK(pidfd >= 0);
	/* PIDFD_THREAD; not on older kernels. */
	thread_pidfd = (int)syscall(SYS_pidfd_open, getpid(), O_EXCL);
	directory = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(directory >= 0);
	others[0] = start(naps, NULL);
	others[1] = start(computes, NULL);
	others[2] = start_affine(naps, NULL);
	send_all(true);
	refused();
	old = mask_all();
	finish(start(sends, NULL));
	finish(start_affine(sends, NULL));
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
	stop = true;
	for (int i = 0; i < 3; i++)
		finish(others[i]);
	return success();
}
