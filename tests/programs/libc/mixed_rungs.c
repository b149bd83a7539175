/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/mixed_rungs.c - every kind of waiting at once.
 *
 * Threads that block inside libc (fgets), in raw system calls, in flock, in
 * read, in locks and sleeps, and one that spins, all depend on one chain of
 * events that only ends if none of them starves another.
 */
#include "check.h"

#include <sys/file.h>
#include <sys/syscall.h>

#define READERS 4

static int line_pipe[READERS][2], raw_pipe[2], plain_pipe[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static struct event blocked = EVENT_INIT;
static int spin_flag, spin_seen;
static int file_a, file_b;

static void *gets_line(void *arg)
{
	FILE *f = fdopen(line_pipe[(intptr_t)arg][0], "r");
	char line[64];

	CHECK(f != NULL);
	event_post(&blocked);
	for (int i = 0; i < 3; i++) {
		CHECK(fgets(line, sizeof(line), f) != NULL);
		CHECK_OK(strcmp(line, "a line\n"));
	}
	CHECK(fgets(line, sizeof(line), f) == NULL);
	CHECK(feof(f));
	fclose(f);
	return NULL;
}

static void *spins(void *arg)
{
	event_post(&blocked);
	while (!__atomic_load_n(&spin_flag, __ATOMIC_ACQUIRE))
		;
	__atomic_store_n(&spin_seen, 1, __ATOMIC_RELEASE);
	return arg;
}

static void *holds_and_reads(void *arg)
{
	char c;

	CHECK_OK(pthread_mutex_lock(&held));
	event_post(&blocked);
	CHECK_INT(read(plain_pipe[0], &c, 1), 1);
	CHECK_OK(pthread_mutex_unlock(&held));
	return arg;
}

static void *wants_lock(void *arg)
{
	event_post(&blocked);
	CHECK_OK(pthread_mutex_lock(&held));
	CHECK_OK(pthread_mutex_unlock(&held));
	return arg;
}

static void *raw_read(void *arg)
{
	char c;

	event_post(&blocked);
	CHECK_INT(syscall(SYS_read, raw_pipe[0], &c, 1), 1);
	return arg;
}

static void *wants_flock(void *arg)
{
	event_post(&blocked);
	CHECK_OK(flock(file_b, LOCK_EX));
	CHECK_OK(flock(file_b, LOCK_UN));
	return arg;
}

static void *sleeps(void *arg)
{
	event_post(&blocked);
	for (int i = 0; i < 10; i++)
		CHECK_OK(usleep(2000));
	return arg;
}

/* Sets off the others, one after the other; itself only an ordinary thread. */
static void *conducts(void *arg)
{
	event_wait(&blocked, *(int *)arg);
	settle();
	__atomic_store_n(&spin_flag, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&spin_seen, __ATOMIC_ACQUIRE))
		usleep(100);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < READERS; k++)
			CHECK_INT(write(line_pipe[k][1], "a line\n", 7), 7);
	for (int k = 0; k < READERS; k++)
		close(line_pipe[k][1]);
	CHECK_INT(write(raw_pipe[1], "xxx", 3), 3);
	CHECK_INT(write(plain_pipe[1], "x", 1), 1);
	CHECK_OK(flock(file_a, LOCK_UN));
	return NULL;
}

int main(void)
{
	char name[] = "/tmp/check-XXXXXX";
	pthread_t t[64];
	int n = 0, count;

	for (int i = 0; i < READERS; i++)
		CHECK_OK(pipe(line_pipe[i]));
	CHECK_OK(pipe(raw_pipe));
	CHECK_OK(pipe(plain_pipe));
	file_a = mkstemp(name);
	file_b = open(name, O_RDWR);
	CHECK(file_a >= 0 && file_b >= 0);
	CHECK_OK(unlink(name));
	CHECK_OK(flock(file_a, LOCK_EX));
	CHECK_ERR(flock(file_b, LOCK_EX | LOCK_NB), EWOULDBLOCK);

	count = READERS + 1 + 1 + 3 + 3 + 2 + 5;
	t[n++] = start(holds_and_reads, NULL);
	event_wait(&blocked, 1);
	for (intptr_t i = 0; i < READERS; i++)
		t[n++] = start(gets_line, (void *)i);
	for (int i = 0; i < 3; i++)
		t[n++] = start(wants_lock, NULL);
	for (int i = 0; i < 3; i++)
		t[n++] = start(raw_read, NULL);
	for (int i = 0; i < 2; i++)
		t[n++] = start(wants_flock, NULL);
	for (int i = 0; i < 5; i++)
		t[n++] = start(sleeps, NULL);
	t[n++] = start(spins, NULL);
	CHECK_INT(n, count);
	t[n++] = start(conducts, &count);
	while (n--)
		finish(t[n]);
	return success();
}
