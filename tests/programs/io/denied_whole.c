/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/denied_whole.c - a seccomp filter answers an error to one system call; a call with MSG_WAITALL still
 * receives all that it asks for, unless a handler ends it.
 */
#include "check.h"
#include "denied.h"

/* A call that receives all of LARGE bytes, in several ways. */
static void by_whole(void)
{
	struct iovec in[2] = { { received, 5 }, { received + 5, LARGE - 5 } };
	struct mmsghdr several = { .msg_hdr = { .msg_iov = in, .msg_iovlen = 2 } };
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	pthread_t third;

	for (int way = 0; way < 4; way++) {
		if (!may(way < 2 ? SYS_recvfrom : way == 2 ? SYS_recvmsg : SYS_recvmmsg))
			continue;
		memset(received, 0, LARGE);
		third = start(reads_pipe, NULL);
		switch (way) {
		case 0:
			WHILE(write_stream_slowly,
			      CHECK_INT(recv(streams[0], received, LARGE, MSG_WAITALL), LARGE));
			break;
		case 1:
			WHILE(write_stream_slowly,
			      CHECK_INT(recvfrom(streams[0], received, LARGE, MSG_WAITALL,
						 (struct sockaddr *)&from, &size), LARGE));
			break;
		case 2:
			WHILE(write_stream_slowly,
			      CHECK_INT(recvmsg(streams[0], &several.msg_hdr, MSG_WAITALL), LARGE));
			break;
		default:
			WHILE(write_stream_slowly,
			      CHECK_INT(recvmmsg(streams[0], &several, 1, MSG_WAITALL, NULL), 1));
			CHECK_INT(several.msg_len, LARGE);
		}
		CHECK_OK(memcmp(sent, received, LARGE));
		finish(third);
	}
}

static _Atomic int returned;

static void note(int sig)
{
	(void)sig;
}

/* Signals come before the call, too: they end nothing. */
static void *interrupts(void *arg)
{
	while (!returned) {
		CHECK_OK(pthread_kill(*(pthread_t *)arg, SIGUSR1));
		usleep(100);
	}
	return arg;
}

/* A handler ends such a call after the part that is there. */
static void by_handler(void)
{
	const struct sigaction action = { .sa_handler = note };
	pthread_t self = pthread_self(), other;

	if (!may(SYS_rt_sigaction) || !may(SYS_rt_sigprocmask) || !may(SYS_getpid) || !may(SYS_gettid) ||
	    !may(SYS_tgkill) || !may(SYS_clock_nanosleep))
		return;
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 40; i++) {
		const int way = i % 2;
		struct iovec in = { received, 100 };
		struct mmsghdr one = { .msg_hdr = { .msg_iov = &in, .msg_iovlen = 1 } };

		if (!may(way ? SYS_recvmmsg : SYS_recvfrom))
			continue;
		CHECK_INT(write(streams[1], "abc", 3), 3);
		returned = 0;
		other = start(interrupts, &self);
		if (way) {
			CHECK_INT(recvmmsg(streams[0], &one, 1, MSG_WAITALL, NULL), 1);
			CHECK_INT(one.msg_len, 3);
		} else {
			CHECK_INT(recv(streams[0], received, 100, MSG_WAITALL), 3);
		}
		returned = 1;
		finish(other);
	}
}

static void call_all(void)
{
	if (!may(SYS_read) || !may(SYS_write))
		return;
	by_whole();
	by_handler();
}

int main(int argc, char **argv)
{
	run_all_denied(argc, argv, by_whole, call_all);
	return success();
}
