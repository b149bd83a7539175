/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/dns_double.c - a name server on 127.0.0.1 that waits until many ask.
 *
 *	dns_double MANY COMMAND [ARGS]
 *
 * By UDP it answers nobody before questions have come from MANY ports, and then at once: whoever
 * keeps others from asking while it waits for an answer waits for ever.
 *
 * In a network namespace of its own (unshare -n), whose loopback interface it brings
 * up.  Runs the command, and ends with it and its exit status.
 *
 *	hostN		A 10.0.N/256.N%256; for even N also AAAA fd00::N
 *	bigN		the same, but truncated unless asked by TCP
 *	*.arpa		PTR to "back."
 *	else		no such name
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TYPE_A = 1, TYPE_PTR = 12, TYPE_AAAA = 28, NO_SUCH_NAME = 3, PENDING = 8192 };

/* First in, first out. */
static struct answer {
	struct sockaddr_in to;
	uint8_t bytes[512];
	size_t size;
} queue[PENDING];
static unsigned first, last;
static bool has_asked[65536];
static int askers;

static void die(const char *what)
{
	fprintf(stderr, "dns_double: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint8_t *put16(uint8_t *p, unsigned value)
{
	*p++ = (uint8_t)(value >> 8);
	*p++ = (uint8_t)value;
	return p;
}

/* A record for the name of the question, up to its data. */
static uint8_t *put_record(uint8_t *p, unsigned type, unsigned size)
{
	p = put16(p, 0xc00c);
	p = put16(p, type);
	p = put16(p, 1);
	p = put16(p, 0);
	p = put16(p, 60);
	return put16(p, size);
}

/* Returns the size of the answer, or 0 for what is no query. */
static size_t answer(const uint8_t *query, size_t size, int tcp, uint8_t *out)
{
	char name[256];
	size_t at = 12, n = 0;
	unsigned type, flags = 0x8180, records = 0, number = 0;
	uint8_t *end;

	if (size < 17 || size > 400)
		return 0;
	while (at < size && query[at]) {
		size_t label = query[at++];

		if (label > 63 || at + label >= size || n + label + 1 >= sizeof(name))
			return 0;
		memcpy(name + n, query + at, label);
		n += label;
		name[n++] = '.';
		at += label;
	}
	if (at + 5 > size)
		return 0;
	name[n] = 0;
	type = (unsigned)(query[at + 1] << 8 | query[at + 2]);
	memcpy(out, query, at + 5);
	end = out + at + 5;
	if (sscanf(name, "host%u.", &number) == 1 || sscanf(name, "big%u.", &number) == 1) {
		if (name[0] == 'b' && !tcp) {
			flags |= 0x0200;
		} else if (type == TYPE_A) {
			end = put_record(end, TYPE_A, 4);
			*end++ = 10;
			*end++ = 0;
			end = put16(end, number);
			records++;
		} else if (type == TYPE_AAAA && number % 2 == 0) {
			end = put_record(end, TYPE_AAAA, 16);
			memset(end, 0, 14);
			end[0] = 0xfd;
			end = put16(end + 14, number);
			records++;
		}
	} else if (type == TYPE_PTR && n > 6 && strcasecmp(name + n - 6, ".arpa.") == 0) {
		end = put_record(end, TYPE_PTR, 6);
		memcpy(end, "\4back", 6);
		end += 6;
		records++;
	} else {
		flags |= NO_SUCH_NAME;
	}
	put16(out + 2, flags);
	put16(out + 4, 1);
	put16(out + 6, records);
	put16(out + 8, 0);
	put16(out + 10, 0);
	return (size_t)(end - out);
}

static void take(int udp)
{
	uint8_t query[512];
	struct answer *a = &queue[last % PENDING];
	socklen_t size = sizeof(a->to);
	ssize_t n = recvfrom(udp, query, sizeof(query), 0, (struct sockaddr *)&a->to, &size);

	if (n <= 0 || last - first == PENDING)
		return;
	a->size = answer(query, (size_t)n, 0, a->bytes);
	if (!a->size)
		return;
	last++;
	askers += !has_asked[a->to.sin_port];
	has_asked[a->to.sin_port] = true;
}

static void serve_tcp(int listener)
{
	uint8_t query[514], out[514];
	int fd = accept(listener, NULL, NULL);
	size_t have = 0, want = 2;

	/* Two questions may come on one connection. */
	while (fd >= 0) {
		ssize_t n = read(fd, query + have, want - have);

		if (n <= 0)
			break;
		have += (size_t)n;
		if (have == 2)
			want = 2 + (size_t)(query[0] << 8 | query[1]);
		if (want > sizeof(query))
			break;
		if (have < want || have == 2)
			continue;
		n = (ssize_t)answer(query + 2, have - 2, 1, out + 2);
		put16(out, (unsigned)n);
		if (!n || write(fd, out, (size_t)n + 2) < 0)
			break;
		have = 0;
		want = 2;
	}
	close(fd);
}

static void bring_loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		die("lo");
	request.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die("lo");
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(53),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int udp, tcp, many, status, size = 4 << 20;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: dns_double MANY COMMAND [ARGS]\n");
		return 2;
	}
	many = atoi(argv[1]);
	bring_loopback_up();
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(udp, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (bind(udp, (struct sockaddr *)&here, sizeof(here)) < 0 ||
	    bind(tcp, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(tcp, 1000) < 0)
		die("port 53");
	pid = fork();
	if (pid == 0) {
		/* Not forever, should we die first. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	for (;;) {
		struct pollfd p[2] = { { .fd = udp, .events = POLLIN },
				       { .fd = tcp, .events = POLLIN } };

		poll(p, 2, 50);
		if (p[0].revents)
			take(udp);
		if (p[1].revents)
			serve_tcp(tcp);
		for (; first != last && askers >= many; first++) {
			struct answer *a = &queue[first % PENDING];

			sendto(udp, a->bytes, a->size, 0, (struct sockaddr *)&a->to,
			       sizeof(a->to));
		}
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	}
}
