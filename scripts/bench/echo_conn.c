/* SPDX-License-Identifier: MIT */
#include "scripts/bench/echo_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum {
	PER_SOURCE = 20000,	/* connections from one loopback address */
	EVENTS = 512,
};

struct echo echo = { .size = 64, .count_from = UINT64_MAX };

void echo_die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("echo_client: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

/* Prints the first few errors only; all are counted. */
void conn_fail(struct conn *c, const char *fmt, ...)
{
	va_list ap;

	if (echo.errors++ < 5) {
		fprintf(stderr, "echo_client: connection %u: ", c->id);
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fputc('\n', stderr);
	}
	if (c->busy)
		echo.outstanding--;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->busy = false;
	c->dead = true;
	echo.alive--;
}

static void want(struct conn *c, bool out)
{
	struct epoll_event ev = { .events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c };

	if (c->want_out == out)
		return;
	c->want_out = out;
	if (epoll_ctl(echo.epfd, EPOLL_CTL_MOD, c->fd, &ev))
		echo_die(1, "epoll_ctl: %s", strerror(errno));
}

static void push(struct conn *c)
{
	while (c->sent < echo.size) {
		ssize_t n = send(c->fd, c->out + c->sent, echo.size - c->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			conn_fail(c, "send: %s", strerror(errno));
			return;
		}
		c->sent += (size_t)n;
	}
	want(c, c->sent < echo.size);
}

void conn_begin(struct conn *c, uint64_t now)
{
	unsigned char head[8];

	c->seq++;
	memcpy(head, &c->id, 4);
	memcpy(head + 4, &c->seq, 4);
	if (echo.http)
		memset(&c->answer, 0, sizeof(c->answer));
	else if (echo.size < sizeof(head))
		/* The message is too short for both numbers: vary at least the sequence. */
		c->out[0] = (unsigned char)(c->id * 31 + c->seq);
	else
		memcpy(c->out, head, sizeof(head));
	c->sent = c->got = 0;
	c->start = now;
	c->busy = true;
	echo.outstanding++;
	push(c);
}

/* Send the next message if it is due. */
void conn_begin_due(struct conn *c, uint64_t now)
{
	uint64_t due = c->due;

	if (c->busy || c->dead || c->fd < 0 || due > now || due >= echo.count_to)
		return;
	c->due += (uint64_t)echo.period;
	conn_begin(c, due);
}

/* The answer is complete. */
static void answered(struct conn *c, uint64_t *ret_now)
{
	*ret_now = now_ns();
	c->busy = false;
	echo.outstanding--;
	echo.total++;
	/* With -r a message counts if it was due in time, however late its answer is. */
	if (c->start >= echo.count_from && (echo.period ? c->start : *ret_now) <= echo.count_to)
		histogram_add(&echo.latencies, (*ret_now - c->start) / 1000);
}

/* Count an answer with a status of 400 or more. Its connection stays in use. */
static void refused(const struct conn *c)
{
	if (echo.refused++ < 5)
		fprintf(stderr, "echo_client: connection %u: HTTP status %u\n", c->id, c->answer.status);
}

/* pull() for HTTP: receive what is there. Returns true when the answer is complete. */
static bool pull_http(struct conn *c, uint64_t *ret_now)
{
	enum http_progress progress = HTTP_MORE;
	size_t used = 0;
	ssize_t n = 0;

	while (progress == HTTP_MORE) {
		n = recv(c->fd, echo.in, echo.in_size, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			conn_fail(c, "%s", n < 0 ? strerror(errno) : "closed by the server");
			return false;
		}
		progress = http_answer_take(&c->answer, (const char *)echo.in, (size_t)n, &used);
	}
	if (progress == HTTP_WRONG || used < (size_t)n) {
		conn_fail(c, "the answer is not one of HTTP/1.1 with a length");
		return false;
	}
	if (c->answer.status >= 400)
		refused(c);
	answered(c, ret_now);
	if (c->answer.closing) {
		conn_fail(c, "the server closes the connection after an answer; it must stay open");
		return false;
	}
	return true;
}

/* Receive what is there. Returns true when the answer is complete. */
static bool pull(struct conn *c, uint64_t *ret_now)
{
	if (echo.http)
		return pull_http(c, ret_now);
	while (c->got < echo.size) {
		ssize_t n = recv(c->fd, echo.in, echo.size - c->got, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) {
			conn_fail(c, "recv: %s", strerror(errno));
			return false;
		}
		if (n == 0) {
			conn_fail(c, "closed by the server after %zu of %zu bytes", c->got, echo.size);
			return false;
		}
		if (memcmp(echo.in, c->out + c->got, (size_t)n)) {
			conn_fail(c, "message %u came back changed", c->seq);
			return false;
		}
		if (c->got + (size_t)n > c->sent) {
			conn_fail(c, "answered before it was asked");
			return false;
		}
		c->got += (size_t)n;
	}
	answered(c, ret_now);
	return true;
}

void conn_open(struct conn *c, const struct addrinfo *ai)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT, .data.ptr = c };
	int one = 1;

	c->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		echo_die(1, "socket %u: %s", c->id, strerror(errno));
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* One source address has about 28,000 ports; loopback has many addresses. */
	if (c->id >= PER_SOURCE && ai->ai_family == AF_INET &&
	    ntohl(((struct sockaddr_in *)ai->ai_addr)->sin_addr.s_addr) >> 24 == 127) {
		struct sockaddr_in from = { .sin_family = AF_INET };

		from.sin_addr.s_addr = htonl(0x7f000001u + c->id / PER_SOURCE);
		setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (bind(c->fd, (struct sockaddr *)&from, sizeof(from)))
			echo_die(1, "bind: %s", strerror(errno));
	}
	echo.alive++;
	c->want_out = true;
	if (connect(c->fd, ai->ai_addr, ai->ai_addrlen) && errno != EINPROGRESS) {
		conn_fail(c, "connect: %s", strerror(errno));
		return;
	}
	if (epoll_ctl(echo.epfd, EPOLL_CTL_ADD, c->fd, &ev))
		echo_die(1, "epoll_ctl: %s", strerror(errno));
}

/* connect() has completed or failed. */
static void connected(struct conn *c, uint64_t now)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err) {
		conn_fail(c, "connect: %s", strerror(err));
		return;
	}
	c->connected = true;
	conn_begin(c, now);
}

int conn_turn(bool again, uint64_t stop_at, uint64_t deadline)
{
	struct epoll_event ev[EVENTS];
	uint64_t now = now_ns();
	int answers = 0;
	uint64_t left = deadline > now ? deadline - now : 0;
	struct timespec limit = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };
	int n = epoll_pwait2(echo.epfd, ev, EVENTS, &limit, NULL);

	if (n < 0 && errno != EINTR)
		echo_die(1, "epoll_wait: %s", strerror(errno));
	if (n <= 0)
		return now_ns() >= deadline ? -1 : 0;
	for (int i = 0; i < n; i++) {
		struct conn *c = ev[i].data.ptr;

		if (c->dead)
			continue;
		if (!c->connected) {
			connected(c, now_ns());
			continue;
		}
		if (ev[i].events & EPOLLOUT) {
			push(c);
			if (c->dead)
				continue;
		}
		if (!(ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
			continue;
		if (!c->busy) {
			conn_fail(c, "data, end of file or error without a request");
			continue;
		}
		if (!pull(c, &now))
			continue;
		answers++;
		if (again && echo.period)
			conn_begin_due(c, now);
		else if (again && now < stop_at)
			conn_begin(c, now);
	}
	return answers;
}
