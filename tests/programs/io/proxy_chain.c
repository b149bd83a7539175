/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/proxy_chain.c - client, proxy and echo threads, several chains.
 *
 * The proxy is the loop of real ones: poll on two descriptors, copy what came.
 */
#include "sockets.h"

#include <poll.h>

#define CHAINS 12
#define ROUNDS 25

static struct sockaddr_in echo_address, proxy_address;

static void *echo(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[5000];
	ssize_t r;

	while ((r = read(fd, buf, sizeof(buf))) > 0)
		write_all(fd, buf, (size_t)r);
	CHECK_OK(r);
	close(fd);
	return NULL;
}

static void *proxy(void *arg)
{
	int client = (int)(intptr_t)arg, server = dial(&echo_address);
	struct pollfd p[2] = { { client, POLLIN, 0 }, { server, POLLIN, 0 } };
	char buf[3000];
	int open = 2;

	while (open) {
		CHECK(poll(p, 2, 30000) > 0);
		for (int i = 0; i < 2; i++) {
			ssize_t r;

			if (!(p[i].revents & (POLLIN | POLLHUP)))
				continue;
			r = read(i ? server : client, buf, sizeof(buf));
			CHECK(r >= 0);
			if (r) {
				write_all(i ? client : server, buf, (size_t)r);
				continue;
			}
			CHECK_OK(shutdown(i ? client : server, SHUT_WR));
			p[i].fd = -1;
			open--;
		}
	}
	close(client);
	close(server);
	return NULL;
}

struct acceptor {
	int fd;
	void *(*serve)(void *);
};

static void *accepts(void *arg)
{
	struct acceptor *a = arg;
	pthread_t t[CHAINS];

	for (int i = 0; i < CHAINS; i++) {
		int fd = accept(a->fd, NULL, NULL);

		CHECK(fd >= 0);
		t[i] = start(a->serve, (void *)(intptr_t)fd);
	}
	for (int i = 0; i < CHAINS; i++)
		finish(t[i]);
	close(a->fd);
	return NULL;
}

static void *writes(void *arg)
{
	int fd = ((int *)arg)[0];
	uint64_t seed = (uint64_t)((int *)arg)[1];

	for (int i = 0; i < ROUNDS; i++) {
		char buf[20000];
		size_t n = 1 + random_next(&seed) % sizeof(buf);

		for (size_t k = 0; k < n; k++)
			buf[k] = (char)(k * 3 + n);
		write_all(fd, buf, n);
	}
	CHECK_OK(shutdown(fd, SHUT_WR));
	return NULL;
}

static void *client(void *arg)
{
	int fd = dial(&proxy_address);
	uint64_t seed = (uint64_t)(intptr_t)arg + 1;
	int job[2] = { fd, (int)seed };
	pthread_t t = start(writes, job);
	char buf[20000], c;

	for (int i = 0; i < ROUNDS; i++) {
		size_t n = 1 + random_next(&seed) % sizeof(buf);

		CHECK_INT(read_all(fd, buf, n), n);
		for (size_t k = 0; k < n; k++)
			CHECK_INT(buf[k], (char)(k * 3 + n));
	}
	CHECK_OK(read(fd, &c, 1));
	finish(t);
	close(fd);
	return NULL;
}

int main(void)
{
	struct acceptor e, p;
	pthread_t t[CHAINS + 2];

	e.fd = listening_socket(0, &echo_address);
	e.serve = echo;
	p.fd = listening_socket(0, &proxy_address);
	p.serve = proxy;
	t[CHAINS] = start(accepts, &e);
	t[CHAINS + 1] = start(accepts, &p);
	for (intptr_t i = 0; i < CHAINS; i++)
		t[i] = start(client, (void *)i);
	for (int i = 0; i < CHAINS + 2; i++)
		finish(t[i]);
	return success();
}
