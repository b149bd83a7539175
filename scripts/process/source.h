/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_SOURCE_H
#define INSPECT_SOURCE_H

/*
 * scripts/process/source.h - reads memory, registers and mappings of a process, from the live process
 * (live.c) or from a core file (core.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A system call, by its number in the kernel, and its arguments. */
struct system_call {
	long number;			/* -1: none */
	uint64_t arguments[6];
};

/* The registers of a kernel thread; values[N] has the register with DWARF number N. */
struct registers {
	int tid;			/* the kernel thread */
	uint64_t values[33];
	size_t count;
	uint64_t pc, sp;
	uint64_t tcb;			/* the thread pointer */
	struct system_call call;	/* as the registers have it; registers_call() tells whether it is one */
};

struct source;

/* Fill in *registers from the kernel's record (NT_PRSTATUS). The record has no tid, and on aarch64 no tcb. */
void registers_take(struct registers *registers, const void *record, size_t size);

/*
 * The system call in which a thread was that stopped, or ended, with these registers. The first argument may be unknown:
 * UINT64_MAX. Returns false if the thread was in none.
 */
bool registers_call(const struct source *s, const struct registers *registers, struct system_call *ret_call);

struct mapping {
	uint64_t begin, end;		/* address */
	uint64_t offset;		/* in the file */
	const char *path;		/* of the file, or "[vdso]"; valid until found returns */
	uint64_t device, inode;		/* of the file, as the kernel shows them; 0: not known (a core file) */
};

struct piece {
	uint64_t address;
	void *buffer;
	size_t size;
};

enum { PIECES_MOST = 256 };

struct source_ops {
	bool (*read)(const struct source *s, uint64_t address, void *buffer, size_t size);
	/* source_read_pieces() by as few system calls as possible.  NULL: use read(). */
	size_t (*read_pieces)(const struct source *s, const struct piece *pieces, size_t count);
	/*
	 * Call found for each mapping of a file, and for the vDSO, until it returns false; sorted by address, but for a
	 * core file's vDSO.  False, with errno: the mappings cannot be read.
	 */
	bool (*each_mapping)(const struct source *s, bool (*found)(void *arg, const struct mapping *m),
			     void *arg);
	/* Call found for each kernel thread, until it returns false. */
	void (*each_thread)(const struct source *s, bool (*found)(void *arg, int tid), void *arg);
	/*
	 * Read the registers of a kernel thread, and the bytes above its stack pointer: at most
	 * *stack_size; then *stack_size is how many were read.  A live thread is stopped meanwhile.
	 * Returns false if there is no such thread, or the thread does not stop.
	 */
	bool (*stop)(const struct source *s, int tid, struct registers *ret_registers, void *stack,
		     size_t *stack_size);
	/*
	 * The system call in which a kernel thread is.  False if it is in none, or runs, or that is not known.
	 * NULL: it is never known.
	 */
	bool (*call)(const struct source *s, int tid, struct system_call *ret_call);
	/* Open a file that was mapped, if the path still has that file; else -1.  NULL: a live process, modules.c looks. */
	int (*open_mapped)(const struct source *s, const char *path);
};

struct source {
	const struct source_ops *ops;
	const char *name;		/* the process id or the file, for messages */
	int pid;
	struct program *program;	/* a live process; NULL if this is a core file */
	struct core *core;		/* NULL if this is a live process */
};

/* Read up to PIECES_MOST pieces, until one fails.  Returns how many were read. */
size_t source_read_pieces(const struct source *s, const struct piece *pieces, size_t count);

/*
 * Read size bytes, or as many as can be read before the end of the mapping, by as few system calls as possible.
 * Returns how many were read; at most PIECES_MOST pages.
 */
size_t source_read_up_to(const struct source *s, uint64_t address, void *buffer, size_t size);

/*
 * Open a file to read it, by a path that a process chose.  Regular files only: opening a device or a FIFO may do
 * something, and hang.  Returns its descriptor, or -1.
 */
int source_open_file(const char *path);

/*
 * Open a live process by its pid, or a core file by its path.  live_open() returns the result of
 * program_open(); core_open() ends the tool with a message and an exit code on failure.
 */
bool live_open(struct source *s, int pid, bool writes);
void live_close(struct source *s);

void core_open(struct source *s, const char *path);

#endif
