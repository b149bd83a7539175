/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_HOOKS_H
#define FZ_RUNTIME_BACKEND_HOOKS_H

/*
 * runtime/backend/hooks.h - what a backend needs of the scheduler, which is the layer above.  Set
 * by fz_backends_init().
 */

#include "runtime/base/base.h"
#include "runtime/base/ticket.h"

struct fz_backend_hooks {
	/*
	 * The event that the ticket's fiber waits for has happened: wake it.  Returns false if
	 * something else has already ended that wait.  Called in the runtime.
	 */
	bool (*wake)(struct fz_ticket ticket);

	/*
	 * Called before a kernel thread submits requests: the kernel cancels them if that kernel
	 * thread ends.
	 */
	void (*submits)(void);
};
extern struct fz_backend_hooks fz_backend_hooks FZ_HIDDEN;

#endif
