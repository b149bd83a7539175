/* SPDX-License-Identifier: MIT */
/* scripts/bench/proc.c - reads /proc for figures of the caller's descendants. */
#include "scripts/bench/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TCP_LISTENING = 0x0a };

__attribute__((noreturn))
static void give_up(const char *why)
{
	fprintf(stderr, "fiberize bench: %s\n", why);
	exit(114);
}

/*
 * Read /proc/PID/stat into buf. *ret_fields points to the third field, the first one after the name.
 * Returns false if the process is gone.
 */
static bool read_stat(pid_t pid, char *buf, size_t len, const char **ret_fields)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	*ret_fields = strrchr(buf, ')');
	if (!*ret_fields)
		return false;
	*ret_fields += 2;
	return true;
}

void *fz_grow(void *old, size_t n, size_t each)
{
	/* Grow at powers of two only, so that the caller need not remember a capacity. */
	if (n & (n - 1))
		return old;
	old = realloc(old, (n ? 2 * n : 1) * each);
	if (!old)
		give_up("out of memory");
	return old;
}

struct fz_tree fz_tree_find(pid_t except)
{
	struct { pid_t pid, parent; bool in; } *all = NULL;
	size_t n = 0;
	struct fz_tree t = { NULL, 0 };
	struct dirent *e;
	bool changed;
	DIR *dir = opendir("/proc");

	if (!dir)
		give_up("/proc cannot be read");
	while ((e = readdir(dir))) {
		char buf[1024], state;
		const char *fields;
		int parent;

		if (!isdigit((unsigned char)e->d_name[0]) ||
		    !read_stat(atoi(e->d_name), buf, sizeof(buf), &fields) ||
		    sscanf(fields, "%c %d", &state, &parent) != 2 || state == 'Z')
			continue;
		all = fz_grow(all, n, sizeof(*all));
		all[n].pid = atoi(e->d_name);
		all[n].parent = parent;
		all[n].in = parent == getpid() && all[n].pid != except;
		n++;
	}
	closedir(dir);
	do {
		changed = false;
		for (size_t i = 0; i < n; i++) {
			for (size_t k = 0; k < n && !all[i].in; k++) {
				if (all[k].in && all[i].parent == all[k].pid)
					all[i].in = changed = true;
			}
		}
	} while (changed);
	for (size_t i = 0; i < n; i++) {
		if (!all[i].in)
			continue;
		t.pid = fz_grow(t.pid, t.n, sizeof(*t.pid));
		t.pid[t.n++] = all[i].pid;
	}
	free(all);
	return t;
}

bool fz_tree_ends(pid_t except)
{
	const unsigned exiting = 0x4;	/* the kernel's PF_EXITING */
	struct fz_tree t = fz_tree_find(except);
	bool all = true;

	for (size_t i = 0; i < t.n; i++) {
		char buf[1024];
		const char *fields;
		unsigned flags;

		/* The fields are: state ppid pgrp session tty tpgid flags. */
		if (read_stat(t.pid[i], buf, sizeof(buf), &fields) &&
		    sscanf(fields, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 && !(flags & exiting))
			all = false;
	}
	free(t.pid);
	return all;
}

/* The number after "key:" in a /proc status file; 0 if there is none. */
static double status_field(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[256];
	double v = 0;

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':') {
			v = strtod(line + strlen(key) + 1, NULL);
			break;
		}
	}
	fclose(f);
	return v;
}

