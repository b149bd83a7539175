/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_PARK_H
#define FZ_RUNTIME_SCHED_PARK_H

/*
 * runtime/sched/park.h - put a thread to sleep, wake it exactly once.
 *
 * A thread sleeps in one place at a time, so the sleep is one word of its
 * record.  Each sleep has a number; a waker names the sleep it means (struct
 * fz_ticket), and a late waker finds another number and does nothing.
 * A record is never unmapped while a waker can hold a ticket for it.  A fiber's record is never unmapped
 * at all.  Its memory may be given back, and then reads as zeros; no ticket has the number 0.  A native
 * thread takes its ticket back before it leaves a wait.
 *
 *	word = number << 8 | FZ_WAIT_* flags | state; in FIRED also | why
 *
 *	 state    set by                  a waker that changes it to FIRED must then
 *	 IDLE     start, fz_park's end    (cannot be: nobody sleeps)
 *	 ARMED    fz_wait_arm             if the sleeper is a fiber: do nothing; the fiber
 *	                                  still runs, and its carrier will notice;
 *	                                  if it is a native thread, or blocks its kernel
 *	                                  thread (FZ_WAIT_BLOCKS): futex-wake it
 *	 PARKED   the carrier, once the   make the fiber runnable
 *	          context is saved
 *	 FIRED    the first fz_wake       (cannot be: another waker was first)
 *
 *	ticket = fz_wait_arm(self, flags);
 *	publish the ticket where wakers look (a bucket, a request, a timer)
 *	why = fz_park(self, deadline);
 *	unpublish it, or learn that a waker took it
 */

#include "runtime/base/ticket.h"
#include "runtime/fiber/fiber.h"

enum fz_why {
	FZ_WHY_DONE,		/* the event that the thread waited for has happened */
	FZ_WHY_TIMEOUT,		/* the deadline passed first */
	FZ_WHY_CANCEL,		/* pthread_cancel, cancellation enabled */
	FZ_WHY_SIGNAL,		/* a handler wants to run on this thread */
};

enum {
	FZ_WAIT_IDLE,
	FZ_WAIT_ARMED,
	FZ_WAIT_PARKED,
	FZ_WAIT_FIRED,			/* + why << FZ_WAIT_WHY_SHIFT */
	FZ_WAIT_STATE_MASK = 3,
	FZ_WAIT_WHY_SHIFT = 2,		/* two bits */
	FZ_WAIT_WHY_MASK = 3 << FZ_WAIT_WHY_SHIFT,
	FZ_WAIT_SIGNAL = 16,		/* a signal may end the wait */
	FZ_WAIT_CANCEL = 32,		/* a cancellation request may end the wait */
	FZ_WAIT_UNINTERRUPTIBLE = 64,	/* only its ticket ends it, no asynchronous request */
	FZ_WAIT_BLOCKS = 128,		/* a fiber blocks its kernel thread in the wait */
	FZ_WAIT_NUMBER_SHIFT = 8,
};

/* What a thread waits for, and what fz_fiber.waits.object is then. */
enum fz_waits_for {
	FZ_FOR_TIME,		/* nothing: a deadline, or for ever */
	FZ_FOR_REQUEST,		/* struct fz_op: one call, on one descriptor */
	FZ_FOR_READY,		/* struct fz_ready: the first of several descriptors */
	FZ_FOR_SIGNAL,		/* nothing: sig.sigwait_set has the signals */
	FZ_FOR_THREAD,		/* thread.life of the fiber that the thread joins */
	FZ_FOR_MUTEX,		/* struct fz_mutex */
	FZ_FOR_COND,		/* struct fz_cond */
	FZ_FOR_READ_LOCK,	/* wrphase_futex of a struct fz_rwlock */
	FZ_FOR_WRITE_LOCK,	/* writers_futex of a struct fz_rwlock */
	FZ_FOR_SEM,		/* the value of a semaphore */
	FZ_FOR_BARRIER,		/* a word of a struct fz_barrier */
	FZ_FOR_ONCE,		/* a pthread_once_t */
	FZ_FOR_LIBC_LOCK,	/* a lock inside libc: of a stream, of the allocator */
	FZ_FOR_FUTEX,		/* a word, by the futex system call */
	FZ_FOR_RUNTIME,		/* nothing: the library's own work, a kernel thread for instance */
	FZ_FOR_END,		/* nothing: the thread has ended, its stack stays */
	FZ_FOR_COUNT
};

