/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STATS_H
#define FZ_PRELOAD_STATS_H

/*
 * preload/stats.h - FIBERIZE_STATS: how many calls of each name the program made, and what became
 * of them. With 1 that is printed when the process ends: by exit, _exit, quick_exit, exec, or a
 * signal other than SIGKILL. With the name of a file the counters are in that file all the time,
 * which is mapped (runtime/base/counters.h); no descriptor stays open.
 */

#include <signal.h>
#include <stdbool.h>

#include "preload/real.h"
#include "runtime/base/base.h"

extern bool fz_stats_wanted FZ_HIDDEN;

/*
 * Count a call of symbol by a fiber, or passed through. caller: where the body returns to. A call
 * made by the library, or by libc's code of another name that was counted, does not count:
 * libc's usleep calls nanosleep, which calls clock_nanosleep. Any thread, any context.
 */
void fz_stats_count(enum fz_symbol symbol, bool fiber, const void *caller);

/*
 * Until the block ends, calls that libc makes on this thread are a part of the caller's, which was
 * counted: for functions of libc whose work is done by others that have no name.
 */
#define FZ_COUNTED_AS_ONE                                                        \
	__attribute__((cleanup(fz_stats_one_ends), unused)) const bool counted_as_one_ = \
		fz_stats_one_begins()

bool fz_stats_one_begins(void);
void fz_stats_one_ends(const bool *before);

/*
 * The value of a call of libc's function, which returns to the library even if that function
 * only jumps to another one: fz_stats_count() looks where.
 */
#define FZ_RETURNS_HERE(call)                                                         \
	({                                                                            \
		__typeof__(call) here_ret = (call);                                   \
                                                                                      \
		__asm__ volatile("" : "+r"(here_ret));                                \
		here_ret;                                                             \
	})

/*
 * By the constructor: count from now on, as the program name; option: the value of --stats. And watch
 * for signals that end the process, if a report is to be printed.
 */
void fz_stats_start(const char *name, uint64_t option);
void fz_stats_watch_signals(void);

/*
 * Before the first fiber: go on in the file, if one is wanted. The child of a fork has its own if
 * the name has the process id, or else none.
 */
void fz_stats_to_file(uint32_t processors);

/* Fibers are there: what the report tells of the runtime. */
void fz_stats_started(void);

/* Is a report printed at the end? */
bool fz_stats_are_printed(void);

/* Before entry points of libc are redirected: only then do libc's own calls come to us. */
void fz_stats_before_redirect(void);

/* The child of a fork begins at zero. */
void fz_stats_after_fork(void);

/*
 * Print the report, once for each process. Any thread, any context. fz_stats_last_words() is for a
 * process that a signal ends: it skips lines for which it would have to wait for stderr.
 */
void fz_stats_say(void);
void fz_stats_last_words(void);

/* exec has failed: the process goes on, and has a report to come. */
void fz_stats_go_on(void);

/*
 * Does the library watch for sig? If so, and while the program's action for sig is the default one,
 * the kernel calls fz_stats_signal(), which prints the report and takes the default action.
 */
bool fz_stats_watches(int sig);
void fz_stats_signal(int sig, siginfo_t *info, void *ucontext);

#endif
