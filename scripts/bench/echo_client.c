/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/echo_client.c - load for a raw TCP echo server, or by the clock for HTTP.
 *
 *	echo_client [-c connections] [-d seconds] [-s size | --get path] [-h host]
 *		    [-w warmup_seconds] [-t timeout] [-r rate | --hold] port
 *
 * Each connection sends a message, waits for all of it to come back, compares
 * it byte for byte, and sends the next.  A message begins with the number of
 * its connection and a sequence number, so that neither another connection's
 * answer nor an old one passes.
 *
 *  setup    connections are opened a few at a time, each with one exchange, so
 *	     that no server's backlog overflows (a lost SYN costs a second)
 *  load     all connections at once, until warm-up and duration are over; then answers
 *	     that are still outstanding are awaited
 *  -r	     sends this many messages per second, evenly over time and connections.  If a
 *	     connection still waits for its last answer when a message is due, the message is
 *	     sent late, and its latency counts from when it was due: a server that stalls
 *	     cannot hide its delays.  Messages still unsent at the end count in the latencies
 *  --get    instead of messages that come back: requests of HTTP/1.1 for path. The server must
 *	     keep the connections open. An answer with a status of 400 or more is an error
 *  --hold   instead of load: passes of one exchange on every connection, all
 *	     of them kept open, until the duration is over, at least one
 *
 * Prints one "name value" per line.  requests, seconds and the rates count only what is
 * after warm-up; requests_total counts every exchange, to divide the
 * server's whole CPU time by.  Exit status: 0, 1 for errors of any kind,
 * 2 for a bad command line.
 *
 * One thread, one epoll, so that the load fits on one CPU beside the server's.
 */
#include "scripts/bench/echo_conn.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
	SETUP_AT_ONCE = 4,	/* below 5, the smallest backlog that servers use */
	ANSWER_AT_ONCE = 65536,	/* bytes */
};

static struct conn *conns;
static uint32_t nconns = 64;

/* No answer for too long: fail all connections that wait for one. */
static void give_up(double timeout)
{
	for (uint32_t i = 0; i < nconns; i++) {
		struct conn *c = &conns[i];

		if (c->fd >= 0 && (c->busy || !c->connected))
			conn_fail(c, "no answer for %g seconds", timeout);
	}
}

/*
 * Call conn_turn(). If no answer has arrived in the timeout seconds since *quiet_since, fail all
 * connections that wait for one.
 */
static void turn(bool again, uint64_t stop_at, uint64_t *quiet_since, double timeout)
{
	int n = conn_turn(again, stop_at, *quiet_since + (uint64_t)(timeout * 1e9));

	if (n < 0)
		give_up(timeout);
	else if (n > 0)
		*quiet_since = now_ns();
}

static void drain(double timeout)
{
	uint64_t quiet_since = now_ns();

	while (echo.outstanding)
		turn(false, 0, &quiet_since, timeout);
}

static void setup(const struct addrinfo *ai, double timeout)
{
	uint64_t quiet_since = now_ns();
	uint32_t opened = 0;

	while (echo.total + echo.errors < nconns) {
		while (opened < nconns && opened - (echo.total + echo.errors) < SETUP_AT_ONCE)
			conn_open(&conns[opened++], ai);
		turn(false, 0, &quiet_since, timeout);
		/* If no server answers, more attempts are useless. */
		if (echo.errors && !echo.alive && opened >= SETUP_AT_ONCE)
			break;
	}
}

static void begin_all(void)
{
	for (uint32_t i = 0; i < nconns; i++)
		if (!conns[i].dead && conns[i].fd >= 0)
			conn_begin(&conns[i], now_ns());
}

static void hold(double duration, double timeout)
{
	uint64_t end = now_ns() + (uint64_t)(duration * 1e9);
	uint64_t answered;

	do {
		uint64_t before = echo.total;

		begin_all();
		drain(timeout);
		answered = echo.total - before;
	} while (now_ns() < end && !echo.errors);
	printf("answered %llu\n", (unsigned long long)answered);
}

/*
 * Closed loop: each connection sends its next message when the answer is there. Returns when
 * the time is over or no connection is left.
 */
static void load_closed(double timeout)
{
	uint64_t quiet_since = now_ns();

	begin_all();
	while (echo.outstanding && now_ns() < echo.count_to)
		turn(true, echo.count_to, &quiet_since, timeout);
}

/* Open loop (-r): messages are due by the clock, one connection after the other. */
static void load_paced(uint64_t begun, double timeout)
{
	double gap = echo.period / nconns;
	uint64_t patience = (uint64_t)(timeout * 1e9);
	uint64_t quiet_since = begun, now;
	uint64_t k = 0;

	for (uint32_t i = 0; i < nconns; i++)
		conns[i].due = begun + (uint64_t)(gap * i);
	while (echo.alive && (now = now_ns()) < echo.count_to) {
		uint64_t next, give_up_at = quiet_since + patience;

		for (; (next = begun + (uint64_t)(gap * (double)k)) <= now; k++)
			conn_begin_due(&conns[k % nconns], now);
		if (conn_turn(true, echo.count_to, next < give_up_at ? next : give_up_at) > 0 || !echo.outstanding)
			quiet_since = now_ns();
		else if (now_ns() >= give_up_at)
			give_up(timeout);
	}
}

/*
 * With -r: count the messages that were due but never sent, because the server was too slow. Each has
 * waited at least until now. Without these messages the largest latencies would be missing.
 */
static void add_unsent(void)
{
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < nconns && echo.period; i++) {
		for (double due = (double)conns[i].due; due < (double)echo.count_to; due += echo.period) {
			if (due >= (double)echo.count_from)
				histogram_add(&echo.latencies, (now - (uint64_t)due) / 1000);
		}
	}
}

