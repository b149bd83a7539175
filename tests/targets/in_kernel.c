/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/in_kernel.c - threads that wait in futex calls of the kernel, on purpose or inside libc.
 *
 *	in_kernel		a word that no thread has to do with, a word with the waiter's own tid, locks
 *				shared with other processes, robust and priority-inheriting mutexes, the end
 *				of a native thread; no deadlock.  prints "ready" once the threads have been made, and
 *				goes on until killed
 *	in_kernel robust	a deadlock of two threads by robust mutexes, and nothing else
 *	in_kernel rwlocks	the same by reader-writer locks that are shared with other processes
 *	in_kernel again		a thread locks the robust mutex that it has
 *	in_kernel timed		as robust, but one of the waits has a deadline: there is no deadlock
 *	in_kernel past		as timed, but by other mutexes, and both wait until a deadline, again and again
 *	in_kernel queue		two threads wait for a robust mutex of the first thread, which gives it to one
 *				of them once SIGUSR1 has come; then these two are in a deadlock
 *	in_kernel stale		"late" waits for the robust mutex of "gives", once SIGUSR1 has come; "gives"
 *				gives it to "gets" after the next one, and waits for that of "late": no deadlock
 *	in_kernel other		another process has the robust mutex
 *	in_kernel handed	six threads take a priority-inheriting mutex in turn: no deadlock
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t first, second, third, inheriting, of_native, of_fiber;
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, other_plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock, other_rwlock;
static pthread_barrier_t both_hold;
static pthread_t native;
static sem_t held, turn, never;
static atomic_bool has_got;
static uint32_t word = 3, own_tid;

/* The mutexes that a thread takes, one after the other. */
static pthread_mutex_t *first_second[] = { &first, &second }, *second_first[] = { &second, &first };
static pthread_mutex_t *plain_then_other[] = { &plain, &other_plain }, *other_then_plain[] = { &other_plain, &plain };
static pthread_mutex_t *in_turn[] = { &second, &first, &third }, *against[] = { &third, &first, &second };

static struct timespec late(void)
{
	return (struct timespec){ time(NULL) + 100000, 0 };
}

static void *sleeps(void *arg)
{
	sem_wait(&never);
	return arg;
}

static void *takes(void *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static void *holds(void *mutex)
{
	pthread_mutex_lock(mutex);
	sem_post(&held);
	return sleeps(mutex);
}

/* The name that it gives itself is not late. */
static void *is_native(void *mutex)
{
	pthread_setname_np(pthread_self(), "native");
	return holds(mutex);
}

static void *has_lock(void *arg)
{
	pthread_rwlock_wrlock(&rwlock);
	sem_post(&held);
	return sleeps(arg);
}

static void *waits_for_word(void *arg)
{
	syscall(SYS_futex, &word, FUTEX_WAIT, word, NULL, NULL, 0);
	return arg;
}

static void *waits_for_itself(void *arg)
{
	own_tid = (uint32_t)gettid();
	syscall(SYS_futex, &own_tid, FUTEX_WAIT, own_tid, NULL, NULL, 0);
	return arg;
}

static void *reads(void *arg)
{
	pthread_rwlock_rdlock(&rwlock);
	return arg;
}

static void *writes(void *arg)
{
	pthread_rwlock_wrlock(&rwlock);
	return arg;
}

static void *takes_in_time(void *mutex)
{
	const struct timespec until = late();

	pthread_mutex_timedlock(mutex, &until);
	return mutex;
}

static void *joins(void *arg)
{
	pthread_join(native, NULL);
	return arg;
}

static void *joins_in_time(void *arg)
{
	const struct timespec until = late();

	pthread_timedjoin_np(native, NULL, &until);
	return arg;
}

static void *takes_both(void *arg)
{
	pthread_mutex_t **mutexes = arg;

	pthread_mutex_lock(mutexes[0]);
	pthread_barrier_wait(&both_hold);
	return takes(mutexes[1]);
}

static void *takes_both_in_time(void *arg)
{
	pthread_mutex_t **mutexes = arg;

	pthread_mutex_lock(mutexes[0]);
	pthread_barrier_wait(&both_hold);
	return takes_in_time(mutexes[1]);
}

/* Waits for the second one for at most two seconds at a time. */
static void *tries_both(void *arg)
{
	pthread_mutex_t **mutexes = arg;
	struct timespec until;

	pthread_mutex_lock(mutexes[0]);
	pthread_barrier_wait(&both_hold);
	do {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 2;
	} while (pthread_mutex_timedlock(mutexes[1], &until) == ETIMEDOUT);
	return arg;
}

static void *writes_first(void *arg)
{
	pthread_rwlock_wrlock(&rwlock);
	pthread_barrier_wait(&both_hold);
	pthread_rwlock_rdlock(&other_rwlock);
	return arg;
}

static void *writes_second(void *arg)
{
	pthread_rwlock_wrlock(&other_rwlock);
	pthread_barrier_wait(&both_hold);
	pthread_rwlock_wrlock(&rwlock);
	return arg;
}

static void *takes_twice(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_lock(mutex);
	return mutex;
}

static void *takes_three(void *arg)
{
	pthread_mutex_t **mutexes = arg;

	for (int i = 0; i < 3; i++)
		pthread_mutex_lock(mutexes[i]);
	return arg;
}

static void *is_late(void *arg)
{
	pthread_mutex_lock(&second);
	sem_wait(&turn);
	pthread_mutex_lock(&first);
	return arg;
}

/* It waits by nothing that the library sees, so that only the kernel can tell that it has run. */
static void *gives(void *arg)
{
	pthread_mutex_lock(&first);
	sem_post(&held);
	pthread_mutex_lock(&third);
	pthread_mutex_unlock(&first);
	while (!has_got)
		;
	pthread_mutex_lock(&second);
	return arg;
}

static void *gets(void *arg)
{
	pthread_mutex_lock(&first);
	has_got = true;
	return sleeps(arg);
}

static void *takes_in_turns(void *mutex)
{
	for (;;) {
		pthread_mutex_lock(mutex);
		pthread_mutex_unlock(mutex);
	}
	return mutex;
}

static pthread_t make(void *(*start)(void *), const char *name, void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, start, arg);
	pthread_setname_np(thread, name);
	return thread;
}

