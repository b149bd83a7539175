/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/threads.c - measures the cost of threads and their synchronisation.
 *
 *	threads [-s SECONDS] [CASE...]
 *
 * An ordinary pthread program.  Runs each CASE (default: all) for SECONDS (0.2) and
 * prints "CASE NANOSECONDS", the elapsed time per operation.
 * scripts/bench/threads.sh runs it natively and under fiberize in turn.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "scripts/bench/threads_time.h"

#define FEW 16
#define MANY 64
#define CROWD 1000
#define QUEUE_ROOM 64

/* ---- create and join ---------------------------------------------------- */

static void *nothing(void *arg)
{
	return arg;
}

static void create_join(unsigned batch)
{
	pthread_t thread;

	while (batch--) {
		must(pthread_create(&thread, NULL, nothing, NULL), "pthread_create");
		must(pthread_join(thread, NULL), "pthread_join");
	}
}

static double bench_create_join(void)
{
	return loop(create_join, 10);
}

/* ---- ping-pong ---------------------------------------------------------- */

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed[2] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
static unsigned turn;

/* An operation is a round trip, so only one of the two threads counts it. */
static void *cond_player(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&turn_lock);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		while (turn != w->index && !atomic_load_explicit(&stop, memory_order_relaxed))
			pthread_cond_wait(&turn_changed[w->index], &turn_lock);
		turn = !w->index;
		pthread_cond_signal(&turn_changed[!w->index]);
		w->operations += w->index;
	}
	pthread_mutex_unlock(&turn_lock);
	return NULL;
}

static double bench_cond_ping_pong(void)
{
	turn = 0;
	return together(cond_player, 2);
}

static sem_t ball[2];

static void *sem_player(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		while (sem_wait(&ball[w->index]))
			continue;
		sem_post(&ball[!w->index]);
		w->operations += w->index;
	}
	sem_post(&ball[!w->index]);
	return NULL;
}

static double bench_sem_ping_pong(void)
{
	sem_init(&ball[0], 0, 1);
	sem_init(&ball[1], 0, 0);
	return together(sem_player, 2);
}

/* ---- contended ---------------------------------------------------------- */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned shared_value;

static void think(unsigned steps)
{
	for (unsigned i = 0; i < steps; i++)
		__asm__ volatile("" ::: "memory");
}

static void *mutex_user(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		pthread_mutex_lock(&shared_lock);
		shared_value++;
		think(100);
		pthread_mutex_unlock(&shared_lock);
		think(100);
		w->operations++;
	}
	return NULL;
}

static double bench_mutex_64(void)
{
	return together(mutex_user, MANY);
}

/* The lock's holder yields the CPU, so that other threads find the lock taken. */
static void *mutex_yielder(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		pthread_mutex_lock(&shared_lock);
		shared_value++;
		sched_yield();
		pthread_mutex_unlock(&shared_lock);
		w->operations++;
	}
	return NULL;
}

static double bench_mutex_64_yield(void)
{
	return together(mutex_yielder, MANY);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *rwlock_user(void *arg)
{
	struct worker *w = arg;
	unsigned i = w->index;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (i++ % 10)
			pthread_rwlock_rdlock(&rwlock);
		else
			pthread_rwlock_wrlock(&rwlock);
		think(100);
		pthread_rwlock_unlock(&rwlock);
		w->operations++;
	}
	return NULL;
}

static double bench_rwlock_90(void)
{
	return together(rwlock_user, FEW);
}

static pthread_barrier_t barrier;
static int barrier_stop;

/* An operation is a whole round; thread 0 decides for all whether the round is the last. */
static void *barrier_user(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		if (w->index == 0)
			barrier_stop = atomic_load_explicit(&stop, memory_order_relaxed);
		pthread_barrier_wait(&barrier);
		if (barrier_stop)
			return NULL;
		pthread_barrier_wait(&barrier);
		w->operations += w->index == 0 ? 2 : 0;
	}
}

static double bench_barrier_16(void)
{
	must(pthread_barrier_init(&barrier, NULL, FEW), "pthread_barrier_init");
	return together(barrier_user, FEW);
}

static struct {
	pthread_mutex_t lock;
	pthread_cond_t not_full, not_empty;
	unsigned head, tail;
	uint64_t item[QUEUE_ROOM];
} queue = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.not_full = PTHREAD_COND_INITIALIZER,
	.not_empty = PTHREAD_COND_INITIALIZER,
};

static void *queue_user(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&queue.lock);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (w->index % 2) {
			while (queue.head - queue.tail == QUEUE_ROOM && !atomic_load(&stop))
				pthread_cond_wait(&queue.not_full, &queue.lock);
			queue.item[queue.head++ % QUEUE_ROOM] = w->operations;
			pthread_cond_signal(&queue.not_empty);
		} else {
			while (queue.head == queue.tail && !atomic_load(&stop))
				pthread_cond_wait(&queue.not_empty, &queue.lock);
			if (queue.head != queue.tail)
				queue.tail++;
			pthread_cond_signal(&queue.not_full);
			w->operations++;
		}
		pthread_mutex_unlock(&queue.lock);
		pthread_mutex_lock(&queue.lock);
	}
	pthread_cond_broadcast(&queue.not_empty);
	pthread_cond_broadcast(&queue.not_full);
	pthread_mutex_unlock(&queue.lock);
	return NULL;
}

