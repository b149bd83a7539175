/* SPDX-License-Identifier: MIT */
#include "terminal.h"

#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include "scripts/process/say.h"

static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };

static volatile sig_atomic_t arrived[NSIG];
static sigset_t outside;		/* the signal mask that the tool was started with */
static bool is_open;

static void note(int sig)
{
	arrived[sig] = 1;
}

/* Catch the signals, except those that were ignored when the tool was started (nohup). */
static void catch_signals(void)
{
	struct sigaction old, sa = { .sa_handler = note };
	sigset_t all;

	sigemptyset(&all);
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++) {
		sigaction(caught[i], NULL, &old);
		if (old.sa_handler == SIG_IGN)
			continue;
		sigaction(caught[i], &sa, NULL);
		sigaddset(&all, caught[i]);
	}
	sigprocmask(SIG_BLOCK, &all, &outside);
}

const sigset_t *terminal_mask(void)
{
	return &outside;
}

/* Refuse a terminal for which newterm() would end the tool, or on which it would draw nonsense. */
static void check_terminal(void)
{
	const char *name = getenv("TERM");
	int error;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		die(EXIT_TERMINAL, "top: standard input and output must be a terminal; without one "
		    "use --batch");
	if (!name || !*name)
		die(EXIT_TERMINAL, "top: TERM is not set, so the kind of terminal is not known; set it, "
		    "or use --batch");
	if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
		die(EXIT_TERMINAL, "top: TERM=%s: no such terminal is known here (terminfo); set TERM to "
		    "one that is, or use --batch", name);
	if (!cursor_address || !clear_screen)
		die(EXIT_TERMINAL, "top: TERM=%s: this terminal cannot move the cursor or clear the screen; "
		    "use --batch", name);
}

static void take_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(size.ws_row, size.ws_col);
}

bool terminal_is_small(void)
{
	return LINES < TERMINAL_LINES || COLS < TERMINAL_COLUMNS;
}

void terminal_open(void)
{
	setlocale(LC_CTYPE, "");
	check_terminal();
	catch_signals();
	if (!newterm(NULL, stdout, stdin))
		die(EXIT_TERMINAL, "top: the terminal (TERM=%s) cannot be set up; use --batch",
		    getenv("TERM") ? getenv("TERM") : "");
	is_open = true;
	die_after(terminal_close);
	take_size();
	if (terminal_is_small())
		die(EXIT_TERMINAL, "top: the terminal has %d lines and %d columns, and %d and %d are "
		    "needed; use --batch", LINES, COLS, TERMINAL_LINES, TERMINAL_COLUMNS);
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
}

void terminal_close(void)
{
	if (is_open)
		endwin();
	is_open = false;
}

/* Let the signal end or stop the tool, as it would have done if it had not been caught. */
static void act(int sig)
{
	struct sigaction old, dfl = { .sa_handler = SIG_DFL };
	sigset_t one;

	endwin();
	sigemptyset(&one);
	sigaddset(&one, sig);
	sigaction(sig, &dfl, &old);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	/* Here the tool has been stopped and continued. */
	sigprocmask(SIG_BLOCK, &one, NULL);
	sigaction(sig, &old, NULL);
}

void terminal_signals(void)
{
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++) {
		const int sig = caught[i];

		if (!arrived[sig])
			continue;
		arrived[sig] = 0;
		if (sig != SIGCONT && sig != SIGWINCH)
			act(sig);
	}
	/* Another program may have changed the modes of the terminal, and what is on it. */
	endwin();
	take_size();
	clearok(curscr, TRUE);
}

int terminal_key(bool must_be)
{
	static int nothing;
	const int key = getch();

	nothing = key == ERR && must_be ? nothing + 1 : 0;
	if (nothing > 10)
		die(EXIT_TERMINAL, "top: the terminal is gone");
	return key;
}
