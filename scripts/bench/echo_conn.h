/* SPDX-License-Identifier: MIT */
#ifndef FZ_BENCH_ECHO_CONN_H
#define FZ_BENCH_ECHO_CONN_H

/*
 * scripts/bench/echo_conn.h - the connections of echo_client.c: each sends a message and
 * compares the answer, or sends a request of HTTP and reads the answer. One thread.
 */

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scripts/bench/histogram.h"
#include "scripts/bench/http_answer.h"
#include "scripts/bench/number.h"

struct conn {
	int fd;
	uint32_t id;
	uint32_t seq;
	size_t sent;		/* bytes of the current message */
	size_t got;		/* bytes of its answer */
	uint64_t start;		/* when the message was begun; with -r: when it was due, ns */
	uint64_t due;		/* with -r: when the next message is due, ns */
	bool connected;
	bool busy;		/* a message or its answer is under way */
	bool want_out;		/* EPOLLOUT is registered */
	bool dead;
	unsigned char *out;	/* the message, size bytes */
	struct http_answer answer;	/* with --get */
};

/* Shared by all connections. */
struct echo {
	size_t size;			/* of a message, bytes */
	bool http;			/* the message is a request of HTTP */
	int epfd;
	uint32_t alive, outstanding;
	uint64_t total, errors;
	uint64_t refused;		/* requests of HTTP with a status of 400 or more; they count in total */
	uint64_t count_from, count_to;	/* only answers between these times count, ns */
	double period;			/* with -r: from one message of a connection to the next, ns */
	struct histogram latencies;	/* of answers that count */
	size_t in_size;
	unsigned char *in;		/* in_size bytes, at least size, for what is received */
};
extern struct echo echo;

/* Print a message and end the program. */
__attribute__((format(printf, 2, 3), noreturn)) void echo_die(int status, const char *fmt, ...);

/* Begin to connect to ai. */
void conn_open(struct conn *c, const struct addrinfo *ai);

/* Count an error, print the first few, and close the connection. */
__attribute__((format(printf, 2, 3))) void conn_fail(struct conn *c, const char *fmt, ...);

/* Send the next message. */
void conn_begin(struct conn *c, uint64_t now);

/* Send the next message if it is due. */
void conn_begin_due(struct conn *c, uint64_t now);

/*
 * Wait for events and advance every connection that has one. With again, a connection whose answer
 * is complete sends its next message, if the time is before stop_at. stop_at and deadline are times
 * in ns. Returns the number of answers completed, or -1 if there was no event before deadline.
 */
int conn_turn(bool again, uint64_t stop_at, uint64_t deadline);

#endif
