/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_HOOKS_H
#define FZ_RUNTIME_BACKEND_HOOKS_H

/*
 * runtime/backend/hooks.h - what a backend needs of the scheduler, which is above it.  Set by
 * fz_backends_init().
 */

#include "runtime/base/base.h"
#include "runtime/base/ticket.h"

struct fz_backend_hooks {
	/*
	 * What the ticket's owner waited for has happened.  Returns false if something else
	 * has ended that wait.  In the runtime.
	 */
	bool (*wake)(struct fz_ticket ticket);

	/* The calling kernel thread hands requests to the kernel, which are lost if it ends. */
	void (*submits)(void);
};
extern struct fz_backend_hooks fz_backend_hooks FZ_HIDDEN;

#endif
