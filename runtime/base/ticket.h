/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_TICKET_H
#define FZ_RUNTIME_BASE_TICKET_H

/*
 * runtime/base/ticket.h - a ticket: it names one sleep of one thread, for code that learns when
 * the sleep is over.  runtime/sched/park.h says how to get and use one.
 */

#include <stdint.h>

struct fz_fiber;

struct fz_ticket {
	struct fz_fiber *fiber;		/* the thread that sleeps; may be a native thread */
	uint64_t number;		/* the number of that sleep */
};

#endif
