/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/sigpipe.c - SIGPIPE for a request on the ring; the kernel sends none to the
 * program's thread.
 */
#include "runtime/signal/signal_internal.h"

void fz_signal_raise_sigpipe(struct fz_fiber *self)
{
	struct fz_siginfo info = fz_signal_info(SIG_PIPE, CODE_USER, 0);

	if (self->mask & fz_signal_bit(SIG_PIPE))
		fz_signal_send(self, SIG_PIPE, &info, false);
	else
		fz_signal_send_here(self, SIG_PIPE, &info);
}