/* The object of FZ_FOR_REQUEST begins with these fields (struct fz_op). */
struct fz_asked {
	uint8_t opcode;			/* IORING_OP_* */
	int fd;
};

/* The object of FZ_FOR_READY, on the stack of the call. */
struct fz_ready {
	const struct pollfd *fds;
	unsigned count;
};

static inline void fz_waits_for(struct fz_fiber *self, enum fz_waits_for kind, const void *object)
{
	self->call.waits_for = (uint8_t)kind;
	self->waits.object = object;
}

/*
 * Submit the requests that are queued on p, and wake the fibers whose requests are complete: the calling
 * fiber, too, which then does not sleep in fz_park().  By p's owner, after fz_wait_arm().
 */
void fz_submit_and_look(struct fz_processor *p);

/*
 * Begin a wait of the calling thread, in the runtime (fz_enter_runtime), and get its ticket.
 * A fiber must then call fz_park() or fz_wait_disarm().
 */
struct fz_ticket fz_wait_arm(struct fz_fiber *self, unsigned flags);
void fz_wait_disarm(struct fz_fiber *self);

/*
 * Sleep until the ticket is used or the deadline passes.  In the runtime, no
 * runtime lock held.  With FZ_WAIT_SIGNAL or FZ_WAIT_CANCEL the sleep also ends, maybe
 * at once, when a signal is to be handled on this thread or the thread is cancelled.
 * The fiber may return on another carrier and processor.  Never fails.
 */
enum fz_why fz_park(struct fz_fiber *self, fz_nsec deadline);

/*
 * Arm a wait for something without an object and park, for a caller outside the runtime.  Handlers
 * have run when it returns.
 */
enum fz_why fz_sleep(struct fz_fiber *self, enum fz_waits_for what, fz_nsec deadline,
		     unsigned flags);

/*
 * Sleep for `pause` ns before looking again at something that nobody will announce.  A fiber parks; any other
 * thread blocks its kernel thread.  Outside the runtime.
 */
void fz_pause(struct fz_fiber *self, fz_nsec pause);

/*
 * fz_leave_runtime() after fz_park(), for a wait that another process may have ended; why: what fz_park() has returned.
 */
void fz_leave_after(struct fz_fiber *self, enum fz_why why);

/*
 * Sleep as nanosleep does.  Called by a fiber outside the runtime; a cancellation point.  Returns
 * 0 when the deadline has passed, -EINTR after a handler, with SA_RESTART or without.
 */
int fz_sleep_until(struct fz_fiber *self, fz_nsec deadline);

/*
 * End the sleep that the ticket names.  Any thread in the runtime, carriers and the monitor; not
 * from signal handlers.  Returns false if the sleep has ended already, or another waker was
 * first: then the caller's event is not consumed.
 */
bool fz_wake(struct fz_ticket ticket, enum fz_why why);

/* fz_wake() with FZ_WHY_DONE. */
bool fz_wake_done(struct fz_ticket ticket);

/*
 * Like fz_wake(), but a parked fiber is not queued: it is returned, and the caller must switch to
 * it.  Returns NULL for any other thread, and if there was no sleep to end.
 */
struct fz_fiber *fz_wake_to_run(struct fz_ticket ticket, enum fz_why why);

/* End the sleep that the thread is in, if the flags of the sleep allow that for this reason. */
bool fz_wake_any(struct fz_fiber *fiber, enum fz_why why);

/*
 * fz_wake_any() with FZ_WHY_SIGNAL, but only if a signal is due: the thread may have handled its
 * signals and sleep anew.
 */
bool fz_wake_due(struct fz_fiber *fiber);

/*
 * Is the fiber parked, with its context saved?  A parked fiber is in the runtime when it continues.
 * A hint.
 */
bool fz_wait_is_parked(const struct fz_fiber *fiber);

/*
 * By the carrier, after the switch away from a fiber that parks: ARMED becomes PARKED; the wait
 * ends at once if a signal or a cancellation request is there that may end it.
 */
void fz_wait_context_saved(struct fz_fiber *fiber);

/*
 * End the thread's sleep because the thread was cancelled.  A thread that may be cancelled
 * asynchronously wakes from any sleep but an uninterruptible one, and ends when it leaves the
 * runtime.
 */
bool fz_wake_cancelled(struct fz_fiber *fiber);

#endif
