/* SPDX-License-Identifier: MIT */
#ifndef CHECK_HOST_H
#define CHECK_HOST_H

/*
 * scripts/check/host.h - finds out how fibers would wait on this machine (io_uring or epoll), and what
 * a switch costs.
 */

/*
 * Measure the system call that sets the thread pointer, in ns. Each switch between fibers makes
 * this call if user space cannot write the thread pointer itself. Returns 0 if user space can.
 */
unsigned switch_call_ns(void);

/*
 * If switch_call_ns() is this many ns or more, switches between fibers may cost more time than
 * fibers save.
 */
enum { SWITCH_DEAR_NS = 1000 };

enum waits_by { BY_IO_URING, BY_EPOLL, BY_THREADS };

struct backend {
	enum waits_by by;		/* BY_THREADS: the user wants io_uring only, and it cannot be used */
	char why[80];			/* why io_uring cannot be used here; "" if it can */
};

/* Find out what the library would use: make an io_uring as it does, and close it. Reads options in environ. */
void backend_find(struct backend *ret);

#endif
