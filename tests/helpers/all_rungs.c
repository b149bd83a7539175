/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/all_rungs.c - a program that makes the library use all that it asks the kernel for, in
 * a quarter of a second: threads of each kind, each rung of the calls, signals, fork.  Prints a line
 * for each part, always the same.  A thread that is refused with EAGAIN is asked for again, and said
 * on stderr; after TRIES of them the program ends with REFUSED.  With RESTS in the environment it sleeps
 * 2.5 s after the first part, in which the library gives back the threads that have ended.  With MORE it does what
 * takes long to fail in turn, and prints nothing of it.
 */
#include "rungs.h"
#include "rungs_io.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* ---- threads ------------------------------------------------------------- */

static __thread int local = 7;

static void *touch(void *arg)
{
	CHECK_INT(local, 7);
	local = dig(10000);
	return arg;
}

/* Attributes of a thread that stays a kernel thread. */
static void bind_to_cpus(pthread_attr_t *attr)
{
	cpu_set_t cpus;

	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_OK(pthread_attr_setaffinity_np(attr, sizeof(cpus), &cpus));
}

static void threads(void)
{
	enum { N = 24 };
	pthread_t t[N];
	pthread_attr_t attr;
	long sum = 0;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, 1 << 20));
	for (int round = 0; round < 2; round++) {
		for (intptr_t i = 0; i < N; i++)
			t[i] = begin_as(i % 2 ? &attr : NULL, touch, (void *)i);
		for (int i = 0; i < N; i++)
			sum += (intptr_t)finish(t[i]);
	}
	bind_to_cpus(&attr);
	sum += (intptr_t)finish(begin_as(&attr, touch, (void *)1000));
	CHECK_OK(pthread_attr_destroy(&attr));
	CHECK_OK(pthread_detach(begin(touch, NULL)));
	printf("threads %ld\n", sum);
}

/* ---- locks --------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int counted;

static void *lock_all(void *arg)
{
	static uint32_t shared;
	const struct timespec moment = { .tv_nsec = 2 * MS };
	struct timespec late;

	event_post(&ready);
	event_wait(&turn, 1);
	for (int i = 0; i < 50; i++) {
		CHECK_OK(pthread_mutex_lock(&lock));
		counted++;
		if (i % 10 == 0)
			usleep(50);
		CHECK_OK(pthread_mutex_unlock(&lock));
		CHECK_OK(i % 8 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
		sched_yield();
		CHECK_OK(pthread_rwlock_unlock(&rwlock));
	}
	late = in(CLOCK_REALTIME, 2 * MS);
	CHECK_ERR(sem_timedwait(&semaphore, &late), ETIMEDOUT);
	while (syscall(SYS_futex, &shared, FUTEX_WAIT, 0, &moment, NULL, 0) && errno == EINTR)
		continue;
	CHECK_INT(errno, ETIMEDOUT);
	pthread_barrier_wait(&barrier);
	return arg;
}

static void locks(void)
{
	enum { N = 6 };
	pthread_t t[N];

	CHECK_OK(sem_init(&semaphore, 0, 0) || pthread_barrier_init(&barrier, NULL, N));
	for (int i = 0; i < N; i++)
		t[i] = begin(lock_all, NULL);
	event_wait(&ready, N);
	event_post(&turn);
	for (int i = 0; i < N; i++)
		finish(t[i]);
	printf("locks %d\n", counted);
}

/* ---- signals and cancellation -------------------------------------------- */

static volatile sig_atomic_t handled;
static _Atomic int was_interrupted;

static void handle(int sig)
{
	(void)sig;
	handled++;
}

static void *be_interrupted(void *arg)
{
	sigset_t set;
	char c;
	int sig;

	event_post(&turn);
	CHECK_ERR(read(first[0], &c, 1), EINTR);
	was_interrupted = 1;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	event_post(&turn);
	CHECK_OK(sigwait(&set, &sig));
	CHECK_INT(sig, SIGUSR2);
	return arg;
}

static void *compute(void *arg)
{
	while (!handled)
		continue;
	return arg;
}

static void *be_cancelled(void *arg)
{
	char c;

	event_post(&turn);
	if (arg)
		event_wait(&turn, 1000);
	while (read(second[0], &c, 1) >= 0)
		continue;
	return arg;
}

