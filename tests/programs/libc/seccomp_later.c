/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/seccomp_later.c - a seccomp filter that is installed while threads run:
 * new kernel interfaces fail with EPERM from then on, and all else continues.
 */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { PAIRS = 12, ROUNDS = 200 };

static int pairs[PAIRS][2], closed_pipe[2];
static struct event ready = EVENT_INIT;

/* Half of them wait by poll first. */
static void *echo(void *arg)
{
	intptr_t i = (intptr_t)arg, rounds = 0;
	char c;

	event_post(&ready);
	for (;;) {
		struct pollfd p = { .fd = pairs[i][0], .events = POLLIN };

		if (i % 2)
			CHECK_INT(poll(&p, 1, -1), 1);
		if (read(pairs[i][0], &c, 1) != 1)
			break;
		CHECK_INT(write(pairs[i][0], &c, 1), 1);
		rounds++;
	}
	return (void *)rounds;
}

static void *read_end(void *arg)
{
	char c;

	event_post(&ready);
	return (void *)read(closed_pipe[0], &c, 1);
}

static void *sleeper(void *arg)
{
	for (int i = 0; i < 50; i++)
		usleep(1000);
	return arg;
}

static void forbid_new_interfaces(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 425, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 427, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { COUNT(code), code };

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			 &filter));
}

static void exchange(void)
{
	char c = 'e';

	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < PAIRS; i++)
			CHECK_INT(write(pairs[i][1], &c, 1), 1);
		for (int i = 0; i < PAIRS; i++)
			CHECK_INT(read(pairs[i][1], &c, 1), 1);
	}
}

int main(void)
{
	pthread_t threads[PAIRS], reader, other;

	CHECK_OK(pipe(closed_pipe));
	for (intptr_t i = 0; i < PAIRS; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]));
		threads[i] = start(echo, (void *)i);
	}
	reader = start(read_end, NULL);
	event_wait(&ready, PAIRS + 1);
	exchange();
	settle();
	forbid_new_interfaces();
	CHECK_ERR(syscall(425, 1, NULL), EPERM);
	puts("closed");
	exchange();
	other = start(sleeper, &ready);
	exchange();
	CHECK(finish(other) == &ready);
	close(closed_pipe[1]);
	CHECK(finish(reader) == NULL);
	for (int i = 0; i < PAIRS; i++) {
		shutdown(pairs[i][1], SHUT_WR);
		CHECK((intptr_t)finish(threads[i]) == 3 * ROUNDS);
	}
	puts("EXIT-SUCCESS");
	return 0;
}
