/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/sends.c - send messages that are not on the stack, on a UDP socket that comes from before an exec, and on a
 * Unix socket.
 *
 *	sends ROUNDS THREADS
 *
 * In each round 16 messages by sendmmsg and one by sendmsg on each; beside THREADS threads that have ended, 0 or 1.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES = 16 };

static struct mmsghdr messages[MESSAGES];
static struct iovec part;
static char byte;

static void must(int done, const char *what)
{
	if (done)
		return;
	perror(what);
	exit(1);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Again, with its socket as a third argument. */
static void with_socket(char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char text[16];

	must(!bind(fd, (struct sockaddr *)&address, size), "bind");
	must(!getsockname(fd, (struct sockaddr *)&address, &size), "getsockname");
	must(!connect(fd, (struct sockaddr *)&address, size), "connect");
	snprintf(text, sizeof(text), "%d", fd);
	execl(argv[0], argv[0], argv[1], argv[2], text, NULL);
	must(0, argv[0]);
}

static void send_some(int fd)
{
	must(sendmmsg(fd, messages, MESSAGES, 0) == MESSAGES, "sendmmsg");
	must(sendmsg(fd, &messages[0].msg_hdr, 0) == 1, "sendmsg");
}

int main(int argc, char **argv)
{
	int pair[2];
	pthread_t t;

	must(argc >= 3, "arguments");
	if (argc == 3)
		with_socket(argv);
	if (atoi(argv[2])) {
		must(!pthread_create(&t, NULL, nothing, NULL), "pthread_create");
		must(!pthread_join(t, NULL), "pthread_join");
	}
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	part = (struct iovec){ &byte, 1 };
	for (int i = 0; i < MESSAGES; i++) {
		messages[i].msg_hdr.msg_iov = &part;
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	for (int i = 0; i < atoi(argv[1]); i++) {
		char bytes[MESSAGES + 1];

		send_some(atoi(argv[3]));
		send_some(pair[0]);
		must(recv(pair[1], bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes), "recv");
	}
	return 0;
}
