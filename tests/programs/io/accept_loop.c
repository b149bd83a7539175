/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/accept_loop.c PORT RESTART - while (!stop) { accept(); pthread_create(); }
 * with a handler of SIGTERM and SIGINT, with SA_RESTART or without; then the handler
 * closes the listener by shutdown.  Without arguments it tries both on itself.
 */
#include "check.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>

static volatile sig_atomic_t stop;
static int listener, restarts, lost;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
	/* accept() goes on after it: so it must have something to answer. */
	if (restarts)
		shutdown(listener, SHUT_RDWR);
}

static void *serves(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char text[64];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		if (write(fd, text, (size_t)n) != n)
			break;
	close(fd);
	return NULL;
}

static int serve(int port, int ready)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	socklen_t length = sizeof(address);
	struct sigaction sa = { .sa_handler = on_stop, .sa_flags = restarts ? SA_RESTART : 0 };
	int on = 1, fd, err = 0;
	pthread_t t;

	sigemptyset(&sa.sa_mask);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK_OK(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(listen(listener, 128));
	CHECK_OK(sigaction(SIGTERM, &sa, NULL));
	CHECK_OK(sigaction(SIGINT, &sa, NULL));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &length));
	if (ready >= 0)
		CHECK_INT(write(ready, &address, sizeof(address)), sizeof(address));
	while (!stop) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0) {
			err = errno;
			continue;
		}
		CHECK_OK(pthread_create(&t, NULL, serves, (void *)(intptr_t)fd));
		CHECK_OK(pthread_detach(t));
	}
	/* Or it came between two calls. */
	return err == (restarts ? EINVAL : EINTR) || err == 0 ? 20 : 21;
}

static void try_it(int sig)
{
	struct sockaddr_in address;
	int p[2], status, fds[4], waited = 0;
	pid_t pid;
	char c;

	CHECK_OK(pipe(p));
	pid = fork();
	if (pid == 0)
		exit(serve(0, p[1]));
	CHECK_INT(read(p[0], &address, sizeof(address)), sizeof(address));
	for (int i = 0; i < 4; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		CHECK_OK(connect(fds[i], (struct sockaddr *)&address, sizeof(address)));
		CHECK_INT(write(fds[i], "x", 1), 1);
		CHECK_INT(read(fds[i], &c, 1), 1);
	}
	/* Back in accept(), or nearly: natively it is a race, too, which few lose. */
	usleep(20000);
	CHECK_OK(kill(pid, sig));
	while (waitpid(pid, &status, WNOHANG) == 0) {
		usleep(1000);
		if (++waited % 2000 == 0) {
			CHECK(++lost < 4);
			CHECK_OK(kill(pid, sig));
		}
	}
	CHECK_INT(status, 20 << 8);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	close(p[0]);
	close(p[1]);
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		restarts = atoi(argv[2]);
		return serve(atoi(argv[1]), -1);
	}
	for (int i = 0; i < 24; i++) {
		restarts = i % 2;
		try_it(i % 4 < 2 ? SIGTERM : SIGINT);
	}
	return success();
}
