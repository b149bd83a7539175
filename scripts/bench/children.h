/* SPDX-License-Identifier: MIT */
#ifndef FZ_BENCH_CHILDREN_H
#define FZ_BENCH_CHILDREN_H

/*
 * scripts/bench/children.h - starts, watches and stops the server and the load of measure.c, with all
 * their descendants. For a program of one thread.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct children {
	const char *name;		/* the server's name in messages */
	pid_t server, load;		/* 0: not started yet */
	bool server_gone, load_gone;
	int server_status, load_status;	/* as of wait4 */
	double dead_voluntary, dead_involuntary;	/* context switches of the server's ended processes */
	int interrupted;		/* the signal that asked measure to end, or 0 */
};
extern struct children children;

/* Print a message. */
__attribute__((format(printf, 1, 2))) void warn(const char *fmt, ...);

/* Print a message and exit. Only before the server is started; fail() stops the server first. */
__attribute__((format(printf, 2, 3), noreturn)) void die(int status, const char *fmt, ...);
__attribute__((format(printf, 2, 3), noreturn)) void fail(int status, const char *fmt, ...);

/* Block the signals that nap() takes. */
void take_signals(void);

/* Wait at most ms milliseconds for a signal, and act on it. */
void nap(double ms);

/* Start a program, with its output appended to the file log; exits with failed_status on failure. */
pid_t spawn(char **argv, const char *log, int failed_status);

void stop_load(void);

/*
 * Send SIGTERM to the server's first process, as an init system does. When that process has ended,
 * its descendants get SIGTERM. What is left after 5 seconds is killed.
 */
void stop_server(void);

/* Have the server's first process and all its descendants ended? A daemon's first process ends at once. */
bool server_ended(void);

/*
 * Like server_ended(), but if the kernel is just ending the server, waits until the server has
 * ended. Searches /proc, so do not call this function during a measurement.
 */
bool server_ends(void);

/* Write into buf, in words, how a child has ended; status is that of wait4(). */
void describe(int status, char *buf, size_t len);

#endif
