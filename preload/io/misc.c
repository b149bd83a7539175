/* SPDX-License-Identifier: MIT */
/*
 * preload/io/misc.c - what else may wait: eventfd's own functions, random bytes,
 * asynchronous I/O, the kernel's log.
 */
#include "preload/io/brief.h"
#include "preload/real_call.h"
#include "runtime/io/io.h"

#include <aio.h>
#include <sys/eventfd.h>
#include <sys/klog.h>
#include <sys/random.h>

FZ_EXPORT int eventfd_read(int fd, eventfd_t *value)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_eventfd_read);
	ssize_t ret;

	if (!self)
		return fz_real.eventfd_read(fd, value);
	ret = fz_leave(fz_io_read(self, fd, value, sizeof(*value)));
	return ret == sizeof(*value) ? 0 : -1;
}

FZ_EXPORT int eventfd_write(int fd, eventfd_t value)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_eventfd_write);
	ssize_t ret;

	if (!self)
		return fz_real.eventfd_write(fd, value);
	ret = fz_leave(fz_io_write(self, fd, &value, sizeof(value)));
	return ret == sizeof(value) ? 0 : -1;
}

/* Early after boot only. */
FZ_EXPORT ssize_t getrandom(void *buf, size_t n, unsigned flags)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_getrandom);
	ssize_t ret = fz_real.getrandom(buf, n, flags);

	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int getentropy(void *buf, size_t n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_getentropy);
	int ret = fz_real.getentropy(buf, n);

	fz_leave_brief(self);
	return ret;
}

/* libc's own threads do the work, and are left native. */
FZ_EXPORT int aio_suspend(const struct aiocb *const list[], int count,
			  const struct timespec *timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_aio_suspend);

	struct fz_blocked call;
	int ret;

	/* With a timeout it would begin anew; without, a wake-up is harmless. */
	if (!self || timeout) {
		if (self)
			fz_announce(self);
		return fz_real.aio_suspend(list, count, timeout);
	}
	call = fz_block(self, 0);
	do
		ret = fz_real.aio_suspend(list, count, NULL);
	while (fz_block_again(&call, ret));
	return ret;
}
FZ_EXPORT_ALIAS64(aio_suspend64, aio_suspend);

FZ_EXPORT int lio_listio(int mode, struct aiocb *const list[], int count, struct sigevent *event)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_lio_listio);

	if (self && mode == LIO_WAIT)
		fz_announce(self);
	return fz_real.lio_listio(mode, list, count, event);
}
FZ_EXPORT_ALIAS64(lio_listio64, lio_listio);

FZ_EXPORT int klogctl(int type, char *buf, int n)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_klogctl);
	int ret = fz_real.klogctl(type, buf, n);

	fz_leave_brief(self);
	return ret;
}
