/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/sigpipe.c - the signals that come with a write's error: the kernel's, which it
 * sends to the kernel thread that has made the call, and that of a request on the ring, for which
 * the kernel sends none.
 */
#include "runtime/signal/signal_internal.h"

#include <asm/errno.h>

#include "runtime/base/sys.h"
#include "runtime/signal/queue.h"

void fz_signal_collect(struct fz_fiber *self, int err)
{
	static const struct __kernel_timespec none;
	const int sig = err == -EPIPE ? SIG_PIPE : SIG_XFSZ;
	uint64_t set = fz_signal_bit(sig);
	struct fz_siginfo info;
	struct fz_signode *node;

	if (self->kind != FZ_KIND_FIBER || !(self->mask & set) ||
	    fz_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none,
			sizeof(set)) != sig)
		return;
	node = fz_signode_new(sig, &info, true, false);
	if (node)
		fz_sigqueue_add(self, node);
}

void fz_signal_raise_sigpipe(struct fz_fiber *self)
{
	struct fz_siginfo info = fz_signal_info(SIG_PIPE, CODE_USER, 0);

	if (self->mask & fz_signal_bit(SIG_PIPE))
		fz_signal_send(self, SIG_PIPE, &info, false);
	else
		fz_signal_send_here(self, SIG_PIPE, &info);
}
