/* SPDX-License-Identifier: MIT */
#ifndef TRACE_CHILD_H
#define TRACE_CHILD_H

/*
 * scripts/trace/child.h - the program that "fiberize trace -- PROGRAM" has started.
 *
 * Its first kernel thread is traced by ptrace, so that the process waits at its end, with its memory, until
 * the events are read; however late this tool runs.  Each signal of that thread goes through this tool.
 * Where ptrace is forbidden, or another debugger is there, the program ends by itself.
 */

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid;			/* 0: none, or it has ended */
	int status;			/* when it has ended: an exit status, as a shell has it */
	bool is_traced;
	bool is_leaving;		/* it waits at its end until child_let_go() */
	bool is_ending;			/* it was let go, and executes no other program */
};

/* Start the launcher with these words; ends the tool with a message if that fails. */
void child_start(struct child *c, char **words);

/* Has it ended?  Also lets it go on with the signals that it has got. */
bool child_ended(struct child *c);

/* Is it at its end, and none of its threads runs any more?  Then what is read now is all that there is. */
bool child_is_still(const struct child *c);

/* Let it end, or execute another program. */
void child_let_go(struct child *c);

/* Trace it, if it is not traced: it may have executed another program by another thread. */
void child_trace(struct child *c);

/* Trace it no more. */
void child_detach(struct child *c);

/* Wait for SIGCHLD, at most for ns, which is below a second. */
void child_wait(long ns);

#endif
