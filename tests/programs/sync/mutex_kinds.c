/* SPDX-License-Identifier: MIT */
/* tests/programs/sync/mutex_kinds.c - robust, priority-inheriting and process-shared objects. */
#include "check.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct event ready = EVENT_INIT;

static void make(pthread_mutex_t *m, int robust, int protocol, int shared)
{
	pthread_mutexattr_t attr;

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_setrobust(&attr, robust));
	CHECK_OK(pthread_mutexattr_setprotocol(&attr, protocol));
	CHECK_OK(pthread_mutexattr_setpshared(&attr, shared));
	CHECK_OK(pthread_mutex_init(m, &attr));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
}

static void *die_with(void *arg)
{
	CHECK_OK(pthread_mutex_lock(arg));
	event_post(&ready);
	return NULL;
}

static void *wait_for(void *arg)
{
	int r;

	event_post(&ready);
	r = pthread_mutex_lock(arg);
	if (r == EOWNERDEAD) {
		CHECK_OK(pthread_mutex_consistent(arg));
		CHECK_OK(pthread_mutex_unlock(arg));
	} else {
		CHECK_INT(r, 0);
		CHECK_OK(pthread_mutex_unlock(arg));
	}
	return (void *)(intptr_t)r;
}

static void robust(int protocol)
{
	pthread_mutex_t m;
	pthread_t t[4];
	int dead = 0;

	make(&m, PTHREAD_MUTEX_ROBUST, protocol, PTHREAD_PROCESS_PRIVATE);
	finish(start(die_with, &m));
	CHECK_INT(pthread_mutex_lock(&m), EOWNERDEAD);
	CHECK_OK(pthread_mutex_consistent(&m));
	CHECK_INT(pthread_mutex_consistent(&m), EINVAL);
	CHECK_OK(pthread_mutex_unlock(&m));
	CHECK_OK(pthread_mutex_lock(&m));
	CHECK_OK(pthread_mutex_unlock(&m));

	finish(start(die_with, &m));
	CHECK_INT(pthread_mutex_trylock(&m), EOWNERDEAD);
	CHECK_OK(pthread_mutex_consistent(&m));
	CHECK_OK(pthread_mutex_unlock(&m));

	/* Somebody waits while the owner dies. */
	ready.count = 0;
	CHECK_OK(pthread_mutex_lock(&m));
	for (int i = 0; i < 4; i++)
		t[i] = start(wait_for, &m);
	event_wait(&ready, 4);
	settle();
	CHECK_OK(pthread_mutex_unlock(&m));
	for (int i = 0; i < 4; i++)
		dead += finish(t[i]) != NULL;
	CHECK_INT(dead, 0);
	finish(start(die_with, &m));
	for (int i = 0; i < 4; i++)
		t[i] = start(wait_for, &m);
	for (int i = 0; i < 4; i++)
		dead += finish(t[i]) != NULL;
	CHECK_INT(dead, 1);

	/* Given up without having been made consistent. */
	finish(start(die_with, &m));
	CHECK_INT(pthread_mutex_lock(&m), EOWNERDEAD);
	CHECK_OK(pthread_mutex_unlock(&m));
	CHECK_INT(pthread_mutex_lock(&m), ENOTRECOVERABLE);
	CHECK_INT(pthread_mutex_trylock(&m), ENOTRECOVERABLE);
	CHECK_OK(pthread_mutex_destroy(&m));
}

static pthread_mutex_t pi;
static long pi_count;

static void *use_pi(void *arg)
{
	for (int i = 0; i < 500; i++) {
		CHECK_OK(pthread_mutex_lock(&pi));
		pi_count++;
		if (i % 100 == 0)
			usleep(50);
		CHECK_OK(pthread_mutex_unlock(&pi));
	}
	return arg;
}

static void *times_out(void *arg)
{
	struct timespec ts = in(CLOCK_REALTIME, 5 * MS);

	CHECK_INT(pthread_mutex_trylock(arg), EBUSY);
	CHECK_INT(pthread_mutex_timedlock(arg, &ts), ETIMEDOUT);
	return NULL;
}

static void inheriting(void)
{
	pthread_t t[6];

	make(&pi, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT,
	     PTHREAD_PROCESS_PRIVATE);
	for (int i = 0; i < 6; i++)
		t[i] = start(use_pi, NULL);
	for (int i = 0; i < 6; i++)
		finish(t[i]);
	CHECK_INT(pi_count, 3000);
	CHECK_OK(pthread_mutex_lock(&pi));
	finish(start(times_out, &pi));
	CHECK_OK(pthread_mutex_unlock(&pi));
	CHECK_OK(pthread_mutex_destroy(&pi));
}

