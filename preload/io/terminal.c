/* SPDX-License-Identifier: MIT */
/*
 * preload/io/terminal.c - terminals, and ioctl: how long a request waits is unknown, so it is
 * a brief call.
 */
#include "preload/io/brief.h"
#include "preload/real_call.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/retreat.h"

#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <termios.h>

/*
 * Does the request wait until output has drained? Only these requests are repeated after EINTR:
 * for others EINTR may be the answer to the program (KVM_RUN).
 */
static bool drains(unsigned long request)
{
	switch (request) {
	case TCSBRK:
	case TCSBRKP:
	case TCSETSW:
	case TCSETSF:
		return true;
	default:
		return false;
	}
}

FZ_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_ioctl);
	struct fz_blocked call;
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (FZ_UNLIKELY(request == USERFAULTFD_IOC_NEW))
		fz_retreat_before_faults("userfaultfd is in use");
	if (request == FIONBIO)
		fz_fdtab_nonblocking_begins(fd);
	call = fz_block(self, FZ_CALL_BRIEF);
	do
		ret = fz_real.ioctl(fd, request, arg);
	while (drains(request) && fz_block_again(&call, ret));
	fz_block_end(&call, ret);
	if (request == FIONBIO)
		fz_fdtab_nonblocking_ends(fd, ret == 0, ret == 0 && *(int *)arg != 0);
	return ret;
}

/* Has the terminal output that is not sent yet, for which a call would wait? */
static bool has_output(int fd)
{
	int saved = errno, left = 0;
	bool has = fz_real.ioctl(fd, TIOCOUTQ, &left) == 0 && left > 0;

	errno = saved;
	return has;
}

FZ_EXPORT int tcdrain(int fd)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_tcdrain);
	struct fz_blocked call = fz_block(self && has_output(fd) ? self : NULL, 0);

	return FZ_REPEAT(&call, fz_real.tcdrain(fd));
}

FZ_EXPORT int tcsetattr(int fd, int actions, const struct termios *settings)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_tcsetattr);
	bool waits = self && actions != TCSANOW && has_output(fd);
	struct fz_blocked call = fz_block(waits ? self : NULL, FZ_CALL_RESTARTS);

	return FZ_REPEAT(&call, fz_real.tcsetattr(fd, actions, settings));
}

/* A break takes at least 250 ms. */
FZ_EXPORT int tcsendbreak(int fd, int duration)
{
	struct fz_blocked call = fz_block(fz_enter(FZ_SYM_tcsendbreak), 0);

	return FZ_REPEAT(&call, fz_real.tcsendbreak(fd, duration));
}

FZ_EXPORT_BRIEF(int, tcflow, (int fd, int action), fd, action)
