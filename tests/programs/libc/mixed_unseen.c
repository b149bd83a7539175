/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/mixed_unseen.c - 1000 threads echo while three threads stay where no
 * library sees them: in a loop, in a system call by an inline instruction, in flock. The three
 * are released only when all echoes are done and every answer was right.
 */
#include "check.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { THREADS = 1000, ROUNDS = 8, SIZE = 64 };

static struct event blocked = EVENT_INIT;
static volatile int flag;
static int silent[2], file_a, file_b, let_go;
static int fd[THREADS][2];

static void *spins(void *arg)
{
	event_post(&blocked);
	while (!flag)
		;
	CHECK(__atomic_load_n(&let_go, __ATOMIC_ACQUIRE));
	return arg;
}

static void *reads_raw(void *arg)
{
	char c = 0;

	event_post(&blocked);
	CHECK_INT(read_raw(silent[0], &c, 1), 1);
	CHECK(__atomic_load_n(&let_go, __ATOMIC_ACQUIRE));
	CHECK_INT(c, 'x');
	return arg;
}

static void *wants_flock(void *arg)
{
	event_post(&blocked);
	CHECK_OK(flock(file_b, LOCK_EX));
	CHECK(__atomic_load_n(&let_go, __ATOMIC_ACQUIRE));
	return arg;
}

static void *echoes(void *arg)
{
	int mine = *(int *)arg;
	char buf[SIZE];

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(read_all(mine, buf, SIZE), SIZE);
		write_all(mine, buf, SIZE);
	}
	CHECK_INT(read(mine, buf, SIZE), 0);
	return arg;
}

int main(void)
{
	void *(*const sits[])(void *) = { spins, reads_raw, wants_flock };
	static pthread_t t[THREADS], sitter[COUNT(sits)];
	char name[] = "/tmp/check-XXXXXX", out[SIZE], in[SIZE];
	uint64_t seed = 1;
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	CHECK_OK(pipe(silent));
	file_a = mkstemp(name);
	file_b = open(name, O_RDWR);
	CHECK(file_a >= 0 && file_b >= 0);
	CHECK_OK(unlink(name));
	CHECK_OK(flock(file_a, LOCK_EX));

	for (unsigned i = 0; i < COUNT(sits); i++)
		sitter[i] = start(sits[i], NULL);
	event_wait(&blocked, COUNT(sits));
	for (int i = 0; i < THREADS; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]));
		t[i] = start(echoes, &fd[i][0]);
	}
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t again = seed;

		for (int i = 0; i < THREADS; i++) {
			memset(out, (int)random_next(&seed), SIZE);
			write_all(fd[i][1], out, SIZE);
		}
		for (int i = 0; i < THREADS; i++) {
			memset(out, (int)random_next(&again), SIZE);
			CHECK_INT(read_all(fd[i][1], in, SIZE), SIZE);
			CHECK_OK(memcmp(in, out, SIZE));
		}
	}
	for (int i = 0; i < THREADS; i++)
		close(fd[i][1]);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	puts("all echoed");

	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
	flag = 1;
	write_all(silent[1], "x", 1);
	CHECK_OK(flock(file_a, LOCK_UN));
	for (unsigned i = 0; i < COUNT(sits); i++)
		finish(sitter[i]);
	return success();
}