static void init_locks(pthread_mutexattr_t *robust)
{
	pthread_mutexattr_t inherit, shared;
	pthread_rwlockattr_t shared_rwlock;

	pthread_mutexattr_init(robust);
	pthread_mutexattr_setrobust(robust, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&first, robust);
	pthread_mutex_init(&second, robust);
	pthread_mutex_init(&third, robust);
	pthread_mutexattr_init(&inherit);
	pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &inherit);
	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&of_native, &shared);
	pthread_mutex_init(&of_fiber, &shared);
	pthread_rwlockattr_init(&shared_rwlock);
	pthread_rwlockattr_setpshared(&shared_rwlock, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&rwlock, &shared_rwlock);
	pthread_rwlock_init(&other_rwlock, &shared_rwlock);
}

static void make_each(void)
{
	pthread_attr_t attr;
	cpu_set_t cpus;

	make(has_lock, "has-lock", NULL);
	make(holds, "has-inheriting", &inheriting);
	make(holds, "has-robust", &first);
	make(holds, "is-fiber", &of_fiber);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	pthread_create(&native, &attr, is_native, &of_native);
	for (int i = 0; i < 5; i++)
		sem_wait(&held);
	make(waits_for_word, "word", NULL);
	make(waits_for_itself, "itself", NULL);
	make(reads, "reads", NULL);
	make(writes, "writes", NULL);
	make(takes, "takes-native", &of_native);
	make(takes, "takes-fiber", &of_fiber);
	make(takes, "inherits", &inheriting);
	make(takes, "takes-robust", &first);
	make(takes_in_time, "takes-in-time", &first);
	make(joins, "joins", NULL);
	make(joins_in_time, "joins-in-time", NULL);
}

/* Before a thread is made: a child that locks a mutex which both processes have. */
static void lock_elsewhere(pthread_mutexattr_t *attr)
{
	pthread_mutex_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				       -1, 0);
	int locked[2];
	char byte;

	pthread_mutexattr_setpshared(attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(shared, attr);
	if (pipe(locked) != 0)
		_exit(1);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_mutex_lock(shared);
		if (write(locked[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	if (read(locked[0], &byte, 1) != 1)
		_exit(1);
	make(sleeps, "a fiber", NULL);
	puts("ready");
	fflush(stdout);
	pthread_mutex_lock(shared);
}

static void make_stale(void)
{
	pthread_mutex_lock(&third);
	make(is_late, "late", NULL);
	make(gives, "gives", NULL);
	sem_wait(&held);
	make(gets, "gets", NULL);
}

static void wait_for_signal(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &number);
}

static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_mutexattr_t robust;

	init_locks(&robust);
	pthread_barrier_init(&both_hold, NULL, 2);
	sem_init(&held, 0, 0);
	sem_init(&turn, 0, 0);
	sem_init(&never, 0, 0);
	block_signal();
	if (strcmp(how, "other") == 0) {
		lock_elsewhere(&robust);
	} else if (strcmp(how, "again") == 0) {
		make(takes_twice, "takes-twice", &first);
	} else if (strcmp(how, "rwlocks") == 0) {
		make(writes_first, "writes-first", NULL);
		make(writes_second, "writes-second", NULL);
	} else if (strcmp(how, "past") == 0) {
		make(tries_both, "tries-first", plain_then_other);
		make(tries_both, "tries-second", other_then_plain);
	} else if (strcmp(how, "handed") == 0) {
		for (int i = 0; i < 6; i++)
			make(takes_in_turns, "takes-in-turns", &inheriting);
	} else if (strcmp(how, "queue") == 0) {
		pthread_mutex_lock(&first);
		make(takes_three, "in-turn", in_turn);
		make(takes_three, "against", against);
	} else if (strcmp(how, "stale") == 0) {
		make_stale();
	} else if (*how) {
		make(takes_both, "takes-first", first_second);
		make(strcmp(how, "timed") == 0 ? takes_both_in_time : takes_both, "takes-second", second_first);
	} else {
		make_each();
	}
	puts("ready");
	fflush(stdout);
	if (strcmp(how, "queue") == 0) {
		wait_for_signal();
		pthread_mutex_unlock(&first);
	} else if (strcmp(how, "stale") == 0) {
		wait_for_signal();
		sem_post(&turn);
		wait_for_signal();
		pthread_mutex_unlock(&third);
	}
	sem_wait(&never);
	return 0;
}
