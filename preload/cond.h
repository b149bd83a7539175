/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_COND_H
#define FZ_PRELOAD_COND_H

/* preload/cond.h - what the library's start and end need of condition variables. */

/* In the child, which has one thread. */
void fz_cond_gates_after_fork(void);

#endif