static void signals(void)
{
	const struct sigaction action = { .sa_handler = handle };
	struct itimerspec soon = { .it_value.tv_nsec = 2 * MS };
	pthread_t t;
	timer_t timer;

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	t = begin(be_interrupted, NULL);
	event_wait(&turn, 4);
	settle();
	/* The first one may come before the read. */
	do {
		CHECK_OK(pthread_kill(t, SIGUSR1));
		settle();
	} while (!was_interrupted);
	event_wait(&turn, 5);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR2));
	finish(t);
	handled = 0;
	t = begin(compute, NULL);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
	handled = 0;
	CHECK_OK(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL,
							   .sigev_signo = SIGUSR1 }, &timer));
	CHECK_OK(timer_settime(timer, 0, &soon, NULL));
	while (!handled)
		usleep(500);
	CHECK_OK(timer_delete(timer));
	for (intptr_t i = 0; i < 2; i++) {
		t = begin(be_cancelled, i ? &ready : NULL);
		event_wait(&turn, 6 + (int)i);
		settle();
		CHECK_OK(pthread_cancel(t));
		CHECK(finish(t) == PTHREAD_CANCELED);
	}
	puts("signals");
}

static pthread_t readers[6];
static struct event reading = EVENT_INIT;

static void *read_for_ever(void *arg)
{
	char c;

	event_post(&reading);
	while (read(second[0], &c, 1) >= 0)
		continue;
	return arg;
}

static void *cancel_readers(void *arg)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		CHECK_OK(pthread_cancel(readers[i]));
	return arg;
}

/* By a kernel thread: they may go on elsewhere than where their requests are. */
static void cancellation(void)
{
	const int n = sizeof(readers) / sizeof(readers[0]);
	pthread_attr_t attr;

	CHECK_OK(pthread_attr_init(&attr));
	bind_to_cpus(&attr);
	for (int i = 0; i < n; i++)
		readers[i] = begin(read_for_ever, NULL);
	event_wait(&reading, n);
	settle();
	finish(begin_as(&attr, cancel_readers, NULL));
	for (int i = 0; i < n; i++)
		CHECK(finish(readers[i]) == PTHREAD_CANCELED);
	CHECK_OK(pthread_attr_destroy(&attr));
	puts("cancellation");
}

/* ---- processes ----------------------------------------------------------- */

static void *wire(void *arg)
{
	struct timespec used;

	prctl(PR_SET_TIMERSLACK, 1000);
	CHECK_OK(pthread_setname_np(pthread_self(), "wired"));
	usleep(1000);
	CHECK_OK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used));
	return arg;
}

static void *wait_for_child(void *arg)
{
	int status;

	CHECK_INT(waitpid(*(pid_t *)arg, &status, 0), *(pid_t *)arg);
	return (void *)(intptr_t)status;
}

static void processes(void)
{
	const pid_t child = fork();
	pid_t mine = child;
	intptr_t status;

	if (!child) {
		finish(begin(touch, NULL));
		usleep(1000);
		_exit(3);
	}
	status = (intptr_t)finish(begin(wait_for_child, &mine));
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == REFUSED)
		_exit(REFUSED);
	finish(begin(wire, NULL));
	printf("processes %d\n", (int)WEXITSTATUS(status));
}

/* ---- with MORE ------------------------------------------------------------ */

/* More signals than the library has room for without asking the kernel for memory. */
static void *queue_signals(void *arg)
{
	enum { N = 100 };
	const struct timespec none = { 0 };
	const union sigval value = { .sival_int = 5 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	for (int i = 0; i < N; i++)
		while (is_refused(pthread_sigqueue(pthread_self(), SIGRTMIN, value)))
			continue;
	for (int i = 0; i < N; i++)
		CHECK_INT(sigtimedwait(&set, NULL, &none), SIGRTMIN);
	return arg;
}

static void *lend_memory(void *arg)
{
	int status;
	pid_t pid;

	while ((pid = vfork()) < 0)
		is_refused(errno);
	if (!pid)
		_exit(5);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 5);
	return arg;
}

int main(void)
{
	CHECK_OK(pipe(first) || pipe(second));
	threads();
	if (getenv("RESTS"))
		usleep(2500000);
	locks();
	turn.count = 1;
	sockets();
	readiness();
	files();
	signals();
	cancellation();
	processes();
	if (getenv("MORE")) {
		finish(begin(queue_signals, NULL));
		finish(begin(lend_memory, NULL));
	}
	return success();
}
