/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_PROCESSES_H
#define MACHINE_PROCESSES_H

/*
 * scripts/machine/processes.h - finds the processes of this machine in /proc, with program, service and
 * command line.  Any process may end at any time: then each function fails.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From /proc/PID/stat.  If a pid is used again, the new process has another start. */
struct process_state {
	char name[16];
	char state;			/* of the first thread, as in /proc/PID/stat; 'Z': it has ended */
	bool is_kernel;			/* the process is a kernel thread without a program */
	uint64_t user, system;		/* CPU time of all its threads, ended ones too, in ticks */
	long threads;
	uint64_t start;			/* in ticks since the machine started */
};

/* The pids of all processes but this tool, in ascending order; the caller frees them. */
int *processes_list(size_t *ret_count);

/* Read the state of a process. False if there is no such process. */
bool process_read(int pid, struct process_state *ret);

/* When the process started, in seconds since 1970. */
double process_start_time(const struct process_state *state);

/*
 * The path by which this tool can open the program of the process.  That is /proc/PID/exe if the file is
 * deleted or in another root directory.  NULL with errno (EACCES for example) on failure.  The caller frees it.
 */
char *process_program(int pid);

/* The working directory of the process, or NULL.  The caller frees it. */
char *process_directory(int pid);

/* The systemd service of the process, without ".service", or NULL.  The caller frees it. */
char *process_service(int pid);

/* The command line of the process, quoted for a shell, or NULL.  The caller frees it. */
char *process_command(int pid);

/* Has the process the root directory of this tool? */
bool process_root_is_ours(int pid);

/* Has the process mapped a file whose last part is file_name?  The file may be deleted. */
bool process_maps(int pid, const char *file_name);

#endif
