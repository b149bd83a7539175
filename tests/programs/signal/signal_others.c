/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_others.c - another process sends signals, which the main thread
 * handles, while other threads wait: in the less usual ways (waits.h), and in calls that are no
 * cancellation points. The signals end none of these waits. A handler on the waiting thread
 * itself ends the wait or not, as in signal(7).
 */
#include "waits.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/sem.h>

/* Threads that wait at a time, and signals that each of them stands. */
enum { WAITERS = 3, SIGNALS = 5 };

static int semaphores, asked[2];
static uint32_t word;
static pthread_t main_thread;
static _Atomic int by_main;		/* handlers that the main thread has run */
static _Atomic int by_any;		/* handlers that any thread has run */
static __thread volatile sig_atomic_t by_this;

static void count(int sig)
{
	(void)sig;
	by_this = 1;
	if (pthread_equal(pthread_self(), main_thread))
		by_main++;
	by_any++;
}

/* ---- no cancellation points --------------------------------------------------- */

static struct sembuf down = { 0, -1, 0 };
static struct timespec hour = { 3600, 0 };

static long do_flock(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	long ret = flock(fd, LOCK_EX);
	int err = errno;

	CHECK_OK(close(fd));
	errno = err;
	return ret;
}
static long do_semop(void) { return semop(semaphores, &down, 1); }
static long do_semtimedop(void) { return semtimedop(semaphores, &down, 1, &hour); }
static long by_futex(void) { return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0); }
static long by_mq_timedreceive(void)
{
	return syscall(SYS_mq_timedreceive, mq_empty, page, sizeof(page), NULL, NULL);
}
static long by_msgrcv(void)
{
	struct { long type; char text[8]; } m;

	return syscall(SYS_msgrcv, queue, &m, sizeof(m.text), 77L, 0);
}
static long by_open(void) { return syscall(SYS_openat, AT_FDCWD, name, O_RDONLY); }
static long by_openat2(void)
{
	uint64_t how[3] = { O_RDONLY };

	return syscall(SYS_openat2, AT_FDCWD, name, how, sizeof(how));
}
static long by_semtimedop(void) { return syscall(SYS_semtimedop, semaphores, &down, 1, &hour); }
static long by_splice(void) { return syscall(SYS_splice, empty[0], NULL, full[1], NULL, 1, 0); }
static long by_waitid(void)
{
	struct rusage usage;
	siginfo_t info;

	return syscall(SYS_waitid, P_PIDFD, owner_fd, &info, WEXITED, &usage);
}

static const struct point others[] = {
	{ "flock", do_flock, RESTARTS },
	{ "semop", do_semop, ENDS },
	{ "semtimedop", do_semtimedop, ENDS },
	{ "SYS_futex", by_futex, RESTARTS },
	{ "SYS_mq_timedreceive", by_mq_timedreceive, RESTARTS },
	{ "SYS_msgrcv", by_msgrcv, ENDS },
	{ "SYS_openat", by_open, RESTARTS },
	{ "SYS_openat2", by_openat2, RESTARTS },
	{ "SYS_semtimedop", by_semtimedop, ENDS },
	{ "SYS_splice", by_splice, RESTARTS },
	{ "SYS_waitid", by_waitid, RESTARTS },
};

/* ---- the other process --------------------------------------------------------- */

static void send_signals(pid_t to)
{
	char c;

	/* What tells the children that the parent has ended. */
	CHECK_OK(close(asked[1]));
	CHECK_OK(close(release));
	while (read(asked[0], &c, 1) == 1 && !kill(to, SIGUSR1))
		continue;
	_exit(0);
}

/*
 * The kernel nearly always gives it to the main thread, which does nothing meanwhile for which libc
 * blocks signals.  If another thread has had it, ask for one more.
 */
static void handle_one(void)
{
	int before = by_main;

	while (by_main == before) {
		int handled = by_any;

		CHECK_INT(write(asked[1], "x", 1), 1);
		while (by_any == handled)
			usleep(200);
	}
}

static void handle_with(int flags)
{
	struct sigaction sa = { .sa_handler = count, .sa_flags = flags };

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
}

static void *waits_in(void *arg)
{
	const struct point *p = arg;
	long ret;

	by_this = 0;
	event_post(&waiting);
	errno = 0;
	ret = p->call();
	/* thrd_sleep says it without errno. */
	if (ret != -1 || (errno && errno != EINTR) || !by_this)
		fail(__FILE__, __LINE__, "%s: %ld, error %d, %d handlers\n", p->name, ret, errno,
		     (int)by_this);
	return NULL;
}

static bool has_ended(pthread_t t)
{
	void *value;
	int err = pthread_tryjoin_np(t, &value);

	if (!err)
		CHECK(value == NULL);
	else
		CHECK_INT(err, EBUSY);
	return !err;
}

static void disturb(const struct point *p, int flags, int waiters, bool cancellable)
{
	bool ends = p->interrupted == ENDS || (p->interrupted == RESTARTS && !flags);
	pthread_t t[WAITERS];

	handle_with(flags);
	waiting.count = 0;
	for (int i = 0; i < waiters; i++)
		t[i] = start(waits_in, (void *)p);
	event_wait(&waiting, waiters);
	settle();
	for (int i = 0; i < SIGNALS; i++)
		handle_one();
	for (int i = 0; i < waiters; i++) {
		if (has_ended(t[i]))
			fail(__FILE__, __LINE__, "%s has ended\n", p->name);
		if (!ends && cancellable) {
			CHECK_OK(pthread_kill(t[i], SIGUSR1));
			settle();
			CHECK_OK(pthread_cancel(t[i]));
			CHECK(finish(t[i]) == PTHREAD_CANCELED);
			continue;
		}
		handle_with(ends ? flags : 0);
		/* More than one, in case it has only now begun to wait. */
		do {
			CHECK_OK(pthread_kill(t[i], SIGUSR1));
			settle();
		} while (!has_ended(t[i]));
		handle_with(flags);
	}
	printf("%s, %s: as signal(7) says\n", p->name, flags ? "SA_RESTART" : "no flags");
}

int main(void)
{
	int lock = open("/proc/self/exe", O_RDONLY);
	pid_t parent, sender;

	CHECK_OK(flock(lock, LOCK_EX));
	signal(SIGPIPE, SIG_IGN);
	main_thread = pthread_self();
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	CHECK(semaphores >= 0);
	handle_with(SA_RESTART);
	set_up_waits();
	CHECK_OK(pipe2(asked, O_CLOEXEC));
	parent = getpid();
	sender = fork();
	if (!sender)
		send_signals(parent);
	CHECK_OK(close(asked[0]));
	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		for (size_t i = 0; i < COUNT(points); i++)
			disturb(&points[i], flags, 1, true);
		for (size_t i = 0; i < COUNT(others); i++)
			disturb(&others[i], flags, WAITERS, false);
	}
	CHECK_OK(close(asked[1]));
	CHECK_INT(waitpid(sender, NULL, 0), sender);
	CHECK_OK(semctl(semaphores, 0, IPC_RMID));
	tear_down_waits();
	return success();
}
