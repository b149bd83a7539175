/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_PROGRAM_H
#define PROCESS_PROGRAM_H

/*
 * scripts/process/program.h - which process is looked at, and which program of it: a process may end
 * between two looks, and its number be another's; or it may execute another program.
 *
 * The process is its pidfd.  Its program is the memory that it had when the program was opened:
 * /proc/PID/mem, once it is open, is of that memory for ever.
 */

#include <stdbool.h>
#include <stdint.h>

struct program {
	int pid;
	int pidfd;
	int reader;			/* a kernel thread of it that has memory; 0: there is none */
	int memory;			/* its memory; -1: could not be opened */
	bool writes;			/* memory may be written */
	uint64_t mark;			/* address of 16 random bytes that the kernel puts there at exec; 0: unknown */
};

/*
 * Which program the process runs now.  False, with errno: ESRCH: there is no such process, or it is a
 * zombie; EINVAL: it is a thread of another process.  p->memory says whether it may be read: errno is
 * that of open(2) if it is -1.
 */
bool program_open(struct program *p, int pid, bool writes);
void program_close(struct program *p);

/* Has the process ended, be it a zombie still? */
bool program_has_ended(const struct program *p);

/*
 * Does the process run this program still?  Chooses another reader if the reader has ended: a main thread
 * that has left by pthread_exit has no memory.
 */
bool program_runs(struct program *p);

/* Choose a reader.  False: no kernel thread of the process has memory, so it is ending. */
bool program_choose_reader(struct program *p);

#endif
