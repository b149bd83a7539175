/* SPDX-License-Identifier: MIT */
/* scripts/bench/descriptors.c - counts descriptors that may have leaked (proc.h). */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scripts/bench/proc.h"

enum { TCP_ESTABLISHED = 1, TCP_LISTENING = 0x0a };

/* The inode numbers of listening and established TCP sockets. */
struct inodes {
	unsigned long *inode;
	size_t n;
};

static void add_table(const char *path, struct inodes *in)
{
	FILE *f = fopen(path, "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long inode;
		unsigned state;

		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%*x %*[0-9A-Fa-f]:%*x %x"
			   " %*x:%*x %*x:%*x %*x %*u %*u %lu", &state, &inode) != 2 ||
		    (state != TCP_ESTABLISHED && state != TCP_LISTENING))
			continue;
		in->inode = fz_grow(in->inode, in->n, sizeof(*in->inode));
		in->inode[in->n++] = inode;
	}
	if (f)
		fclose(f);
}

static int compare(const void *a, const void *b)
{
	const unsigned long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The listening and established TCP sockets in the network namespace of pid. */
static struct inodes sockets_in_use(pid_t pid)
{
	struct inodes in = { NULL, 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/net/tcp", (int)pid);
	add_table(path, &in);
	snprintf(path, sizeof(path), "/proc/%d/net/tcp6", (int)pid);
	add_table(path, &in);
	if (in.n)
		qsort(in.inode, in.n, sizeof(*in.inode), compare);
	return in;
}

static bool may_have_leaked(const char *target, const struct inodes *in)
{
	unsigned long inode;

	if (!strncmp(target, "anon_inode:", 11) || !strncmp(target, "/sys/", 5))
		return false;
	if (sscanf(target, "socket:[%lu]", &inode) != 1 || !in->n)
		return true;
	return !bsearch(&inode, in->inode, in->n, sizeof(inode), compare);
}

static size_t descriptors_of(pid_t pid)
{
	struct inodes in = sockets_in_use(pid);
	char path[64], target[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		if (!isdigit((unsigned char)e->d_name[0]) || length <= 0)
			continue;
		target[length] = '\0';
		n += may_have_leaked(target, &in);
	}
	if (dir)
		closedir(dir);
	free(in.inode);
	return n;
}

size_t fz_tree_descriptors(pid_t except)
{
	struct fz_tree t = fz_tree_find(except);
	size_t n = 0;

	for (size_t i = 0; i < t.n; i++)
		n += descriptors_of(t.pid[i]);
	free(t.pid);
	return n;
}
