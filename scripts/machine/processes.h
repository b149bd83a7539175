/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_PROCESSES_H
#define MACHINE_PROCESSES_H

/*
 * scripts/machine/processes.h - the processes of this machine that this tool sees in /proc, and what they
 * are.  Any of them may end between two looks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What /proc/PID/stat says.  Two processes with one number differ in start. */
struct process_state {
	char name[16];
	char state;			/* of the first thread; Z: has ended */
	bool is_kernel;			/* a thread of the kernel's */
	uint64_t user, system;		/* CPU time of all its threads, ended ones too, in ticks */
	long threads;
	uint64_t start;			/* in ticks since the machine started */
};

/* Their numbers, in order, without this tool's own; free() them. */
int *processes_list(size_t *ret_count);

/* False: there is no such process. */
bool process_read(int pid, struct process_state *ret);

/* Seconds since 1970 at which it started. */
double process_start_time(const struct process_state *state);

/*
 * The program: its path as this tool would open it, which is /proc/PID/exe if the file is deleted or in
 * another root; NULL, with errno, if it may not be known.  free() it.
 */
char *process_program(int pid);

/* The service of systemd that it belongs to, without ".service", or NULL.  free() it. */
char *process_service(int pid);

/* The command line as a shell would take it, or NULL.  free() it. */
char *process_command(int pid);

/* Is its root this tool's? */
bool process_root_is_ours(int pid);

/* Has it mapped a file with this name?  The file may be deleted. */
bool process_maps(int pid, const char *file_name);

#endif
