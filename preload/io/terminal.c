/* SPDX-License-Identifier: MIT */
/*
 * preload/io/terminal.c - terminals, and ioctl, of which nobody knows what it waits for.
 */
#include "preload/io/brief.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/announce.h"

#include <stdarg.h>
#include <termios.h>

FZ_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_ioctl);
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	ret = fz_real.ioctl(fd, request, arg);
	fz_leave_brief(self);
	if (ret == 0 && request == FIONBIO)
		fz_fdtab_note_nonblocking(fd, *(int *)arg != 0);
	return ret;
}

/* Is there output that it would wait for? */
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

	if (self && has_output(fd))
		fz_announce(self);
	return fz_real.tcdrain(fd);
}

FZ_EXPORT int tcsetattr(int fd, int actions, const struct termios *settings)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_tcsetattr);

	if (self && actions != TCSANOW && has_output(fd))
		fz_announce(self);
	return fz_real.tcsetattr(fd, actions, settings);
}

/* A break takes a quarter of a second at least. */
FZ_EXPORT int tcsendbreak(int fd, int duration)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_tcsendbreak);

	if (self)
		fz_announce(self);
	return fz_real.tcsendbreak(fd, duration);
}

FZ_EXPORT int tcflow(int fd, int action)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_tcflow);
	int ret = fz_real.tcflow(fd, action);

	fz_leave_brief(self);
	return ret;
}
