/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_OWN_FDS_H
#define FZ_RUNTIME_SCHED_OWN_FDS_H

/*
 * runtime/sched/own_fds.h - all descriptors of ours, which the program must not touch: those of
 * the processors, and those that calls in progress keep.  Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

/* How many at most, the i-th (or -1), is it one. */
uint32_t fz_sched_fd_count(void);
int fz_sched_fd(uint32_t i);
bool fz_sched_owns_fd(int fd);

/* Move one of ours away from that number.  Returns 0 or -errno. */
int fz_sched_vacate_fd(int fd);

#endif
