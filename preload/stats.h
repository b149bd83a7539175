/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STATS_H
#define FZ_PRELOAD_STATS_H

/*
 * preload/stats.h - FIBERIZE_STATS: how many calls of each name the program made, and what became
 * of them. With 1 a report is printed when the process ends: by exit, _exit, quick_exit, exec, or a
 * signal other than SIGKILL. With the name of a file, the counters are kept in that file, which is
 * mapped into memory (runtime/base/counters.h); no descriptor stays open.
 */

#include <signal.h>
#include <stdbool.h>

#include "preload/real.h"
#include "runtime/base/base.h"

extern bool fz_stats_wanted FZ_HIDDEN;

/*
 * Count a call of symbol by a fiber, or passed through. caller: the address to which the body returns. A call
 * made by the library, or by libc's code of another name that was counted, does not count:
 * libc's usleep calls nanosleep, which calls clock_nanosleep. Any thread, any context.
 */
void fz_stats_count(enum fz_symbol symbol, bool fiber, const void *caller);

/*
 * Until the C block ends, do not count calls that libc makes on this thread: they are a part of a
 * call that was counted. For a function whose calls come from internal functions of libc, which
 * fz_stats_count() does not recognise.
 */
#define FZ_COUNTED_AS_ONE                                                        \
	__attribute__((cleanup(fz_stats_one_ends), unused)) const bool counted_as_one_ = \
		fz_stats_one_begins()

bool fz_stats_one_begins(void);
void fz_stats_one_ends(const bool *before);

/*
 * Call libc's function and return its value, but not by a tail call. Even if that function only jumps to
 * another one, whose calls are counted, that one returns into the library: so fz_stats_count() does not count.
 */
#define FZ_RETURNS_HERE(call)                                                         \
	({                                                                            \
		__typeof__(call) here_ret = (call);                                   \
                                                                                      \
		__asm__ volatile("" : "+r"(here_ret));                                \
		here_ret;                                                             \
	})

/*
 * Called by the constructor. fz_stats_start() counts calls from now on; name: the program's;
 * option: the value of --stats. fz_stats_watch_signals(), only if a report is to be printed, makes
 * signals that end the process print it.
 */
void fz_stats_start(const char *name, uint64_t option);
void fz_stats_watch_signals(void);

/*
 * Keep the counters in the file from now on, if --stats names one. Called before the first fiber. The
 * child of a fork counts in a file of its own if the name has the process id (%p), else in none.
 */
void fz_stats_to_file(uint32_t processors);

/* Called when the runtime has started: note the backend with the counters, for those who read the file. */
void fz_stats_started(void);

/* Is a report printed at the end? */
bool fz_stats_are_printed(void);

/*
 * Find libc's functions in memory, to recognise calls that libc itself makes. Called before libc's
 * entry points are redirected: only after that do such calls come to the library.
 */
void fz_stats_before_redirect(void);

/* In the child of a fork: count from zero. */
void fz_stats_after_fork(void);

/*
 * Print the report, once for each process. Any thread, any context. fz_stats_last_words() is for a
 * process that a signal ends: it skips lines for which it would have to wait for stderr.
 */
void fz_stats_say(void);
void fz_stats_last_words(void);

/* Called when exec has failed: the process goes on, and prints a report again at its end. */
void fz_stats_go_on(void);

/*
 * Does the library watch for sig? If so, and while the program's action for sig is the default one,
 * the kernel calls fz_stats_signal(), which prints the report and takes the default action.
 */
bool fz_stats_watches(int sig);
void fz_stats_signal(int sig, siginfo_t *info, void *ucontext);

#endif
