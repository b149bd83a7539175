/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_ROLE_H
#define FZ_RUNTIME_BASE_ROLE_H

/*
 * runtime/base/role.h - what a kernel thread of the process is for, to be shown (runtime/inspect).
 *
 * A table by the kernel's tid.  A kernel thread that ends without fz_role_end() leaves its entry, so
 * readers must ask the kernel which tids live.  If too many tids share one place, a new entry replaces
 * an old one.
 */

#include <stdatomic.h>
#include <stdint.h>

enum fz_role_kind {
	FZ_ROLE_LIBRARY,	/* the library's own */
	FZ_ROLE_MONITOR,	/* the library's, and never in a call of the program */
	FZ_ROLE_NATIVE,		/* a thread of the program that is no fiber */
};

struct fz_role {
	_Atomic int tid;	/* 0: unused; written by the thread, before the rest */
	uint32_t kind;
	const char *why;	/* for people; a constant string */
	const void *record;	/* FZ_ROLE_NATIVE: the thread's struct fz_fiber */
};

enum { FZ_ROLES = 1024 };
extern struct fz_role fz_roles[FZ_ROLES] __attribute__((visibility("hidden")));

/* By the kernel thread itself, or by the thread that starts it.  Any context. */
void fz_role_set(int tid, enum fz_role_kind kind, const char *why, const void *record);
void fz_role_end(int tid);

void fz_role_after_fork(void);

#endif
