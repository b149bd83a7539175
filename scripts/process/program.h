/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_PROGRAM_H
#define PROCESS_PROGRAM_H

/*
 * scripts/process/program.h - recognizes the process that is looked at, and the program that it runs. While
 * a tool looks, the process may end and its pid be used again, or it may execute another program.
 *
 * The process is recognized by its pidfd, the program by its memory: /proc/PID/mem, once it is open, leads
 * to the memory of that program for ever, even after an exec.
 */

#include <stdbool.h>
#include <stdint.h>

struct program {
	int pid;
	int pidfd;
	int reader;			/* the kernel thread by which it is read, as it has memory; 0: none */
	int memory;			/* descriptor of /proc/PID/mem; -1: could not be opened */
	bool writes;			/* memory is open for writing */
	uint64_t mark;			/* address of 16 random bytes that the kernel puts there at exec; 0: unknown */
};

/*
 * Open the process and the program that it runs now.  Returns false with errno ESRCH if there is no such
 * process or it is a zombie, and EINVAL if pid is a thread of another process.  Returns true with
 * p->memory -1 and errno of open(2) if the memory cannot be opened, with ESRCH if the process is ending.
 */
bool program_open(struct program *p, int pid, bool writes);
void program_close(struct program *p);

/* Has the process ended?  A zombie has. */
bool program_has_ended(const struct program *p);

/*
 * Does the process still run this program?  Chooses another reader if the reader has ended, as a main thread
 * ends by pthread_exit() while others go on.
 */
bool program_runs(struct program *p);

/* Choose a reader.  False: no kernel thread of the process has memory, so it is ending. */
bool program_choose_reader(struct program *p);

#endif
