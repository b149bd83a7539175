/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_OWN_FDS_H
#define FZ_RUNTIME_SCHED_OWN_FDS_H

/*
 * runtime/sched/own_fds.h - the library's own descriptors, which the program must not touch: those of
 * the processors' backends, the files of CPU quotas (base/cpus.h), and private copies of calls in
 * progress (backend/kept_fd.h).  A new kind of own descriptor must be added here, and fz_sched_after_fork()
 * (start.c) must close it.
 * Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

/* How many descriptors the processors have at most. */
uint32_t fz_sched_fd_count(void);

/* The i-th descriptor of the processors, or -1. */
int fz_sched_fd(uint32_t i);

/* Is fd an own descriptor? */
bool fz_sched_owns_fd(int fd);

/* Is fd open, and no own descriptor?  If a filter forbids to ask, it counts as open.  Outside the runtime. */
bool fz_sched_program_has_fd(int fd);

/*
 * fz_own_fd_hold_limit(), fz_own_fd_release_limit() and fz_kept_fd_copying_ends() for callers
 * outside the runtime, handlers too.
 */
void fz_sched_hold_limit(void);
void fz_sched_release_limit(void);
void fz_sched_copying_ends(void);

/* If fd is one of the library's own descriptors, move it to another number.  Returns 0 or -errno. */
int fz_sched_vacate_fd(int fd);

#endif
