/* SPDX-License-Identifier: MIT */
#ifndef TOP_TERMINAL_H
#define TOP_TERMINAL_H

/*
 * scripts/top/terminal.h - the terminal, by ncurses. Its modes are restored when the tool ends or stops.
 */

#include <signal.h>
#include <stdbool.h>

enum { TERMINAL_LINES = 10, TERMINAL_COLUMNS = 60 };	/* the smallest size for which the screen is made */

/* Open the terminal. Ends the tool with a message and EXIT_TERMINAL if it cannot be used. */
void terminal_open(void);
void terminal_close(void);

/* The signal mask to use while waiting: the signals are blocked at all other times. */
const sigset_t *terminal_mask(void);

/*
 * Act on the signals that handlers have noted: end by the signal, stop, or take the new size.  Returns if
 * the tool goes on; then the whole screen must be drawn again.
 */
void terminal_signals(void);

/*
 * The next key, or ERR if there is none. must_be: poll() has said that there is input. If it often says so
 * and there is no key, the terminal is gone, and the tool ends.
 */
int terminal_key(bool must_be);

/* Is the terminal smaller than TERMINAL_LINES by TERMINAL_COLUMNS? */
bool terminal_is_small(void);

#endif
