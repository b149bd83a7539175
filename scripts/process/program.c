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
 * A thread that executes a program takes the place of the first thread, which has ended then; so that is
 * looked at again.
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

/* AT_RANDOM of the reader's program. */
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
		/* ENOENT: newer kernels, of a thread. */
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
	/* After the memory: if the program is another one by now, its mark is not there. */
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

/* Is the reader's memory the one that was opened? */
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
	/* The reader may have ended, and its number be another thread's. */
	return is_same_memory(p) || (program_choose_reader(p) && is_same_memory(p));
}
