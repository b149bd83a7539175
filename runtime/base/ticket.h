/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_TICKET_H
#define FZ_RUNTIME_BASE_TICKET_H

/*
 * runtime/base/ticket.h - one sleep of one thread, for those who know when it is over; what
 * becomes of it then is runtime/sched/park.h's.
 */

#include <stdint.h>

struct fz_fiber;

struct fz_ticket {
	struct fz_fiber *fiber;
	uint64_t number;
};

#endif
