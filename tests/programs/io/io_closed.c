/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_closed.c [ROUNDS] - a thread receives what it waited for and closes the
 * descriptor; it was the last to have it open, so the other end sees a hang-up. Also if the
 * kernel thread that made the request is in another call meanwhile.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/file.h>
#include <sys/socket.h>

enum { SETS = 2, READERS = 4 };

static long long end;
static int most_rounds = 2000, rounds, wrong;

struct set {
	sem_t begin[READERS], ready, done, move, moved;
	int fds[READERS];		/* what to write to */
	char name[32];			/* of a file to lock */
	int over;
};

struct reader {
	struct set *set;
	int number;
};

static void *reads(void *arg)
{
	struct reader *r = arg;
	struct set *s = r->set;

	for (int i = 0;; i++) {
		int p[2];
		char c;

		CHECK_OK(sem_wait(&s->begin[r->number]));
		if (s->over)
			return NULL;
		CHECK_OK((i + r->number) % 4 ? pipe(p) :
				socketpair(AF_UNIX, SOCK_STREAM, 0, p));
		s->fds[r->number] = p[1];
		CHECK_OK(sem_post(&s->ready));
		CHECK_INT(read(p[0], &c, 1), 1);
		CHECK_OK(close(p[0]));
		if (write(p[1], "y", 1) == 1)
			__atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
		else
			CHECK_INT(errno, EPIPE);
		CHECK_OK(close(p[1]));
		CHECK_OK(sem_post(&s->done));
	}
}

/* On the kernel thread that has just made the requests, perhaps. */
static void *moves(void *arg)
{
	struct set *s = arg;
	int fd = open(s->name, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	for (;;) {
		CHECK_OK(sem_wait(&s->move));
		if (s->over)
			break;
		CHECK_OK(flock(fd, LOCK_EX));
		CHECK_OK(flock(fd, LOCK_UN));
		CHECK_OK(sem_post(&s->moved));
	}
	CHECK_OK(close(fd));
	return NULL;
}

/* A kernel thread in any case: the others may all be asleep when it writes. */
static void *directs(void *arg)
{
	struct set *s = arg;
	int fd = open(s->name, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	for (int i = 0; i < most_rounds && now(CLOCK_MONOTONIC) < end; i++) {
		CHECK_OK(flock(fd, LOCK_EX));
		for (int k = 0; k < READERS; k++)
			CHECK_OK(sem_post(&s->begin[k]));
		for (int k = 0; k < READERS; k++)
			CHECK_OK(sem_wait(&s->ready));
		CHECK_OK(sem_post(&s->move));
		usleep(100);
		for (int k = 0; k < READERS; k++) {
			/* Its kernel thread comes back when the requests are complete. */
			if (k == i % READERS)
				CHECK_OK(flock(fd, LOCK_UN));
			CHECK_INT(write(s->fds[k], "x", 1), 1);
		}
		for (int k = 0; k < READERS; k++)
			CHECK_OK(sem_wait(&s->done));
		CHECK_OK(sem_wait(&s->moved));
		__atomic_add_fetch(&rounds, READERS, __ATOMIC_SEQ_CST);
	}
	s->over = 1;
	for (int k = 0; k < READERS; k++)
		CHECK_OK(sem_post(&s->begin[k]));
	CHECK_OK(sem_post(&s->move));
	CHECK_OK(close(fd));
	return NULL;
}

static void *run_set(void *arg)
{
	struct reader readers[READERS];
	pthread_t r[READERS], m, d;
	struct set s = { .name = "/tmp/check-XXXXXX" };
	int fd = mkstemp(s.name);

	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	CHECK_OK(sem_init(&s.ready, 0, 0));
	CHECK_OK(sem_init(&s.done, 0, 0));
	CHECK_OK(sem_init(&s.move, 0, 0));
	CHECK_OK(sem_init(&s.moved, 0, 0));
	for (int k = 0; k < READERS; k++) {
		CHECK_OK(sem_init(&s.begin[k], 0, 0));
		readers[k] = (struct reader){ &s, k };
		r[k] = start(reads, &readers[k]);
	}
	m = start(moves, &s);
	d = start_affine(directs, &s);
	finish(d);
	finish(m);
	for (int k = 0; k < READERS; k++)
		finish(r[k]);
	CHECK_OK(unlink(s.name));
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[SETS];

	if (argc > 1)
		most_rounds = atoi(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	end = now(CLOCK_MONOTONIC) + 1000 * MS;
	for (int i = 0; i < SETS; i++)
		t[i] = start(run_set, NULL);
	for (int i = 0; i < SETS; i++)
		finish(t[i]);
	if (wrong)
		fail(__FILE__, __LINE__, "open after close() in %d of %d rounds\n", wrong, rounds);
	return success();
}
