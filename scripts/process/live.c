/* SPDX-License-Identifier: MIT */
/*
 * scripts/process/live.c - reads a live process, by process_vm_readv, ptrace and /proc.
 *
 * Reading memory stops nothing.  Reading the registers of a kernel thread stops that thread, for
 * less than 1 ms unless the machine is busy; no signal is sent to it.
 */
#include "source.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "say.h"
#include "tasks.h"

/*
 * Read by way of the program's reader, or another kernel thread if the reader has ended.  This does not check
 * whether the process still runs the program: program_runs() does that when all has been read.
 */
static ssize_t read_by(struct program *p, const struct iovec *here, const struct iovec *there,
		       size_t count)
{
	ssize_t got = process_vm_readv(p->reader, here, count, there, count, 0);

	if (got < 0 && errno == ESRCH && program_choose_reader(p))
		got = process_vm_readv(p->reader, here, count, there, count, 0);
	return got;
}

static bool read_memory(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	const struct iovec here = { buffer, size };
	const struct iovec there = { (void *)(uintptr_t)address, size };

	/* A tool that writes must not read another program's memory, so it reads the memory it has open. */
	if (s->program->writes)
		return pread(s->program->memory, buffer, size, (off_t)address) == (ssize_t)size;
	return read_by(s->program, &here, &there, 1) == (ssize_t)size;
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
	got = read_by(s->program, here, there, count);
	for (; n < count && got >= (ssize_t)pieces[n].size; n++)
		got -= (ssize_t)pieces[n].size;
	return n;
}

/* The file may have been renamed or deleted: then " (deleted)" ends the path. */
static bool each_mapping(const struct source *s, bool (*found)(void *arg, const struct mapping *m),
			 void *arg)
{
	char path[64], *line = NULL;
	size_t room = 0;
	bool more = true;
	FILE *maps;

	/* The first thread may have ended, and then its maps are empty, so use the reader's. */
	snprintf(path, sizeof(path), "/proc/%d/maps", s->program->reader);
	maps = fopen(path, "re");
	if (!maps)
		return false;
	while (more && getline(&line, &room, maps) > 0) {
		unsigned major, minor;
		struct mapping m;
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %n", &m.begin, &m.end,
			   &m.offset, &major, &minor, &m.inode, &at) != 6 || !at)
			continue;
		m.device = makedev(major, minor);
		m.path = line + at;
		if (*m.path == '/' || strcmp(m.path, "[vdso]") == 0)
			more = found(arg, &m);
	}
	free(line);
	fclose(maps);
	return true;
}

static void each_thread(const struct source *s, bool (*found)(void *arg, int tid), void *arg)
{
	task_each(s->pid, found, arg);
}

/* Wait at most 200 ms until the thread has stopped. *ret_signal: the signal that it was to receive, or 0. */
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

struct stopping {
	const struct source *source;
	int tid;
	struct registers *registers;
	void *stack;
	size_t *stack_size;
	bool done;
};

static void *stop_and_let_go(void *arg)
{
	struct stopping *a = arg;
	int signal;

	if (ptrace(PTRACE_SEIZE, a->tid, NULL, NULL) != 0)
		return NULL;
	/*
	 * Wait for the thread even if PTRACE_INTERRUPT fails because the thread is ending. An execve in the
	 * process may have killed it; that execve goes on only when this process, the tracer, has waited for
	 * the killed thread, and until then it holds a lock that PTRACE_SEIZE needs.
	 */
	ptrace(PTRACE_INTERRUPT, a->tid, NULL, NULL);
	if (!has_stopped(a->tid, &signal))
		return NULL;
	a->done = take_registers(a->tid, a->registers);
	if (a->done)
		*a->stack_size = source_read_up_to(a->source, a->registers->sp, a->stack, *a->stack_size);
	/* PTRACE_DETACH fails if the thread has been killed meanwhile. */
	if (ptrace(PTRACE_DETACH, a->tid, NULL, (void *)(intptr_t)signal) != 0)
		has_stopped(a->tid, &signal);
	return NULL;
}

/*
 * Stop a kernel thread and read its registers, by a tracer thread that is made for this. If the kernel thread
 * does not stop in time, it would stop later, when its call returns, and stay stopped. But then the tracer
 * has ended, which ends the tracing.
 */
static bool stop(const struct source *s, int tid, struct registers *r, void *stack,
		 size_t *stack_size)
{
	struct stopping stopping = { s, tid, r, stack, stack_size, false };
	pthread_t tracer;

	*r = (struct registers){ .tid = tid };
	if (pthread_create(&tracer, NULL, stop_and_let_go, &stopping) != 0)
		return false;
	pthread_join(tracer, NULL);
	return stopping.done;
}

static bool call(const struct source *s, int tid, struct system_call *ret)
{
	uint64_t *a = ret->arguments;
	char line[256];

	/* "running", or the number and the arguments in hexadecimal. */
	task_line(s->pid, tid, "syscall", line, sizeof(line));
	return sscanf(line, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &ret->number,
		      &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) == 7 &&
	       ret->number >= 0;
}

bool live_open(struct source *s, int pid, bool writes)
{
	static const struct source_ops ops = {
		.read = read_memory, .read_pieces = read_pieces, .each_mapping = each_mapping,
		.each_thread = each_thread, .stop = stop, .call = call,
	};

	*s = (struct source){ .ops = &ops, .pid = pid };
	s->program = calloc(1, sizeof(*s->program));
	if (!s->program)
		die(EXIT_OTHER, "no memory");
	return program_open(s->program, pid, writes);
}

void live_close(struct source *s)
{
	if (s->program)
		program_close(s->program);
	free(s->program);
	s->program = NULL;
}
