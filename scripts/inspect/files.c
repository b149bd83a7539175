/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/files.c - what an open file of the process is, from /proc: its path, or the
 * addresses of a socket as the process's network namespace has them.
 */
#include "waits.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "ADDRESS:PORT" in hexadecimal, as /proc/net/tcp has it, for people. */
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

static bool in_table(const struct target *t, const char *protocol, int family, uint64_t inode,
		     char *text, size_t size)
{
	char path[64], line[512], local[64], remote[64], here[80], there[80];
	bool found = false;
	FILE *table;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", t->pid, protocol);
	table = fopen(path, "re");
	if (!table)
		return false;
	while (!found && fgets(line, sizeof(line), table)) {
		uint64_t number;
		unsigned state;

		if (sscanf(line, "%*s %63s %63s %x %*s %*s %*s %*s %*s %" SCNu64, local, remote,
			   &state, &number) != 4 || number != inode)
			continue;
		found = true;
		put_address(here, sizeof(here), local, family);
		put_address(there, sizeof(there), remote, family);
		if (state == 0x0A)	/* LISTEN */
			snprintf(text, size, "%.3s listens at %s", protocol, here);
		else
			snprintf(text, size, "%.3s %s to %s", protocol, here, there);
	}
	fclose(table);
	return found;
}

static bool in_unix_table(const struct target *t, uint64_t inode, char *text, size_t size)
{
	char path[64], line[512];
	bool found = false;
	FILE *table;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", t->pid);
	table = fopen(path, "re");
	if (!table)
		return false;
	while (!found && fgets(line, sizeof(line), table)) {
		char name[256] = "";
		uint64_t number;

		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %255s", &number, name) < 1 ||
		    number != inode)
			continue;
		found = true;
		snprintf(text, size, "unix%s%s", *name ? " " : "", name);
	}
	fclose(table);
	return found;
}

void file_of(const struct target *t, int fd, char *text, size_t size)
{
	char path[64], name[4096];
	uint64_t inode;
	ssize_t n;

	*text = '\0';
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", t->pid, fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return;
	name[n] = '\0';
	if (sscanf(name, "socket:[%" SCNu64 "]", &inode) == 1 &&
	    (in_table(t, "tcp", AF_INET, inode, text, size) ||
	     in_table(t, "tcp6", AF_INET6, inode, text, size) ||
	     in_table(t, "udp", AF_INET, inode, text, size) ||
	     in_table(t, "udp6", AF_INET6, inode, text, size) ||
	     in_unix_table(t, inode, text, size)))
		return;
	snprintf(text, size, "%s", name);
}