static void load(double warmup, double duration, double timeout)
{
	uint64_t begun = now_ns(), requests;
	double seconds;

	echo.count_from = begun + (uint64_t)(warmup * 1e9);
	echo.count_to = echo.count_from + (uint64_t)(duration * 1e9);
	if (echo.period)
		load_paced(begun, timeout);
	else
		load_closed(timeout);
	seconds = (double)((now_ns() < echo.count_to ? now_ns() : echo.count_to) - begun) / 1e9 - warmup;
	drain(timeout);
	requests = echo.latencies.count;
	add_unsent();
	printf("requests %llu\n", (unsigned long long)requests);
	printf("seconds %.3f\n", seconds);
	printf("requests_per_second %.1f\n", seconds > 0 ? (double)requests / seconds : 0);
	printf("latency_p50_us %.1f\n", histogram_percentile(&echo.latencies, 0.50));
	printf("latency_p99_us %.1f\n", histogram_percentile(&echo.latencies, 0.99));
	printf("latency_p999_us %.1f\n", histogram_percentile(&echo.latencies, 0.999));
}

static void raise_files(uint32_t wanted)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	if (rl.rlim_max < wanted) {
		struct rlimit more = { wanted, wanted };

		if (!setrlimit(RLIMIT_NOFILE, &more))
			return;
		echo_die(1, "%u connections need %u descriptors, the limit is %llu (ulimit -n)",
		    nconns, wanted, (unsigned long long)rl.rlim_max);
	}
	if (rl.rlim_cur < wanted) {
		rl.rlim_cur = wanted;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

static const char usage[] =
	"usage: echo_client [-c connections] [-d seconds] [-s size | --get path] [-h host]\n"
	"                   [-w warmup_seconds] [-t timeout_seconds] [-r rate | --hold] port\n";

/* Allocate the connections. request is the HTTP request that each sends; NULL: each sends messages. */
static void make_conns(char *request)
{
	if (request) {
		echo.http = true;
		echo.size = strlen(request);
	}
	echo.in_size = echo.size > ANSWER_AT_ONCE ? echo.size : ANSWER_AT_ONCE;
	echo.epfd = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc(nconns, sizeof(*conns));
	echo.in = malloc(echo.in_size);
	if (echo.epfd < 0 || !conns || !echo.in)
		echo_die(1, "out of memory");
	for (uint32_t i = 0; i < nconns; i++) {
		uint32_t x = i * 2654435761u + 1;

		conns[i].fd = -1;
		conns[i].id = i;
		if (request) {
			conns[i].out = (unsigned char *)request;
			continue;
		}
		conns[i].out = malloc(echo.size);
		if (!conns[i].out)
			echo_die(1, "out of memory");
		for (size_t k = 0; k < echo.size; k++) {
			x = x * 1664525u + 1013904223u;
			conns[i].out[k] = (unsigned char)(x >> 24);
		}
	}
}

/* Resolve host: a name, an address, or [::1] as in a URL. */
static struct addrinfo *resolve(char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *ai;
	int err;

	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host = strdup(host + 1);
		if (!host)
			echo_die(1, "out of memory");
		host[strlen(host) - 1] = '\0';
	}
	err = getaddrinfo(host, port, &hints, &ai);
	if (err)
		echo_die(1, "%s: %s", host, gai_strerror(err));
	return ai;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "hold", no_argument, NULL, 'H' },
		{ "get", required_argument, NULL, 'G' },
		{ "help", no_argument, NULL, '?' },
		{ NULL, 0, NULL, 0 },
	};
	struct addrinfo *ai;
	double duration = -1, warmup = 0, timeout = 10, rate = 0;
	char *host = "127.0.0.1", *path = NULL, *request = NULL;
	char port[8];
	bool holding = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "c:d:s:h:w:t:r:", longs, NULL)) != -1) {
		switch (opt) {
		case 'c': nconns = (uint32_t)to_number(optarg, "-c", 1, 1000000); break;
		case 'd': duration = to_number(optarg, "-d", 0, 86400); break;
		case 's': echo.size = (size_t)to_number(optarg, "-s", 1, 1 << 26); break;
		case 'h': host = optarg; break;
		case 'w': warmup = to_number(optarg, "-w", 0, 86400); break;
		case 't': timeout = to_number(optarg, "-t", 0.1, 86400); break;
		case 'r': rate = to_number(optarg, "-r", 1, 1e8); break;
		case 'H': holding = true; break;
		case 'G': path = optarg; break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind != argc - 1 || (rate && holding)) {
		fputs(usage, stderr);
		return 2;
	}
	echo.period = rate ? 1e9 * nconns / rate : 0;
	if (duration < 0)
		duration = holding ? 0 : 5;
	snprintf(port, sizeof(port), "%d", (int)to_number(argv[optind], "port", 1, 65535));

	ai = resolve(host, port);
	raise_files(nconns + 16);

	if (path && asprintf(&request, "GET %s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", path, host, port) < 0)
		echo_die(1, "out of memory");
	make_conns(request);
	setup(ai, timeout);
	printf("open %u\n", echo.alive);
	fflush(stdout);
	if (echo.alive) {
		if (holding)
			hold(duration, timeout);
		else
			load(warmup, duration, timeout);
	}
	printf("requests_total %llu\n", (unsigned long long)echo.total);
	printf("errors %llu\n", (unsigned long long)(echo.errors + echo.refused));
	freeaddrinfo(ai);
	return echo.errors || echo.refused || !echo.total ? 1 : 0;
}
