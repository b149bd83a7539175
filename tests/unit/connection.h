/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_UNIT_CONNECTION_H
#define FZ_TESTS_UNIT_CONNECTION_H

/* tests/unit/connection.h - both ends of a TCP connection to this machine. */

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static inline void connect_ends(int ends[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(ends[1], (struct sockaddr *)&address, size), 0);
	ends[0] = accept(listener, NULL, NULL);
	cr_assert_geq(ends[0], 0);
	close(listener);
}

#endif
