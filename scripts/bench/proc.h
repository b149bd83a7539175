/* SPDX-License-Identifier: MIT */
#ifndef FZ_SCRIPTS_BENCH_PROC_H
#define FZ_SCRIPTS_BENCH_PROC_H

/*
 * scripts/bench/proc.h - reads /proc: figures and sockets of the caller's descendants, and an
 * environment.
 *
 * A tree is the set of all processes that descend from the caller. It has no zombies, and not the
 * process `except` with its descendants (0: no process is left out). Each call searches anew,
 * because processes come and go. Each function ends the caller with status 114 if memory runs out
 * or /proc is missing.
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
	pid_t pid;	/* which process it belongs to; unless all sockets were searched */
	char host[INET6_ADDRSTRLEN + 2];	/* address to connect to; IPv6 in [] */
};

struct fz_tree fz_tree_find(pid_t except);

/*
 * Make room for one more element in an array of n elements of `each` bytes. Returns the array, which
 * may have moved; old may be NULL if n is 0.
 */
void *fz_grow(void *old, size_t n, size_t each);

/*
 * Has the kernel begun to end each process of a tree? A process that is ending closes its sockets
 * before it becomes a zombie.
 */
bool fz_tree_ends(pid_t except);

/* The sums of the figures of all processes in a tree. */
struct fz_figures fz_tree_measure(pid_t except);

/*
 * Count the descriptors of a tree that may have leaked. Left out are listening and established TCP
 * sockets, which a program may keep for the next client, and descriptors that a runtime opens for
 * itself: epoll, eventfd, io_uring, and files in /sys (limits of its cgroup).
 */
size_t fz_tree_descriptors(pid_t except);

/*
 * Find the listening TCP socket of a tree: the socket on port, or if port is 0, the socket on the
 * lowest port. Returns how many ports fit (of the process that has most); if 0, *ret_l is unchanged.
 */
int fz_tree_listens(pid_t except, unsigned port, struct fz_listener *ret_l);

/*
 * Find the listening TCP socket, as fz_tree_listens() does, among the sockets of process pid. If mine
 * is false, search all sockets in the network namespace of pid, of whatever process.
 */
int fz_listener_find(pid_t pid, bool mine, unsigned port, struct fz_listener *ret_l);

/*
 * Replace environ by the variables in file, a /proc/PID/environ: the environment that process PID
 * was started with. A shell could not do this: it drops variables with names that it does not
 * allow. If file cannot be read, environ stays as it is.
 */
void fz_environment_become(const char *file);

#endif