static void add_process(pid_t pid, struct fz_figures *f)
{
	char path[128], buf[1024];
	const char *fields;
	struct timespec ts;
	struct dirent *e;
	clockid_t clock;
	DIR *dir;

	if (!clock_getcpuclockid(pid, &clock) && !clock_gettime(clock, &ts))
		f->cpu_us += (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
	if (read_stat(pid, buf, sizeof(buf), &fields)) {
		long cutime = 0, cstime = 0;

		/* Skip state ppid pgrp session tty tpgid flags, 4 numbers of page faults, utime and stime. */
		sscanf(fields, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld",
		       &cutime, &cstime);
		f->cpu_us += (double)(cutime + cstime) * 1e6 / (double)sysconf(_SC_CLK_TCK);
	}
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f->peak_kb += status_field(path, "VmHWM");

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((e = readdir(dir))) {
		char file[512];

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(file, sizeof(file), "%s/%s/status", path, e->d_name);
		f->voluntary += status_field(file, "voluntary_ctxt_switches");
		f->involuntary += status_field(file, "nonvoluntary_ctxt_switches");
	}
	closedir(dir);
}

struct fz_figures fz_tree_measure(pid_t except)
{
	struct fz_tree t = fz_tree_find(except);
	struct fz_figures f = { 0 };

	for (size_t i = 0; i < t.n; i++)
		add_process(t.pid[i], &f);
	free(t.pid);
	return f;
}

/* Is one of pid's descriptors the socket with this inode number? */
static bool has_socket(pid_t pid, unsigned long inode)
{
	char path[64], link[64], target[64];
	bool found = false;
	struct dirent *e;
	DIR *dir;

	snprintf(target, sizeof(target), "socket:[%lu]", inode);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		if (n > 0) {
			link[n] = '\0';
			found = !strcmp(link, target);
		}
	}
	closedir(dir);
	return found;
}

/* Turn an address in the form of /proc/net/tcp (hexadecimal words) into text for a client to connect to. */
static void set_host(struct fz_listener *l, const char *hex)
{
	uint32_t w[4] = { 0 };
	int words = (int)strlen(hex) / 8;
	char text[INET6_ADDRSTRLEN];

	for (int i = 0; i < words && i < 4; i++)
		sscanf(hex + 8 * i, "%8x", &w[i]);
	if (words == 4 && !w[0] && !w[1] && w[2] == htonl(0xffff)) {
		w[0] = w[3];
		words = 1;
	}
	if (words == 1) {
		inet_ntop(AF_INET, w, text, sizeof(text));
		snprintf(l->host, sizeof(l->host), "%s", w[0] ? text : "127.0.0.1");
	} else {
		inet_ntop(AF_INET6, w, text, sizeof(text));
		if (w[0] | w[1] | w[2] | w[3])
			snprintf(l->host, sizeof(l->host), "[%s]", text);
		else
			snprintf(l->host, sizeof(l->host), "127.0.0.1");
	}
}

int fz_listener_find(pid_t pid, bool mine, unsigned port, struct fz_listener *ret_l)
{
	static const char *const table[] = { "tcp", "tcp6" };
	int found = 0;

	for (int i = 0; i < 2; i++) {
		char path[64], line[512];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f)) {
			unsigned local, state;
			unsigned long inode;
			char hex[65];

			if (sscanf(line,
				   " %*d: %64[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x"
				   " %*x:%*x %*x:%*x %*x %*u %*u %lu",
				   hex, &local, &state, &inode) != 4 ||
			    state != TCP_LISTENING || (port && local != port) ||
			    (mine && !has_socket(pid, inode)))
				continue;
			/* Many sockets may have one port, for IPv4 and IPv6 for example: count it once. */
			if (!found || local != ret_l->port)
				found++;
			if (found == 1 || local < ret_l->port) {
				ret_l->port = local;
				ret_l->pid = pid;
				set_host(ret_l, hex);
			}
		}
		fclose(f);
	}
	return found;
}

int fz_tree_listens(pid_t except, unsigned port, struct fz_listener *ret_l)
{
	struct fz_tree t = fz_tree_find(except);
	int found = 0;

	for (size_t i = 0; i < t.n; i++) {
		struct fz_listener l;
		int n = fz_listener_find(t.pid[i], true, port, &l);

		if (n && (!found || l.port < ret_l->port))
			*ret_l = l;
		/* Worker processes share their parent's sockets, so the numbers are not added up. */
		if (n > found)
			found = n;
	}
	free(t.pid);
	return found;
}

void fz_environment_become(const char *file)
{
	FILE *in = fopen(file, "re");
	char **entries = NULL, *entry = NULL;
	size_t n = 0, room = 0;

	while (in && getdelim(&entry, &room, '\0', in) > 0) {
		entries = fz_grow(entries, n, sizeof(*entries));
		entries[n++] = entry;
		entry = NULL;
		room = 0;
	}
	free(entry);
	if (in)
		fclose(in);
	if (!n)
		return;
	entries = fz_grow(entries, n, sizeof(*entries));
	entries[n] = NULL;
	environ = entries;
}
