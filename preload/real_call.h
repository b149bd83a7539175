/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_REAL_CALL_H
#define FZ_PRELOAD_REAL_CALL_H

/*
 * preload/real_call.h - a layer above runtime/io/real_call.h, for functions of libc that return
 * -1 and set errno:
 *
 *	struct fz_blocked call = fz_block(self, FZ_CALL_RESTARTS);
 *
 *	return fz_block_end(&call, FZ_REPEAT(&call, fz_real.something(...)));
 *
 * Before each attempt errno is what it was at fz_block().  Without a fiber (self is NULL) the
 * call is made once, and nothing else is done.
 *
 * The interposer of a function that returns an error number calls fz_call_begin() and
 * fz_call_again() itself: see posix_fallocate() in preload/io/file.c.
 */

#include <errno.h>

#include "runtime/io/real_call.h"

struct fz_blocked {
	struct fz_real_call call;
	int saved_errno;
};

static inline struct fz_blocked fz_block(struct fz_fiber *self, unsigned flags)
{
	int saved_errno = errno;

	if (!self)
		return (struct fz_blocked){ .call.self = NULL };
	return (struct fz_blocked){ fz_call_begin(self, flags), saved_errno };
}

static inline bool fz_block_again(struct fz_blocked *blocked, int64_t ret)
{
	if (!blocked->call.self || !fz_call_again(&blocked->call, ret == -1 ? -errno : 0))
		return false;
	errno = blocked->saved_errno;
	return true;
}

/* The value of the expression, evaluated anew as long as fz_block_again() says so. */
#define FZ_REPEAT(blocked, expression)                               \
	({                                                           \
		__typeof__(expression) repeat_ret;                   \
                                                                     \
		do                                                   \
			repeat_ret = (expression);                   \
		while (fz_block_again(blocked, repeat_ret));         \
		repeat_ret;                                          \
	})

/* Has no handler of this fiber run since fz_block()? Then an early end of the call is not for the program. */
static inline bool fz_block_undisturbed(const struct fz_blocked *blocked)
{
	return blocked->call.self && !fz_call_handled(&blocked->call);
}

/* End the call; returns ret. Required after a brief call, and after a call that may have raised SIGPIPE. */
static inline ssize_t fz_block_end(const struct fz_blocked *blocked, ssize_t ret)
{
	if (blocked->call.self)
		fz_call_end(&blocked->call, ret == -1 ? -errno : 0);
	return ret;
}

#endif
