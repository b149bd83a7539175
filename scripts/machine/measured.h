/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_MEASURED_H
#define MACHINE_MEASURED_H

/*
 * scripts/machine/measured.h - the file in which "fiberize bench" keeps what it has measured, for
 * "fiberize status": $XDG_STATE_HOME/fiberize/measured, by default below ~/.local/state.
 *
 * scripts/bench/keep.c appends a line for each case of a bench, made by scripts/bench/report/record.awk, with tabs
 * between
 *
 *	seconds since 1970, version, connections, rate (both 0: the load's own),
 *	median, low and high of the ratios of CPU time to native, verdict, directory, program, command
 */

#include <stdbool.h>
#include <stddef.h>

/* The writer keeps the file below this size; readers read no more of its end. */
#define MEASURED_FILE_MOST ((size_t)1 << 20)

/* Where the file is, as the environment says. */
struct measured_place {
	char *directory;	/* of the file; the caller frees it */
	size_t base;		/* how many of its first bytes are $XDG_STATE_HOME or $HOME */
	bool is_home;		/* they are $HOME */
};

struct measured_case {
	long when, connections, rate;
	char version[32];
	double median, low, high;
	char verdict[16];
};

/* False if the environment names no place. */
bool measured_place(struct measured_place *ret);

/*
 * What the file has of a process: its working directory, its program and its command line, with tabs between;
 * control characters are '?'. The directory is "-" if it cannot be read, or if `beside` is not 0 and that process has
 * another one: then it says nothing of the arguments. NULL if program or command cannot be read, or if they are too
 * long to keep. The caller frees it.
 */
char *measured_key(int pid, int beside);

/* The end of the file, whole lines, or NULL if there is none. The caller frees it. */
char *measured_read(void);

/*
 * Find in the text of measured_read() the cases of the last bench of this program with these arguments, apart from
 * arguments, and ends of arguments after "=" or ":", that are numbers: a bench has other ports than a service. If an
 * argument may be the relative name of a file, the working directory must be the same, too. key is that of
 * measured_key(). Returns how many cases there are, and stores the first `room` of them.
 */
size_t measured_find(const char *text, const char *key, struct measured_case *ret, size_t room);

#endif