struct between {
	pthread_mutex_t lock, robust;
	pthread_cond_t cond;
	sem_t to_child, to_parent;
	pthread_barrier_t barrier;
	long count;
	int turn;
};

static void take_turns(struct between *b, int me)
{
	for (int i = 0; i < 200; i++) {
		CHECK_OK(pthread_mutex_lock(&b->lock));
		while (b->turn != me)
			CHECK_OK(pthread_cond_wait(&b->cond, &b->lock));
		b->turn = !me;
		b->count++;
		CHECK_OK(pthread_cond_signal(&b->cond));
		CHECK_OK(pthread_mutex_unlock(&b->lock));
	}
}

static void *child_turns(void *arg)
{
	take_turns(arg, 1);
	return NULL;
}

static void *parent_turns(void *arg)
{
	take_turns(arg, 0);
	return NULL;
}

static void between_processes(void)
{
	struct between *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t barrier_attr;
	pthread_condattr_t cond_attr;
	int status, r;
	pid_t pid;

	CHECK(b != MAP_FAILED);
	make(&b->lock, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE,
	     PTHREAD_PROCESS_SHARED);
	make(&b->robust, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE,
	     PTHREAD_PROCESS_SHARED);
	CHECK_OK(pthread_condattr_init(&cond_attr));
	CHECK_OK(pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_cond_init(&b->cond, &cond_attr));
	CHECK_OK(pthread_barrierattr_init(&barrier_attr));
	CHECK_OK(pthread_barrierattr_setpshared(&barrier_attr,
						PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_barrier_init(&b->barrier, &barrier_attr, 2));
	CHECK_OK(sem_init(&b->to_child, 1, 0));
	CHECK_OK(sem_init(&b->to_parent, 1, 0));

	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		finish(start(child_turns, b));
		r = pthread_barrier_wait(&b->barrier);
		CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
		for (int i = 0; i < 100; i++) {
			CHECK_OK(sem_wait(&b->to_child));
			b->count++;
			CHECK_OK(sem_post(&b->to_parent));
		}
		CHECK_OK(pthread_mutex_lock(&b->robust));
		_exit(3);
	}
	finish(start(parent_turns, b));
	r = pthread_barrier_wait(&b->barrier);
	CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
	for (int i = 0; i < 100; i++) {
		CHECK_OK(sem_post(&b->to_child));
		CHECK_OK(sem_wait(&b->to_parent));
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 3);
	CHECK_INT(b->count, 500);
	CHECK_INT(pthread_mutex_lock(&b->robust), EOWNERDEAD);
	CHECK_OK(pthread_mutex_consistent(&b->robust));
	CHECK_OK(pthread_mutex_unlock(&b->robust));
}

/* main() locked it when it was the only thread: it is the owner still. */
enum how { LOCK, TRYLOCK, TIMEDLOCK, CLOCKLOCK, HOWS };

static void *locks_some(void *m)
{
	for (int i = 0; i < 50; i++) {
		CHECK_OK(pthread_mutex_lock(m));
		CHECK_OK(pthread_mutex_unlock(m));
		sched_yield();
	}
	return NULL;
}

static void held_from_before(enum how how, int robust, int protocol)
{
	struct timespec later = in(CLOCK_REALTIME, 10000 * MS);
	struct timespec later_too = in(CLOCK_MONOTONIC, 10000 * MS);
	pthread_t t[20];
	pthread_mutex_t m;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid) {
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 0);
		return;
	}
	make(&m, robust, protocol, PTHREAD_PROCESS_PRIVATE);
	switch (how) {
	case LOCK:
		CHECK_OK(pthread_mutex_lock(&m));
		break;
	case TRYLOCK:
		CHECK_OK(pthread_mutex_trylock(&m));
		break;
	case TIMEDLOCK:
		CHECK_OK(pthread_mutex_timedlock(&m, &later));
		break;
	default:
		CHECK_OK(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &later_too));
	}
	for (size_t i = 0; i < COUNT(t); i++)
		t[i] = start(locks_some, &m);
	for (int i = 0; i < 5; i++)
		settle();
	CHECK_OK(pthread_mutex_unlock(&m));
	for (size_t i = 0; i < COUNT(t); i++)
		finish(t[i]);
	_exit(0);
}

int main(void)
{
	for (int how = 0; how < HOWS; how++) {
		held_from_before(how, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
		held_from_before(how, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT);
		held_from_before(how, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
	}
	puts("held from before");
	robust(PTHREAD_PRIO_NONE);
	puts("robust");
	robust(PTHREAD_PRIO_INHERIT);
	puts("robust and inheriting");
	inheriting();
	puts("inheriting");
	fflush(stdout);
	between_processes();
	puts("between processes");
	return success();
}
