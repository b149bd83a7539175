/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/legacy_server.c - a thread-per-connection server.
 *
 * HTTP/1.1 with keep-alive and pipelining, or a raw echo, in blocking POSIX
 * calls, as it would have been written in 2005.  One detached thread for each
 * connection, or a fixed number of workers that take connections from a queue.
 *
 *	GET or HEAD /        the body
 *	GET or HEAD /stats   the table of statistics, also printed at the end
 *
 * With -x three more threads stay, while the server runs, where no library sees
 * them: in a loop, in a read of a silent pipe by an inline system call, in flock.
 *
 * SIGTERM or SIGINT ends it with status 0.
 */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "legacy_http.h"

/* Connections that wait for a worker. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled, drained;
	int fd[1024];
	unsigned head, tail;
} queue = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.filled = PTHREAD_COND_INITIALIZER,
	.drained = PTHREAD_COND_INITIALIZER,
};

static volatile sig_atomic_t stop;
static int raw_echo;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void serve_echo(int fd)
{
	char buf[16384];
	size_t received;

	while ((received = receive(fd, buf, sizeof(buf))) > 0) {
		if (send_all(fd, buf, received))
			return;
		pthread_mutex_lock(&stats.lock);
		stats.value[REQUESTS]++;
		stats.value[BYTES_IN] += received;
		pthread_mutex_unlock(&stats.lock);
	}
}

static void serve(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	count(CONNECTIONS, 1);
	count(OPEN, 1);
	if (raw_echo)
		serve_echo(fd);
	else
		serve_http(fd);
	close(fd);
	count(OPEN, -1);
}

static void *connection_thread(void *arg)
{
	serve((int)(intptr_t)arg);
	return NULL;
}

static void *worker_thread(void *arg)
{
	for (;;) {
		int fd;

		pthread_mutex_lock(&queue.lock);
		while (queue.head == queue.tail)
			pthread_cond_wait(&queue.filled, &queue.lock);
		fd = queue.fd[queue.head++ % 1024];
		pthread_cond_signal(&queue.drained);
		pthread_mutex_unlock(&queue.lock);
		serve(fd);
	}
	return arg;
}

/* Give the connection to a worker; false if told to stop meanwhile. */
static int enqueue(int fd)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.tail - queue.head == 1024 && !stop) {
		struct timespec soon;

		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_sec++;
		pthread_cond_timedwait(&queue.drained, &queue.lock, &soon);
	}
	if (!stop)
		queue.fd[queue.tail++ % 1024] = fd;
	pthread_cond_signal(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
	return !stop;
}

static void *spins(void *arg)
{
	while (!stop)
		;
	return arg;
}

static void *reads_raw(void *arg)
{
	long fd = *(int *)arg, r;
	char c;

#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(r)
			 : "0"((long)SYS_read), "D"(fd), "S"(&c), "d"(1L)
			 : "rcx", "r11", "memory");
#else
	r = syscall(SYS_read, fd, &c, 1);
#endif
	(void)r;
	return arg;
}

static void *wants_flock(void *arg)
{
	flock(*(int *)arg, LOCK_EX);
	return arg;
}

static void obstruct(void)
{
	static int silent[2], locked[2];
	char name[] = "/tmp/legacy-XXXXXX";
	pthread_t t;

	locked[0] = mkstemp(name);
	if (locked[0] < 0 || (locked[1] = open(name, O_RDWR)) < 0 || unlink(name) ||
	    flock(locked[0], LOCK_EX) || pipe(silent) ||
	    pthread_create(&t, NULL, spins, NULL) ||
	    pthread_create(&t, NULL, reads_raw, &silent[0]) ||
	    pthread_create(&t, NULL, wants_flock, &locked[1]))
		die("-x");
}

static void usage(void)
{
	fputs("usage: legacy_server [-ex] [-p PORT] [-w WORKERS] [-b BODY-BYTES]"
	      " [-s STACK-BYTES]\n", stderr);
	exit(2);
}

static long number(const char *text, long low, long high)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < low || n > high)
		usage();
	return n;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t address_len = sizeof(address);
	struct sigaction action;
	struct rlimit limit;
	pthread_attr_t attr;
	char text[1024];
	int workers = 0, port = 0, in_the_way = 0, listener, one = 1, opt;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while ((opt = getopt(argc, argv, "exp:w:b:s:")) != -1) {
		switch (opt) {
		case 'e':
			raw_echo = 1;
			break;
		case 'x':
			in_the_way = 1;
			break;
		case 'p':
			port = (int)number(optarg, 0, 65535);
			break;
		case 'w':
			workers = (int)number(optarg, 0, 100000);
			break;
		case 'b':
			body_size = (size_t)number(optarg, 0, 1 << 30);
			break;
		case 's':
			if (pthread_attr_setstacksize(&attr,
					(size_t)number(optarg, 0, 1 << 30)))
				usage();
			break;
		default:
			usage();
		}
	}
	if (optind != argc)
		usage();

	body = malloc(body_size + 1);
	if (!body)
		die("malloc");
	for (size_t i = 0; i < body_size; i++)
		body[i] = "Hello, world\n"[i % 13];

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_stop;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0)
		die("socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	address.sin_addr.s_addr = htonl(INADDR_ANY);
	address.sin_port = htons((unsigned short)port);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)))
		die("bind");
	if (listen(listener, 65535))
		die("listen");
	getsockname(listener, (struct sockaddr *)&address, &address_len);
	printf("listening on %d\n", ntohs(address.sin_port));
	fflush(stdout);

	if (in_the_way)
		obstruct();
	for (int i = 0; i < workers; i++) {
		pthread_t t;

		errno = pthread_create(&t, &attr, worker_thread, NULL);
		if (errno)
			die("pthread_create");
	}

	while (!stop) {
		int fd = accept(listener, NULL, NULL);
		pthread_t t;

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
				count(ERRORS, 1);
				usleep(10000);
			} else if (errno != EINTR && errno != ECONNABORTED) {
				die("accept");
			}
			continue;
		}
		if (workers) {
			if (!enqueue(fd))
				close(fd);
			continue;
		}
		errno = pthread_create(&t, &attr, connection_thread,
				       (void *)(intptr_t)fd);
		if (errno) {
			count(ERRORS, 1);
			close(fd);
		}
	}
	close(listener);
	fwrite(text, 1, print_stats(text, sizeof(text)), stdout);
	return 0;
}
