/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/spin_basic.c - spin locks: exclusion, EBUSY, and holders that sleep,
 * wait for others, or wait for the very thread that spins.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define THREADS 16

static pthread_spinlock_t spin;
static long plain;
static struct event ready = EVENT_INIT;
static int pipes[2];
static sem_t token;

static void *try_busy(void *arg)
{
	CHECK_KEEPS(pthread_spin_trylock(&spin), EBUSY);
	return arg;
}

static void arguments(void)
{
	CHECK_OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
	CHECK_KEEPS(pthread_spin_lock(&spin), 0);
	CHECK_INT(pthread_spin_trylock(&spin), EBUSY);
	finish(start(try_busy, NULL));
	finish(start_affine(try_busy, NULL));
	CHECK_KEEPS(pthread_spin_unlock(&spin), 0);
	CHECK_KEEPS(pthread_spin_trylock(&spin), 0);
	CHECK_OK(pthread_spin_unlock(&spin));
	CHECK_OK(pthread_spin_destroy(&spin));
	CHECK_OK(pthread_spin_init(&spin, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_spin_lock(&spin));
	CHECK_OK(pthread_spin_unlock(&spin));
	puts("arguments");
}

static void *counts(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		if (i % 3)
			CHECK_OK(pthread_spin_lock(&spin));
		else
			while (pthread_spin_trylock(&spin))
				sched_yield();
		plain++;
		CHECK_OK(pthread_spin_unlock(&spin));
	}
	return arg;
}

/* The holder parks, in every way, while all others spin. */
static void *holds_and_waits(void *arg)
{
	char c;

	for (int i = 0; i < 5; i++) {
		CHECK_OK(pthread_spin_lock(&spin));
		switch ((intptr_t)arg % 4) {
		case 0:
			CHECK_OK(usleep(500));
			break;
		case 1:
			CHECK_INT(write(pipes[1], "x", 1), 1);
			CHECK_INT(read(pipes[0], &c, 1), 1);
			break;
		case 2:
			sched_yield();
			break;
		default:
			CHECK_OK(sem_post(&token));
			CHECK_OK(sem_wait(&token));
		}
		plain++;
		CHECK_OK(pthread_spin_unlock(&spin));
	}
	return NULL;
}

static void many(void *(*fn)(void *), int affine, long expected)
{
	pthread_t t[THREADS];

	plain = 0;
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start_as(affine && i % 2, fn, (void *)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(plain, expected);
}

/* The holder waits for what others do who have nothing to do with the lock. */
static void *helps(void *arg)
{
	usleep(2000);
	CHECK_OK(sem_post(&token));
	return arg;
}

static void *needs_help(void *arg)
{
	CHECK_OK(pthread_spin_lock(&spin));
	event_post(&ready);
	CHECK_OK(sem_wait(&token));
	CHECK_OK(pthread_spin_unlock(&spin));
	return arg;
}

static void *spins(void *arg)
{
	CHECK_OK(pthread_spin_lock(&spin));
	plain++;
	CHECK_OK(pthread_spin_unlock(&spin));
	return arg;
}

static void holder_needs_help(int affine)
{
	pthread_t t[THREADS], holder, helper;

	plain = ready.count = 0;
	holder = start(needs_help, NULL);
	event_wait(&ready, 1);
	for (int i = 0; i < THREADS; i++)
		t[i] = start_as(affine && i % 2, spins, NULL);
	settle();
	helper = start(helps, NULL);
	finish(helper);
	finish(holder);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(plain, THREADS);
}

struct between {
	pthread_spinlock_t spin;
	long count;
};

static void *in_both(void *arg)
{
	struct between *b = arg;

	for (int i = 0; i < 2000; i++) {
		CHECK_OK(pthread_spin_lock(&b->spin));
		b->count++;
		CHECK_OK(pthread_spin_unlock(&b->spin));
	}
	return NULL;
}

static void between_processes(void)
{
	struct between *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t t[2];
	int status;
	pid_t pid;

	CHECK(b != MAP_FAILED);
	CHECK_OK(pthread_spin_init(&b->spin, PTHREAD_PROCESS_SHARED));
	pid = fork();
	CHECK(pid >= 0);
	for (int i = 0; i < 2; i++)
		t[i] = start(in_both, b);
	for (int i = 0; i < 2; i++)
		finish(t[i]);
	if (!pid)
		_exit(0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	CHECK_INT(b->count, 8000);
	puts("between processes");
}

int main(void)
{
	CHECK_OK(pipe(pipes));
	CHECK_OK(sem_init(&token, 0, 0));
	arguments();
	for (int affine = 0; affine < 2; affine++) {
		many(counts, affine, THREADS * 2000);
		puts("counts");
		many(holds_and_waits, affine, THREADS * 5);
		puts("holds and waits");
		holder_needs_help(affine);
		puts("holder needs help");
	}
	fflush(stdout);
	between_processes();
	return success();
}
