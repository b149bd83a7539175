/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/stdio_locks.c - locks inside libc that are held for long: those of
 * FILEs, and malloc's.
 */
#include "check.h"

#include <sys/wait.h>

enum { WAITERS = 16, ROUNDS = 300 };

static FILE *shared;
static long inside, turns;

/* Whoever holds the lock is alone, also when it waits meanwhile. */
static void *takes_turns(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		flockfile(shared);
		CHECK_INT(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST), 1);
		turns++;
		if ((i + id) % 20 == 0)
			usleep(50);
		else if ((i + id) % 7 == 0)
			sched_yield();
		/* Recursive. */
		CHECK_OK(ftrylockfile(shared));
		funlockfile(shared);
		CHECK_INT(__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST), 0);
		funlockfile(shared);
	}
	return NULL;
}

static void turns_of_all(void)
{
	pthread_t t[WAITERS];

	turns = 0;
	for (int i = 0; i < WAITERS; i++)
		t[i] = start(takes_turns, (void *)(intptr_t)i);
	for (int i = 0; i < WAITERS; i++)
		finish(t[i]);
	CHECK_INT(turns, WAITERS * ROUNDS);
}

/* One sits in a read with the lock held; the others wait for both. */
static int pipe_fd[2];

static void *reads_line(void *arg)
{
	char line[16];

	CHECK(fgets(line, sizeof(line), shared) == line);
	CHECK_INT(strlen(line), 5);
	(void)arg;
	return (void *)(intptr_t)atoi(line + 1);
}

static void behind_a_read(void)
{
	pthread_t t[WAITERS];
	int sum = 0;

	CHECK_OK(pipe(pipe_fd));
	shared = fdopen(pipe_fd[0], "r");
	for (int i = 0; i < WAITERS; i++)
		t[i] = start(reads_line, NULL);
	/* Until whoever reads has it. */
	while (!ftrylockfile(shared)) {
		funlockfile(shared);
		usleep(1000);
	}
	for (int i = 0; i < WAITERS; i++) {
		CHECK_INT(dprintf(pipe_fd[1], "x%03d\n", i), 5);
		if (i % 4 == 0)
			usleep(1000);
	}
	for (int i = 0; i < WAITERS; i++)
		sum += (int)(intptr_t)finish(t[i]);
	CHECK_INT(sum, WAITERS * (WAITERS - 1) / 2);
	close(pipe_fd[1]);
	CHECK_INT(fgetc(shared), EOF);
	CHECK_OK(fclose(shared));
}

static volatile sig_atomic_t handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static void *locks_once(void *arg)
{
	flockfile(arg);
	turns++;
	funlockfile(arg);
	return NULL;
}

/* A handler runs in a thread that waits for the lock, and the wait goes on. */
static void handler_while_waiting(void)
{
	struct sigaction sa = { .sa_handler = count };
	pthread_t t;

	shared = tmpfile();
	turns = 0;
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	flockfile(shared);
	t = start(locks_once, shared);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	while (!handled)
		usleep(1000);
	CHECK_INT(turns, 0);
	funlockfile(shared);
	finish(t);
	CHECK_INT(turns, 1);
	fclose(shared);
}

/* A child has all locks of stdio free, whoever held them. */
static void *holds(void *arg)
{
	struct event *e = arg;

	flockfile(shared);
	event_post(&e[0]);
	event_wait(&e[1], 1);
	funlockfile(shared);
	return NULL;
}

static void fork_while_held(void)
{
	struct event e[2] = { EVENT_INIT, EVENT_INIT };
	pthread_t t, w;
	int status;
	pid_t pid;

	shared = tmpfile();
	t = start(holds, e);
	event_wait(&e[0], 1);
	w = start(locks_once, shared);
	settle();
	pid = fork();
	if (pid == 0) {
		pthread_t child;

		turns = 0;
		child = start(locks_once, shared);
		finish(child);
		_exit(fprintf(shared, "hello") == 5 && turns == 1 ? 7 : 1);
	}
	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 7);
	event_post(&e[1]);
	finish(t);
	finish(w);
	fclose(shared);
}

/* More threads than arenas, and memory freed by others than its owners. */
static void *slots[64];

static void *allocates(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg * 77 + 1;

	for (int i = 0; i < 3000; i++) {
		uint64_t r = random_next(&seed);
		size_t size = r % 5000 + 1;
		char *p = malloc(size);

		CHECK(p != NULL);
		memset(p, (int)r, size);
		free(__atomic_exchange_n(&slots[r >> 40 & 63], p, __ATOMIC_SEQ_CST));
		if (i % 100 == 0)
			sched_yield();
	}
	return NULL;
}

static void memory(void)
{
	pthread_t t[40];

	for (int i = 0; i < 40; i++)
		t[i] = start(allocates, (void *)(intptr_t)i);
	for (int i = 0; i < 40; i++)
		finish(t[i]);
	for (int i = 0; i < 64; i++)
		free(slots[i]);
}

int main(void)
{
	shared = tmpfile();
	turns_of_all();
	fclose(shared);
	puts("turns");
	behind_a_read();
	puts("behind a read");
	handler_while_waiting();
	puts("handler");
	fork_while_held();
	puts("fork");
	memory();
	puts("memory");
	return success();
}
