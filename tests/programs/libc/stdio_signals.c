/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/stdio_signals.c - signals and cancellation for threads that sit in
 * stdio.
 */
#include "sockets.h"


static volatile sig_atomic_t handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

struct reader {
	FILE *f;
	int got, error;
	struct event began;
};

static void *reads_one(void *arg)
{
	struct reader *r = arg;

	event_post(&r->began);
	errno = 0;
	r->got = fgetc(r->f);
	r->error = errno;
	return NULL;
}

static void interrupted(enum pair_kind kind, int flags)
{
	struct sigaction sa = { .sa_handler = count, .sa_flags = flags };
	struct reader r = { .began = EVENT_INIT };
	pthread_t t;
	int fd[2];

	make_pair(kind, fd);
	r.f = fdopen(fd[0], "r");
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	handled = 0;
	t = start(reads_one, &r);
	event_wait(&r.began, 1);
	/* Not for us. */
	mask_signal(SIG_BLOCK, SIGUSR1);
	usleep(20000);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	while (!handled)
		usleep(1000);
	if (flags & SA_RESTART) {
		usleep(5000);
		write_all(fd[1], "z", 1);
		finish(t);
	} else {
		/* It may have come before the read on a busy machine: again, by and by. */
		for (int i = 1; pthread_tryjoin_np(t, NULL) == EBUSY; i++) {
			usleep(1000);
			if (i % 1000 == 0)
				CHECK_OK(pthread_kill(t, SIGUSR1));
		}
	}
	mask_signal(SIG_UNBLOCK, SIGUSR1);
	if (flags & SA_RESTART) {
		CHECK_INT(r.got, 'z');
	} else {
		CHECK_INT(r.got, EOF);
		CHECK_INT(r.error, EINTR);
		CHECK(ferror(r.f));
	}
	fclose(r.f);
	close(fd[1]);
}

static void *waits_for_ever(void *arg)
{
	struct reader *r = arg;
	char line[64];

	event_post(&r->began);
	fgets(line, sizeof(line), r->f);
	return NULL;
}

/* Leaves the FILE unlocked. */
static void cancelled(enum pair_kind kind)
{
	struct reader r = { .began = EVENT_INIT };
	pthread_t t;
	int fd[2];

	make_pair(kind, fd);
	r.f = fdopen(fd[0], "r");
	t = start(waits_for_ever, &r);
	event_wait(&r.began, 1);
	usleep(5000);
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_OK(ftrylockfile(r.f));
	funlockfile(r.f);
	write_all(fd[1], "y", 1);
	CHECK_INT(fgetc(r.f), 'y');
	fclose(r.f);
	close(fd[1]);
}

int main(void)
{
	for (enum pair_kind kind = 0; kind < KINDS; kind++) {
		interrupted(kind, 0);
		interrupted(kind, SA_RESTART);
		cancelled(kind);
		printf("kind %d\n", kind);
	}
	return success();
}
