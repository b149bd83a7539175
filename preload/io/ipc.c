/* SPDX-License-Identifier: MIT */
/*
 * preload/io/ipc.c - the kernel's queues and semaphores, System V and POSIX.
 *
 * Each call is tried without waiting first; if it would wait, the real call is announced. A
 * wait for readiness of a POSIX queue's descriptor would be wrong: the kernel serves waiters in
 * the order of their priority, and mq_notify depends on whether there are waiters.
 */
#include "preload/io/brief.h"
#include "preload/real_call.h"
#include "preload/time.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include "runtime/base/time.h"

/* ---- System V ----------------------------------------------------------- */

FZ_EXPORT ssize_t msgrcv(int id, void *message, size_t n, long type, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_msgrcv);

	if (self && !(flags & (IPC_NOWAIT | MSG_COPY))) {
		int saved = errno;
		ssize_t ret = fz_real.msgrcv(id, message, n, type, flags | IPC_NOWAIT);

		struct fz_blocked call;

		if (ret >= 0 || errno != ENOMSG)
			return ret;
		errno = saved;
		call = fz_block(self, 0);
		return FZ_REPEAT(&call, fz_real.msgrcv(id, message, n, type, flags));
	}
	return fz_real.msgrcv(id, message, n, type, flags);
}

FZ_EXPORT int msgsnd(int id, const void *message, size_t n, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_msgsnd);

	if (self && !(flags & IPC_NOWAIT)) {
		int saved = errno;
		int ret = fz_real.msgsnd(id, message, n, flags | IPC_NOWAIT);

		struct fz_blocked call;

		if (ret == 0 || errno != EAGAIN)
			return ret;
		errno = saved;
		call = fz_block(self, 0);
		return FZ_REPEAT(&call, fz_real.msgsnd(id, message, n, flags));
	}
	return fz_real.msgsnd(id, message, n, flags);
}

/*
 * Try without waiting. Returns true if the real call has to wait. Returns true, too, if EAGAIN comes
 * from IPC_NOWAIT in one of the operations; the real call then fails with EAGAIN again.
 */
static bool semop_waits(struct fz_fiber *self, int id, struct sembuf *ops, size_t count,
			int *ret)
{
	struct fz_blocked call = fz_block(self, FZ_CALL_BRIEF);
	const struct timespec none = { 0, 0 };

	*ret = FZ_REPEAT(&call, fz_real.semtimedop(id, ops, count, &none));
	fz_block_end(&call, *ret);
	if (*ret == 0 || errno != EAGAIN)
		return false;
	errno = call.saved_errno;
	return true;
}

static int semop_common(struct fz_fiber *self, int id, struct sembuf *ops, size_t count,
			const struct timespec *timeout)
{
	fz_nsec deadline = FZ_FOREVER;
	struct fz_blocked call;
	int ret;

	if (timeout)
		deadline = fz_deadline_after(fz_timespec_nsec(timeout));
	if (!semop_waits(self, id, ops, count, &ret))
		return ret;
	call = fz_block(self, 0);
	do {
		struct timespec left;

		ret = fz_real.semtimedop(id, ops, count, fz_timeout_left(deadline, &left));
	} while (fz_block_again(&call, ret));
	return ret;
}

FZ_EXPORT int semop(int id, struct sembuf *ops, size_t count)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_semop);

	if (!self)
		return fz_real.semop(id, ops, count);
	return semop_common(self, id, ops, count, NULL);
}

FZ_EXPORT int semtimedop(int id, struct sembuf *ops, size_t count, const struct timespec *timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_semtimedop);

	/* The kernel refuses a bad timeout before it does anything. */
	if (!self || (timeout && (!fz_timespec_readable(timeout) || timeout->tv_sec < 0 ||
				  !fz_timespec_valid(timeout))))
		return fz_real.semtimedop(id, ops, count, timeout);
	return semop_common(self, id, ops, count, timeout);
}

/* ---- POSIX -------------------------------------------------------------- */

static const struct timespec long_ago = { 0, 0 };

static bool is_usable(const struct timespec *when)
{
	return !when || (fz_timespec_readable(when) && when->tv_sec >= 0 &&
			 fz_timespec_valid(when));
}

static ssize_t receive(struct fz_fiber *self, mqd_t queue, char *message, size_t n,
		       unsigned *priority, const struct timespec *when)
{
	if (self && is_usable(when)) {
		int saved = errno;
		ssize_t ret = fz_real.mq_timedreceive(queue, message, n, priority, &long_ago);

		struct fz_blocked call;

		if (ret >= 0 || errno != ETIMEDOUT)
			return ret;
		errno = saved;
		call = fz_block(self, FZ_CALL_RESTARTS);
		return FZ_REPEAT(&call, fz_real.mq_timedreceive(queue, message, n, priority, when));
	}
	return fz_real.mq_timedreceive(queue, message, n, priority, when);
}

static int post(struct fz_fiber *self, mqd_t queue, const char *message, size_t n,
		unsigned priority, const struct timespec *when)
{
	if (self && is_usable(when)) {
		int saved = errno;
		int ret = fz_real.mq_timedsend(queue, message, n, priority, &long_ago);

		struct fz_blocked call;

		if (ret == 0 || errno != ETIMEDOUT)
			return ret;
		errno = saved;
		call = fz_block(self, FZ_CALL_RESTARTS);
		return FZ_REPEAT(&call, fz_real.mq_timedsend(queue, message, n, priority, when));
	}
	return fz_real.mq_timedsend(queue, message, n, priority, when);
}

FZ_EXPORT ssize_t mq_receive(mqd_t queue, char *message, size_t n, unsigned *priority)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_mq_receive);

	return receive(self, queue, message, n, priority, NULL);
}

FZ_EXPORT ssize_t mq_timedreceive(mqd_t queue, char *message, size_t n, unsigned *priority,
				  const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_mq_timedreceive);

	return receive(self, queue, message, n, priority, when);
}

FZ_EXPORT int mq_send(mqd_t queue, const char *message, size_t n, unsigned priority)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_mq_send);

	return post(self, queue, message, n, priority, NULL);
}

FZ_EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t n, unsigned priority,
			   const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_mq_timedsend);

	return post(self, queue, message, n, priority, when);
}
