/* SPDX-License-Identifier: MIT */
#ifndef FZ_SCRIPTS_BENCH_PROC_H
#define FZ_SCRIPTS_BENCH_PROC_H

/*
 * scripts/bench/proc.h - reads /proc: figures and sockets of the caller's descendants, and an
 * environment.
 *
 * A tree is all processes that descend from the caller, without the process except and its
 * descendants (0: no exception), and without zombies. Each call searches anew, because
 * processes come and go. Each function ends the process with status 114 if memory runs out or
 * /proc is missing.
 */

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fz_tree {
	pid_t *pid;		/* to be freed by the caller */
	size_t n;
};

struct fz_figures {
	double cpu_us;		/* includes threads and children that have ended */
	double voluntary;	/* context switches of live threads only */
	double involuntary;
	double peak_kb;
};

struct fz_listener {
	unsigned port;
	char host[INET6_ADDRSTRLEN + 2];	/* address to connect to; IPv6 in [] */
};

struct fz_tree fz_tree_find(pid_t except);

/*
 * Make room for element n of an array of elements of size each, which has n of them. Returns the
 * array; old may be NULL.
 */
void *fz_grow(void *old, size_t n, size_t each);

/*
 * Has the kernel begun to end each process of a tree?  It closes their sockets before they are
 * zombies.
 */
bool fz_tree_ends(pid_t except);

/* The sum over a tree. */
struct fz_figures fz_tree_measure(pid_t except);

/*
 * Count the descriptors of a tree that a leak would leave behind: not the program's listening and
 * established TCP sockets, which may be kept for the next client, nor what a runtime opens for
 * itself in each process: event polls, event counters, io_uring, the limits of its cgroup.
 */
size_t fz_tree_descriptors(pid_t except);

/*
 * Find the listening TCP socket of a tree: the socket on port, or with port 0 the one on the
 * lowest port. Returns the number of candidates; leaves *ret_l alone if there is none.
 */
int fz_tree_listens(pid_t except, unsigned port, struct fz_listener *ret_l);

/*
 * Like fz_tree_listens(), for one process; with mine false, for all sockets in the network
 * namespace of pid, whichever process has them open.
 */
int fz_listener_find(pid_t pid, bool mine, unsigned port, struct fz_listener *ret_l);

/*
 * Replace environ by the environment that a process was started with: file is its
 * /proc/PID/environ. A shell would drop variables whose names it cannot hold. If file cannot be
 * read, environ stays as it is.
 */
void fz_environment_become(const char *file);

#endif
