/* SPDX-License-Identifier: MIT */
/*
 * scripts/process/live.c - a process that lives, by process_vm_readv, ptrace and /proc.
 *
 * Reading memory stops nothing.  Reading the registers of a kernel thread stops that thread, for
 * less than 1 ms unless the machine is busy; no signal is sent to it.
 */
#include "source.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

static bool read_memory(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	struct iovec here = { buffer, size };
	struct iovec there = { (void *)(uintptr_t)address, size };

	if (s->memory >= 0)
		return pread(s->memory, buffer, size, (off_t)address) == (ssize_t)size;
	return process_vm_readv(s->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static size_t read_pieces(const struct source *s, const struct piece *pieces, size_t count)
{
	struct iovec here[PIECES_MOST] = { { 0 } }, there[PIECES_MOST] = { { 0 } };
	ssize_t got;
	size_t n = 0;

	for (size_t i = 0; i < count && i < PIECES_MOST; i++) {
		here[i] = (struct iovec){ pieces[i].buffer, pieces[i].size };
		there[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].address, pieces[i].size };
	}
	got = process_vm_readv(s->pid, here, count, there, count, 0);
	for (; n < count && got >= (ssize_t)pieces[n].size; n++)
		got -= (ssize_t)pieces[n].size;
	return n;
}

/* The file's name may have changed, or the file be gone, since it was mapped. */
static bool each_mapping(const struct source *s, bool (*found)(void *arg, uint64_t begin), void *arg)
{
	char path[64], *line = NULL;
	size_t room = 0;
	bool more = true;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", s->pid);
	maps = fopen(path, "re");
	if (!maps)
		return false;
	while (more && getline(&line, &room, maps) > 0) {
		uint64_t begin, offset;

		if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64, &begin, &offset) == 2 && !offset &&
		    strchr(line, '/'))
			more = found(arg, begin);
	}
	free(line);
	fclose(maps);
	return true;
}

static void each_thread(const struct source *s, bool (*found)(void *arg, int tid), void *arg)
{
	char path[64];
	struct dirent *entry;
	bool more = true;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", s->pid);
	tasks = opendir(path);
	while (tasks && more && (entry = readdir(tasks)))
		if (*entry->d_name != '.')
			more = found(arg, (int)strtol(entry->d_name, NULL, 10));
	if (tasks)
		closedir(tasks);
}

/* Wait until the thread has stopped; *ret_signal: what it was about to receive, or 0. */
static bool has_stopped(int tid, int *ret_signal)
{
	enum { TRIES = 2000 };
	const struct timespec pause = { 0, 100000 };
	int status = 0;

	*ret_signal = 0;
	for (int i = 0; i < TRIES; i++) {
		const pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got == tid) {
			if (!WIFSTOPPED(status))
				return false;
			if (status >> 16 != PTRACE_EVENT_STOP)
				*ret_signal = WSTOPSIG(status);
			return true;
		}
		if (got < 0)
			return false;
		nanosleep(&pause, NULL);
	}
	return false;
}

static bool take_registers(int tid, struct registers *r)
{
	struct user_regs_struct record;
	struct iovec room = { &record, sizeof(record) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &room) != 0)
		return false;
	registers_take(r, &record, room.iov_len);
#if defined(__aarch64__)
	room = (struct iovec){ &r->tcb, sizeof(r->tcb) };
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_TLS, &room) != 0)
		return false;
#endif
	return true;
}

static bool stop(const struct source *s, int tid, struct registers *r, void *stack,
		 size_t *stack_size)
{
	bool done;
	int signal;

	*r = (struct registers){ .tid = tid };
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return false;
	/* A thread that does not stop now is left when this tool ends. */
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 || !has_stopped(tid, &signal))
		return false;
	done = take_registers(tid, r);
	while (done && *stack_size > 0 && !read_memory(s, r->sp, stack, *stack_size))
		*stack_size /= 2;
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
	return done;
}

static bool report(const struct source *s, Dwfl *dwfl)
{
	return dwfl_linux_proc_report(dwfl, s->pid) == 0 && dwfl_report_end(dwfl, NULL, NULL) == 0;
}

static int process_id(const char *word)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(word, &end, 10);
	if (errno || *end || end == word || pid < 1 || pid > INT32_MAX)
		die(EXIT_USAGE, "%s: not a process id, which is a number from 1", word);
	return (int)pid;
}

void live_open(struct source *s, const char *pid)
{
	static const struct source_ops ops = {
		.read = read_memory, .read_pieces = read_pieces, .each_mapping = each_mapping,
		.each_thread = each_thread, .stop = stop, .report = report,
	};

	*s = (struct source){ .ops = &ops, .name = pid, .pid = process_id(pid), .memory = -1 };
}

bool live_hold(struct source *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", s->pid);
	s->memory = open(path, O_RDWR | O_CLOEXEC);
	return s->memory >= 0;
}

void live_release(struct source *s)
{
	if (s->memory >= 0)
		close(s->memory);
	s->memory = -1;
}
