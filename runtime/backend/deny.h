/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_DENY_H
#define FZ_RUNTIME_BACKEND_DENY_H

/* runtime/backend/deny.h - fault points at which the kernel refuses requests with certain opcodes. */

struct fz_ring;

#ifdef FZ_FAULTS
/* Let the kernel refuse queued requests, as a filter by opcode does.  By the owner. */
void fz_deny_queued(struct fz_ring *ring);
#else
static inline void fz_deny_queued(struct fz_ring *ring)
{
	(void)ring;
}
#endif

#endif
