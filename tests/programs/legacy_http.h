/* SPDX-License-Identifier: MIT */
#ifndef LEGACY_HTTP_H
#define LEGACY_HTTP_H

/*
 * tests/programs/legacy_http.h - the HTTP of legacy_server.c: a connection's requests and their answers, and
 * the statistics.  To be included by it alone, after it has defined _GNU_SOURCE.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define REQUEST_MAX 8192

enum counter {
	CONNECTIONS, OPEN, REQUESTS, STATUS_200, STATUS_400, STATUS_404,
	STATUS_405, BYTES_IN, BYTES_OUT, ERRORS, COUNTERS
};

static const char *const counter_name[COUNTERS] = {
	"connections", "open", "requests", "200", "400", "404",
	"405", "bytes-in", "bytes-out", "errors"
};

static struct {
	pthread_mutex_t lock;
	unsigned long long value[COUNTERS];
} stats = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char *body;
static size_t body_size = 13;

static void count(enum counter which, long long by)
{
	pthread_mutex_lock(&stats.lock);
	stats.value[which] += (unsigned long long)by;
	pthread_mutex_unlock(&stats.lock);
}

static size_t print_stats(char *to, size_t size)
{
	size_t len = 0;

	pthread_mutex_lock(&stats.lock);
	for (int i = 0; i < COUNTERS; i++)
		len += (size_t)snprintf(to + len, size - len, "%s %llu\n",
					counter_name[i], stats.value[i]);
	pthread_mutex_unlock(&stats.lock);
	return len;
}

static int send_all(int fd, const char *p, size_t n)
{
	count(BYTES_OUT, (long long)n);
	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -1;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

static int respond(int fd, int status, const char *type, const char *content,
		   size_t size, int head_only, int keep)
{
	const char *reason = status == 200 ? "OK" :
			     status == 404 ? "Not Found" :
			     status == 405 ? "Method Not Allowed" :
					     "Bad Request";
	char small[4096];
	int len = snprintf(small, sizeof(small),
			   "HTTP/1.1 %d %s\r\n"
			   "Content-Type: %s\r\n"
			   "Content-Length: %zu\r\n"
			   "%s"
			   "\r\n", status, reason, type, size,
			   keep ? "" : "Connection: close\r\n");

	count(status == 200 ? STATUS_200 : status == 404 ? STATUS_404 :
	      status == 405 ? STATUS_405 : STATUS_400, 1);
	if (head_only)
		size = 0;
	if ((size_t)len + size <= sizeof(small)) {
		memcpy(small + len, content, size);
		return send_all(fd, small, (size_t)len + size);
	}
	if (send_all(fd, small, (size_t)len))
		return -1;
	return send_all(fd, content, size);
}

/* Whether the header field `name` is there and holds `token`. */
static int header_has(const char *headers, const char *name, const char *token)
{
	size_t n = strlen(name);

	for (const char *line = headers; *line; ) {
		const char *end = strstr(line, "\r\n");

		if (!end)
			break;
		if (!strncasecmp(line, name, n) && line[n] == ':') {
			size_t len = (size_t)(end - line);

			for (size_t i = n + 1; i + strlen(token) <= len; i++)
				if (!strncasecmp(line + i, token, strlen(token)))
					return 1;
		}
		line = end + 2;
	}
	return 0;
}

/*
 * Answers the request whose header is the string `request`.  Returns whether
 * the connection stays open.
 */
static int answer(int fd, char *request)
{
	char method[16], path[1024], stats_text[1024];
	int minor, head, keep, used = 0;
	char *line_end = strstr(request, "\r\n");

	count(REQUESTS, 1);
	if (sscanf(request, "%15[A-Z] %1023s HTTP/1.%d%n", method, path,
		   &minor, &used) != 3 || request + used != line_end) {
		respond(fd, 400, "text/plain", "bad request\n", 12, 0, 0);
		return 0;
	}
	keep = minor >= 1 ? !header_has(line_end + 2, "Connection", "close") :
			    header_has(line_end + 2, "Connection", "keep-alive");
	head = !strcmp(method, "HEAD");
	if (!head && strcmp(method, "GET")) {
		respond(fd, 405, "text/plain", "method not allowed\n", 19, 0, 0);
		return 0;
	}
	if (!strcmp(path, "/")) {
		if (respond(fd, 200, "text/plain", body, body_size, head, keep))
			return 0;
	} else if (!strcmp(path, "/stats")) {
		size_t n = print_stats(stats_text, sizeof(stats_text));

		if (respond(fd, 200, "text/plain", stats_text, n, head, keep))
			return 0;
	} else if (respond(fd, 404, "text/plain", "not found\n", 10, head, keep)) {
		return 0;
	}
	return keep;
}

/* Returns 0 at the end of the connection, also if it ends by an error, which is counted. */
static size_t receive(int fd, char *to, size_t size)
{
	ssize_t r;

	do
		r = read(fd, to, size);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		count(ERRORS, 1);
	return r < 0 ? 0 : (size_t)r;
}

static void serve_http(int fd)
{
	char buf[REQUEST_MAX + 1];
	size_t have = 0;

	for (;;) {
		char *end;
		size_t received;

		buf[have] = 0;
		while ((end = strstr(buf, "\r\n\r\n"))) {
			/* The header as a string, its last line complete. */
			char first = end[2];

			end[2] = 0;
			if (!answer(fd, buf))
				return;
			end[2] = first;
			end += 4;
			have -= (size_t)(end - buf);
			memmove(buf, end, have + 1);
		}
		if (have == REQUEST_MAX || memchr(buf, 0, have)) {
			count(REQUESTS, 1);
			respond(fd, 400, "text/plain", "bad request\n", 12, 0, 0);
			return;
		}
		received = receive(fd, buf + have, REQUEST_MAX - have);
		if (!received)
			return;
		count(BYTES_IN, (long long)received);
		have += received;
	}
}

#endif
