/* SPDX-License-Identifier: MIT */
/*
 * preload/io/misc.c - other calls that may wait: eventfd_read and eventfd_write, random bytes,
 * asynchronous I/O, the kernel's log.
 */
#include "preload/io/brief.h"
#include "preload/real_call.h"
#include "preload/time.h"
#include "runtime/io/io.h"
#include "runtime/sched/announce.h"

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

/*
 * getrandom waits only early after boot. A signal may cut short a request for more than a page
 * (4096 bytes): the rest is asked for, unless a handler of this thread has run.
 */
FZ_EXPORT ssize_t getrandom(void *buf, size_t n, unsigned flags)
{
	struct fz_blocked call = fz_block(fz_enter(FZ_SYM_getrandom), FZ_CALL_BRIEF);
	ssize_t ret, done = 0;

	do {
		ret = fz_real.getrandom((char *)buf + done, n - (size_t)done, flags);
		done += ret > 0 ? ret : 0;
	} while (fz_block_again(&call, ret) ||
		 (ret > 0 && (size_t)done < n && fz_block_undisturbed(&call)));
	fz_block_end(&call, ret);
	return done ? done : ret;
}

FZ_EXPORT_BRIEF(int, getentropy, (void *buf, size_t n), buf, n)

/* libc's threads do the asynchronous I/O; the library leaves them native. */
FZ_EXPORT int aio_suspend(const struct aiocb *const list[], int count,
			  const struct timespec *timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_aio_suspend);
	fz_nsec deadline = FZ_FOREVER;
	struct fz_blocked call;
	int ret;

	if (!self || (timeout && (!fz_timespec_valid(timeout) || timeout->tv_sec < 0)))
		return fz_real.aio_suspend(list, count, timeout);
	if (timeout)
		deadline = fz_deadline_after(fz_timespec_nsec(timeout));
	call = fz_block(self, timeout ? 0 : FZ_CALL_RESTARTS);
	do {
		struct timespec left;

		ret = fz_real.aio_suspend(list, count, fz_timeout_left(deadline, &left));
	} while (fz_block_again(&call, ret));
	return ret;
}
FZ_EXPORT_ALIAS64(aio_suspend64, aio_suspend);

static bool is_request(const struct aiocb *r)
{
	return r && r->aio_lio_opcode != LIO_NOP;
}

enum { UNQUEUED = -1 };

/*
 * Has libc queued this request, whose error code is err? libc fills in the policy of a request that it
 * accepts. If it then has no thread for the request, it stores an error, but not the result of a failure.
 */
static bool is_queued(const struct aiocb *r, int err)
{
	return r->__policy != UNQUEUED && (!err || err == EINPROGRESS || r->__return_value);
}

/*
 * Wait until all requests are complete. Returns 0, -EINTR, or -EIO if a request has failed or was not
 * queued. *ret_any: has a request been queued at all?
 */
static int wait_for_requests(struct aiocb *const list[], int count, bool *ret_any)
{
	int ret = 0, err;

	*ret_any = false;

	for (int i = 0; i < count; i++) {
		if (!is_request(list[i]))
			continue;
		/* acquire: pairs with libc's thread, which stores the result before the error code. */
		while ((err = __atomic_load_n(&list[i]->__error_code, __ATOMIC_ACQUIRE)) ==
			       EINPROGRESS && list[i]->__policy != UNQUEUED) {
			*ret_any = true;
			if (aio_suspend((const struct aiocb *const *)&list[i], 1, NULL) < 0 &&
			    errno == EINTR)
				return -EINTR;
		}
		if (is_queued(list[i], err))
			*ret_any = true;
		else
			ret = -EIO;
		if (err)
			ret = -EIO;
	}
	return ret;
}

FZ_EXPORT int lio_listio(int mode, struct aiocb *const list[], int count, struct sigevent *event)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_lio_listio);
	int saved = errno, state, err, ret;
	bool any;

	/*
	 * The real call does not wait (LIO_NOWAIT): if a signal ended its wait, another call would
	 * submit the requests again.
	 */
	if (!self || mode != LIO_WAIT)
		return fz_real.lio_listio(mode, list, count, event);
	for (int i = 0; i < count; i++)
		if (is_request(list[i]))
			list[i]->__policy = UNQUEUED;
	err = fz_real.lio_listio(LIO_NOWAIT, list, count, NULL) < 0 ? -errno : 0;
	/*
	 * An error may concern one request only: libc has queued the others, which must be awaited.
	 * Unlike aio_suspend, lio_listio is no cancellation point.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = wait_for_requests(list, count, &any);
	pthread_setcancelstate(state, NULL);
	if (!err || any)
		err = ret;
	errno = saved;
	return (int)fz_leave(err);
}
FZ_EXPORT_ALIAS64(lio_listio64, lio_listio);

FZ_EXPORT_BRIEF(int, klogctl, (int type, char *buf, int n), type, buf, n)
