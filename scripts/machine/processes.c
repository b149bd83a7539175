/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int by_number(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

int *processes_list(size_t *ret_count)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0, room = 256;
	int *list = malloc(room * sizeof(*list));

	while (list && proc && (entry = readdir(proc))) {
		const int pid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;

		if (!pid || pid == getpid())
			continue;
		if (count == room)
			list = reallocarray(list, room *= 2, sizeof(*list));
		if (list)
			list[count++] = pid;
	}
	if (!list)
		abort();
	if (proc)
		closedir(proc);
	qsort(list, count, sizeof(*list), by_number);
	*ret_count = count;
	return list;
}

/* Returns the contents of /proc/PID/FILE and a terminating zero, to be freed; NULL with errno on failure. */
static char *contents(int pid, const char *file, size_t *ret_size)
{
	char path[64], *all = NULL;
	size_t size = 0, got;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	in = fopen(path, "re");
	if (!in)
		return NULL;
	do {
		all = realloc(all, size + 4097);
		if (!all)
			abort();
		got = fread(all + size, 1, 4096, in);
		size += got;
	} while (got);
	all[size] = '\0';
	fclose(in);
	*ret_size = size;
	return all;
}

bool process_read(int pid, struct process_state *ret)
{
	enum { PF_KTHREAD = 0x200000 };
	size_t size;
	char *line = contents(pid, "stat", &size);
	/* The name may contain any character, even ')': it ends at the last one. */
	char *name = line ? strchr(line, '(') : NULL, *end = line ? strrchr(line, ')') : NULL;
	unsigned long flags = 0;
	bool done = false;

	memset(ret, 0, sizeof(*ret));
	if (name && end) {
		*end = '\0';
		snprintf(ret->name, sizeof(ret->name), "%s", name + 1);
		done = sscanf(end + 1, " %c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			      " %*d %*d %*d %*d %ld %*d %" SCNu64, &ret->state, &flags, &ret->user,
			      &ret->system, &ret->threads, &ret->start) == 6;
	}
	ret->is_kernel = flags & PF_KTHREAD;
	free(line);
	return done;
}

double process_start_time(const struct process_state *state)
{
	struct timespec now, up;

	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9 +
	       (double)state->start / (double)sysconf(_SC_CLK_TCK);
}

static bool has_memory(int tid)
{
	size_t size;
	char *pages = contents(tid, "statm", &size);
	const bool some = pages && strtoul(pages, NULL, 10) > 0;

	free(pages);
	return some;
}

/*
 * The tid of a thread whose files in /proc can be read. The first thread may have ended by
 * pthread_exit while others go on; then its files are empty, and another thread is returned.
 */
static int reader_of(int pid)
{
	struct dirent *entry;
	char path[32];
	int reader = 0;
	DIR *tasks;

	if (has_memory(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !reader && (entry = readdir(tasks)))
		if (has_memory(atoi(entry->d_name)))
			reader = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return reader ? reader : pid;
}

char *process_program(int pid)
{
	char link[32], path[4096];
	struct stat there, here;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", reader_of(pid));
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return NULL;
	path[length] = '\0';
	if (stat(link, &there) == 0 && stat(path, &here) == 0 && there.st_dev == here.st_dev &&
	    there.st_ino == here.st_ino)
		return strdup(path);
	return strdup(link);
}

char *process_directory(int pid)
{
	char link[32], path[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/cwd", reader_of(pid));
	length = readlink(link, path, sizeof(path) - 1);
	return length < 0 ? NULL : strndup(path, (size_t)length);
}

/* Finds x in a control group "/system.slice/x.service", which may have further parts. */
char *process_service(int pid)
{
	static const char ending[] = ".service";
	size_t size;
	char *groups = contents(pid, "cgroup", &size), *service = NULL, *rest = groups, *line;

	while (!service && (line = strsep(&rest, "\n"))) {
		char *slash = strstr(line, "system.slice/"), *end, *begin;

		/* systemd's hierarchy is cgroup v2 (0::), or the one named systemd in v1. */
		if (!slash || (strncmp(line, "0::", 3) != 0 && !strstr(line, "name=systemd:")))
			continue;
		end = strstr(slash, ending);
		if (!end || (end[strlen(ending)] && end[strlen(ending)] != '/'))
			continue;
		*end = '\0';
		begin = strrchr(slash, '/') + 1;
		service = strdup(begin);
	}
	free(groups);
	return service;
}

/* Does a shell take the word as it is, without quotes? */
static bool is_plain(const char *word)
{
	return *word && !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789_-+=./:,@%^")];
}

char *process_command(int pid)
{
	size_t size, length = 0;
	char *words = contents(reader_of(pid), "cmdline", &size), *text;

	if (!words || !*words) {
		free(words);
		return NULL;
	}
	/* Quoting makes at most four characters of one, and adds two quotes and a blank to each word. */
	text = malloc(4 * size + 3 * size + 1);
	if (!text)
		abort();
	for (const char *word = words; word < words + size; word += strlen(word) + 1) {
		if (word > words)
			text[length++] = ' ';
		if (is_plain(word)) {
			length += (size_t)sprintf(text + length, "%s", word);
			continue;
		}
		text[length++] = '\'';
		for (const char *c = word; *c; c++)
			length += (size_t)sprintf(text + length, *c == '\'' ? "'\\''" : "%c", *c);
		text[length++] = '\'';
	}
	text[length] = '\0';
	free(words);
	return text;
}

bool process_root_is_ours(int pid)
{
	struct stat there, here;
	char link[32];

	snprintf(link, sizeof(link), "/proc/%d/root/.", reader_of(pid));
	return stat(link, &there) == 0 && stat("/.", &here) == 0 && there.st_dev == here.st_dev &&
	       there.st_ino == here.st_ino;
}

bool process_maps(int pid, const char *file_name)
{
	char path[32], *line = NULL;
	const size_t length = strlen(file_name);
	bool found = false;
	size_t room = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", reader_of(pid));
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &room, maps) > 0) {
		const char *name = strrchr(line, '/');

		found = name && strncmp(name + 1, file_name, length) == 0 &&
			strchr(" \n", name[1 + length]);
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}
