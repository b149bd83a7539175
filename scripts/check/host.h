/* SPDX-License-Identifier: MIT */
#ifndef CHECK_HOST_H
#define CHECK_HOST_H

/*
 * scripts/check/host.h - what this machine has for fibers: io_uring or epoll to wait by, and the
 * cost of a switch.
 */

/*
 * The cost in ns of the system call that each switch between fibers makes on a CPU where user
 * space cannot write the thread pointer; 0 if a switch makes no system call.
 */
unsigned switch_call_ns(void);

/*
 * From this cost on, in ns, switches may lose more time than fibers save by parking outside the
 * kernel.
 */
enum { SWITCH_DEAR_NS = 1000 };

enum waits_by { BY_IO_URING, BY_EPOLL, BY_THREADS };

struct backend {
	enum waits_by by;		/* BY_THREADS: only io_uring is wanted, and there is none */
	char why[80];			/* why io_uring cannot be used here; "" if it can */
};

/* Make a ring as the library does, and give it back. The options are taken from the environment. */
void backend_find(struct backend *ret);

#endif
