/* SPDX-License-Identifier: MIT */
#ifndef TRACE_CHILD_H
#define TRACE_CHILD_H

/*
 * scripts/trace/child.h - the program that "fiberize trace -- PROGRAM" has started.
 *
 * This tool traces the program's first kernel thread by ptrace, so that the process waits at its end, and
 * keeps its memory, until all events have been read.  Each signal for that thread comes to this tool first,
 * and is passed on.  If ptrace is forbidden or another debugger is there, the process does not wait, and
 * the last events may be lost.
 */

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid;			/* 0: none, or it has ended */
	int status;			/* when it has ended: its exit status, or 128 + signal, as in a shell */
	bool is_traced;
	bool is_leaving;		/* it is at its end, and waits there for child_let_go() */
	bool is_ending;			/* child_let_go() was called, and it does not execute another program */
};

/* Start the launcher with these words; ends the tool with a message if that fails. */
void child_start(struct child *c, char **words);

/* Has the child ended?  If it has stopped for a signal, the signal is passed on and the child continued. */
bool child_ended(struct child *c);

/* Is the child at its end, and has no other running thread?  Then no more events will be written. */
bool child_is_still(const struct child *c);

/* Let the child that waits at its end go on: it ends, or executes another program. */
void child_let_go(struct child *c);

/* Trace the child if it is not traced. Its first thread is a new one after an exec in another thread. */
void child_trace(struct child *c);

/* Stop tracing the child, which goes on. */
void child_detach(struct child *c);

/* Wait for SIGCHLD, at most ns nanoseconds; ns must be less than one second. */
void child_wait(long ns);

#endif
