/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/accept_there.c - on one CPU, who accepts connections that are there already, and makes a thread
 * that computes for each, does not wait for these threads in accept().
 */
#include "check.h"
#include "sockets.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { CONNECTIONS = 48 };

static _Atomic unsigned long computed;
static _Atomic bool over;

static void *computes(void *arg)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		atomic_fetch_add_explicit(&computed, 1, memory_order_relaxed);
	return arg;
}

static void use_one_cpu(void)
{
	cpu_set_t one;

	first_cpu(&one);
	CHECK_OK(sched_setaffinity(0, sizeof(one), &one));
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), client[CONNECTIONS], at_once = 0;
	pthread_t t[CONNECTIONS];

	use_one_cpu();
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &length));
	CHECK_OK(listen(listener, CONNECTIONS));
	for (int i = 0; i < CONNECTIONS; i++) {
		client[i] = socket(AF_INET, SOCK_STREAM, 0);
		CHECK_OK(connect(client[i], (struct sockaddr *)&address, sizeof(address)));
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		const unsigned long before = computed;
		int fd = accept(listener, NULL, NULL);

		CHECK(fd >= 0);
		at_once += computed == before;
		CHECK_OK(close(fd));
		t[i] = start(computes, NULL);
	}
	over = true;
	for (int i = 0; i < CONNECTIONS; i++) {
		finish(t[i]);
		close(client[i]);
	}
	/* Its time may be up in any of them, but not in most. */
	CHECK(at_once > CONNECTIONS * 3 / 4);
	return success();
}