static double bench_queue_8(void)
{
	queue.head = queue.tail = 0;
	return together(queue_user, 8);
}

/* ---- a message and its answer, beside CPU-bound threads -------------------- */

static int messages[2];

static void *cpu_bound(void *arg)
{
	while (!atomic_load(&stop)) {
		uint64_t until = now_ns() + 400000;

		while (now_ns() < until)
			continue;
		usleep(1000);
	}
	return arg;
}

static void *answers(void *arg)
{
	char c;

	while (read(messages[1], &c, 1) == 1 && write(messages[1], &c, 1) == 1)
		continue;
	return arg;
}

static void *asks(void *arg)
{
	struct worker *w = arg;
	char c = 'x';

	if (w->index)
		return cpu_bound(arg);
	while (!atomic_load(&stop)) {
		if (write(messages[0], &c, 1) != 1 || read(messages[0], &c, 1) != 1)
			must(errno, "message");
		w->operations++;
		usleep(500);
	}
	return arg;
}

static double bench_message_16(void)
{
	pthread_t answering;
	double ns;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, messages) ? errno : 0, "socketpair");
	must(pthread_create(&answering, NULL, answers, NULL), "pthread_create");
	ns = together(asks, FEW + 1);
	close(messages[0]);
	must(pthread_join(answering, NULL), "pthread_join");
	close(messages[1]);
	return ns;
}

/* ---- one of a thousand readers of one pipe ------------------------------ */

static int ball_pipe[2];

/* The reader that gets the ball writes it back, even at the end, so that all readers wake and end. */
static void *catches(void *arg)
{
	struct worker *w = arg;
	char c;

	do {
		if (read(ball_pipe[0], &c, 1) != 1 || write(ball_pipe[1], &c, 1) != 1)
			must(errno, "ball");
		w->operations++;
	} while (!atomic_load_explicit(&stop, memory_order_relaxed));
	return NULL;
}

static double bench_readers_1000(void)
{
	double ns;

	must(pipe(ball_pipe) || write(ball_pipe[1], "x", 1) != 1 ? errno : 0, "pipe");
	ns = together(catches, CROWD);
	close(ball_pipe[0]);
	close(ball_pipe[1]);
	return ns;
}

/* ---- uncontended, beside a second thread that sleeps -------------------- */

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void lock_unlock(unsigned batch)
{
	while (batch--) {
		pthread_mutex_lock(&own_lock);
		pthread_mutex_unlock(&own_lock);
	}
}

static void initialise(void)
{
}

static void call_once_again(unsigned batch)
{
	while (batch--)
		pthread_once(&once, initialise);
}

static void get_specific(unsigned batch)
{
	while (batch--)
		if (pthread_getspecific(key) != &key)
			abort();
}

static void *sleep_long(void *arg)
{
	pause();
	return arg;
}

/* Measure body while a second thread sleeps: libc takes short cuts in a process with one thread. */
static double beside_a_sleeper(void (*body)(unsigned))
{
	static pthread_t sleeper;

	if (!sleeper) {
		must(pthread_create(&sleeper, NULL, sleep_long, NULL), "pthread_create");
		must(pthread_key_create(&key, NULL), "pthread_key_create");
		must(pthread_setspecific(key, &key), "pthread_setspecific");
	}
	return loop(body, 1000);
}

static double bench_lock_unlock(void)
{
	return beside_a_sleeper(lock_unlock);
}

static double bench_once(void)
{
	return beside_a_sleeper(call_once_again);
}

static double bench_getspecific(void)
{
	return beside_a_sleeper(get_specific);
}

static const struct {
	const char *name;
	double (*run)(void);
} cases[] = {
	{ "create_join", bench_create_join },
	{ "cond_ping_pong", bench_cond_ping_pong },
	{ "sem_ping_pong", bench_sem_ping_pong },
	{ "mutex_64", bench_mutex_64 },
	{ "mutex_64_yield", bench_mutex_64_yield },
	{ "rwlock_90", bench_rwlock_90 },
	{ "barrier_16", bench_barrier_16 },
	{ "queue_8", bench_queue_8 },
	{ "message_16", bench_message_16 },
	{ "readers_1000", bench_readers_1000 },
	{ "lock_unlock", bench_lock_unlock },
	{ "once", bench_once },
	{ "getspecific", bench_getspecific },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "s:")) != -1) {
		if (opt != 's' || (seconds = atof(optarg)) <= 0) {
			fprintf(stderr, "usage: threads [-s SECONDS] [CASE...]\n");
			return 2;
		}
	}
	for (int i = optind; i < argc; i++) {
		unsigned c = 0;

		while (c < CASES && strcmp(cases[c].name, argv[i]))
			c++;
		if (c == CASES) {
			fprintf(stderr, "threads: no case %s\n", argv[i]);
			return 2;
		}
	}
	for (unsigned c = 0; c < CASES; c++) {
		int wanted = optind == argc;

		for (int i = optind; i < argc; i++)
			wanted |= !strcmp(cases[c].name, argv[i]);
		if (!wanted)
			continue;
		printf("%s %.2f\n", cases[c].name, cases[c].run());
		fflush(stdout);
	}
	return 0;
}
