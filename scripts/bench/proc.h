/* SPDX-License-Identifier: MIT */
#ifndef FZ_SCRIPTS_BENCH_PROC_H
#define FZ_SCRIPTS_BENCH_PROC_H

/*
 * scripts/bench/proc.h - what /proc tells about our descendants, and of an environment.
 *
 * A tree is all processes that descend from the caller, but neither except
 * nor those below it; 0 excepts none.  Zombies are not among them.  Found anew
 * by each call, for processes come and go.  Any of these ends the process, with
 * status 114, if memory runs out or there is no /proc.
 */

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fz_tree {
	pid_t *pid;		/* the caller's to free */
	size_t n;
};

struct fz_figures {
	double cpu_us;		/* also of threads and children that have ended */
	double voluntary;	/* context switches, of live threads only */
	double involuntary;
	double peak_kb;
};

struct fz_listener {
	unsigned port;
	char host[INET6_ADDRSTRLEN + 2];	/* to connect to; [] around IPv6 */
};

struct fz_tree fz_tree_find(pid_t except);

/* The sum over a tree. */
struct fz_figures fz_tree_measure(pid_t except);

/*
 * The listening TCP socket of a tree: that on port, or with port 0 the one on
 * the lowest.  Returns how many there were to choose from; *ret_l is untouched
 * if none.
 */
int fz_tree_listens(pid_t except, unsigned port, struct fz_listener *ret_l);

/*
 * The same for one process; or with mine false, for all sockets in its network
 * namespace, whoever has them open.
 */
int fz_listener_find(pid_t pid, bool mine, unsigned port, struct fz_listener *ret_l);

/*
 * Make environ what a process was started with: file is its /proc/PID/environ.  A shell drops
 * names that it cannot hold.  Without that file environ stays as it is.
 */
void fz_environment_become(const char *file);

#endif
