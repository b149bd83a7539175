/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tasks.h"

enum { MARK_SIZE = 16 };

static bool has_memory(int pid, int tid)
{
	char pages[64];

	task_line(pid, tid, "statm", pages, sizeof(pages));
	return strtoul(pages, NULL, 10) > 0;
}

static bool take_reader(void *arg, int tid)
{
	struct program *p = arg;

	if (!has_memory(p->pid, tid))
		return true;
	p->reader = tid;
	return false;
}

/*
 * Look at the first thread again at the end: if another thread has executed a program meanwhile, it has
 * become the first thread.
 */
bool program_choose_reader(struct program *p)
{
	p->reader = 0;
	if (take_reader(p, p->pid))
		task_each(p->pid, take_reader, p);
	if (!p->reader)
		take_reader(p, p->pid);
	return p->reader != 0;
}

/* The address of the 16 random bytes that the kernel gives a program at exec (AT_RANDOM); 0: unknown. */
static uint64_t find_mark(int reader)
{
	Elf64_auxv_t entry;
	uint64_t mark = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/auxv", reader);
	file = fopen(path, "re");
	while (file && !mark && fread(&entry, sizeof(entry), 1, file) == 1 && entry.a_type != AT_NULL)
		if (entry.a_type == AT_RANDOM)
			mark = entry.a_un.a_val;
	if (file)
		fclose(file);
	return mark;
}

bool program_open(struct program *p, int pid, bool writes)
{
	char path[64];
	int error;

	*p = (struct program){
		.pid = pid, .pidfd = pidfd_open(pid, 0), .memory = -1, .writes = writes,
	};
	if (p->pidfd < 0) {
		/* For a tid that is no pid, older kernels give EINVAL, newer ones ENOENT. */
		errno = errno == ENOENT ? EINVAL : errno;
		return false;
	}
	if (program_has_ended(p)) {
		program_close(p);
		errno = ESRCH;
		return false;
	}
	if (!program_choose_reader(p)) {
		errno = ESRCH;
		return true;
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", p->reader);
	p->memory = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	error = errno;
	/* Find the mark after opening the memory: the mark of a later program is not found in this memory. */
	p->mark = find_mark(p->reader);
	errno = error;
	return true;
}

void program_close(struct program *p)
{
	if (p->memory >= 0)
		close(p->memory);
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->memory = p->pidfd = -1;
}

bool program_has_ended(const struct program *p)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* Is the reader's memory the one that was opened? Compares the mark in both. */
static bool is_same_memory(const struct program *p)
{
	char ours[MARK_SIZE], theirs[MARK_SIZE];
	struct iovec here = { theirs, MARK_SIZE };
	struct iovec there = { (void *)(uintptr_t)p->mark, MARK_SIZE };

	return p->reader && pread(p->memory, ours, MARK_SIZE, (off_t)p->mark) == MARK_SIZE &&
	       process_vm_readv(p->reader, &here, 1, &there, 1, 0) == MARK_SIZE &&
	       memcmp(ours, theirs, MARK_SIZE) == 0;
}

bool program_runs(struct program *p)
{
	if (p->memory < 0 || program_has_ended(p))
		return false;
	/* The reader may have ended, and another process may have its tid now: then choose another reader. */
	return is_same_memory(p) || (program_choose_reader(p) && is_same_memory(p));
}
