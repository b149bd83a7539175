/* SPDX-License-Identifier: MIT */
#ifndef TOP_TERMINAL_H
#define TOP_TERMINAL_H

/*
 * scripts/top/terminal.h - the terminal, by ncurses; it is as it was when the tool ends or stops.
 */

#include <signal.h>
#include <stdbool.h>

enum { TERMINAL_LINES = 10, TERMINAL_COLUMNS = 60 };	/* the least */

/* Ends the tool with a message and EXIT_TERMINAL if there is no terminal that can be used. */
void terminal_open(void);
void terminal_close(void);

/* The signal mask to wait with: handlers run only then. */
const sigset_t *terminal_mask(void);

/*
 * After a handler has run: end by the signal, stop, or take the new size.  Returns when the tool
 * goes on, and all must be drawn anew.
 */
void terminal_signals(void);

/* The next key, or ERR; the tool ends if the terminal is gone. */
int terminal_key(bool must_be);

/* Is there less room than what is needed? */
bool terminal_is_small(void);

#endif
