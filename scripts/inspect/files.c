/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/files.c - describes an open file of the process, from /proc: its path, or the
 * addresses of a socket in the network namespace of the process.
 */
#include "waits.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "scripts/process/say.h"

/* Turn the hexadecimal "ADDRESS:PORT" of /proc/net/tcp into text for people. */
static void put_address(char *text, size_t size, const char *hex, int family)
{
	struct in6_addr address = { 0 };
	char name[INET6_ADDRSTRLEN];
	uint32_t words[4] = { 0 };
	const char *colon = strchr(hex, ':');
	const int count = family == AF_INET ? 1 : 4;
	unsigned port = 0;

	for (int i = 0; i < count; i++)
		sscanf(hex + 8 * i, "%8" SCNx32, &words[i]);
	memcpy(&address, words, sizeof(words));
	if (colon)
		sscanf(colon + 1, "%x", &port);
	inet_ntop(family, &address, name, sizeof(name));
	snprintf(text, size, family == AF_INET ? "%s:%u" : "[%s]:%u", name, port);
}

/*
 * The sockets of the network namespace, sorted by inode.  A tool that runs on (fiberize top) reads the
 * sockets again from time to time, but spends at most 1 % of its time on that.
 */
struct socket {
	uint64_t inode;
	char text[168];
};

static struct {
	struct socket *list;
	size_t count, room;
	double read_at, reading_took;	/* s; read_at is 0: never */
} sockets;

static struct socket *new_socket(uint64_t inode)
{
	if (sockets.count == sockets.room) {
		sockets.room = sockets.room ? 2 * sockets.room : 256;
		sockets.list = realloc(sockets.list, sockets.room * sizeof(*sockets.list));
		if (!sockets.list)
			die(EXIT_OTHER, "no memory for %zu sockets", sockets.room);
	}
	sockets.list[sockets.count].inode = inode;
	return &sockets.list[sockets.count++];
}

static void take_internet(const char *line, const char *protocol, int family)
{
	char local[64] = "", remote[64] = "", here[80], there[80];
	unsigned state;
	uint64_t inode;
	struct socket *s;

	if (sscanf(line, "%*s %63s %63s %x %*s %*s %*s %*s %*s %" SCNu64, local, remote, &state,
		   &inode) != 4)
		return;
	s = new_socket(inode);
	put_address(here, sizeof(here), local, family);
	put_address(there, sizeof(there), remote, family);
	if (state == 0x0A)	/* LISTEN */
		snprintf(s->text, sizeof(s->text), "%.3s listens at %s", protocol, here);
	else
		snprintf(s->text, sizeof(s->text), "%.3s %s to %s", protocol, here, there);
}

static void take_unix(const char *line)
{
	const char *name;
	uint64_t inode;
	int end = 0;

	/* The name is all that follows one blank: it may have blanks, too. */
	if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 "%n", &inode, &end) < 1)
		return;
	name = line + end;
	snprintf(new_socket(inode)->text, sizeof(sockets.list->text), "unix%.*s",
		 (int)strcspn(name, "\n"), name);
}

static void read_table(const struct target *t, const char *protocol, int family)
{
	char path[64], line[512];
	FILE *table;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", target_reader(t), protocol);
	table = fopen(path, "re");
	if (!table)
		return;
	while (fgets(line, sizeof(line), table))
		if (family == AF_UNIX)
			take_unix(line);
		else
			take_internet(line, protocol, family);
	fclose(table);
}

static int by_inode(const void *a, const void *b)
{
	const struct socket *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void read_sockets(const struct target *t)
{
	const double now = seconds_now();

	if (sockets.read_at > 0 && now - sockets.read_at < 0.5 + 100 * sockets.reading_took)
		return;
	sockets.count = 0;
	read_table(t, "tcp", AF_INET);
	read_table(t, "tcp6", AF_INET6);
	read_table(t, "udp", AF_INET);
	read_table(t, "udp6", AF_INET6);
	read_table(t, "unix", AF_UNIX);
	if (sockets.count)
		qsort(sockets.list, sockets.count, sizeof(*sockets.list), by_inode);
	sockets.read_at = seconds_now();
	sockets.reading_took = sockets.read_at - now;
}

static const char *socket_of(const struct target *t, uint64_t inode)
{
	const struct socket key = { .inode = inode }, *found;

	read_sockets(t);
	found = sockets.count ? bsearch(&key, sockets.list, sockets.count, sizeof(key), by_inode) :
				NULL;
	return found ? found->text : NULL;
}

void file_of(const struct target *t, int fd, char *text, size_t size)
{
	const char *socket = NULL;
	char path[64], name[4096];
	uint64_t inode;
	ssize_t n;

	*text = '\0';
	if (target_is_core(t))
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", target_reader(t), fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return;
	name[n] = '\0';
	if (sscanf(name, "socket:[%" SCNu64 "]", &inode) == 1)
		socket = socket_of(t, inode);
	snprintf(text, size, "%s", socket ? socket : name);
}
