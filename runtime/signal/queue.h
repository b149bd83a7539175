/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_QUEUE_H
#define FZ_RUNTIME_SIGNAL_QUEUE_H

/*
 * runtime/signal/queue.h - signals that are pending for a thread, with what came
 * along with them.
 *
 * A node is one signal.  Anybody may add one, handlers too: nodes come from a pool
 * without locks, and a thread's `arrivals` is a stack without one.  Only the thread
 * itself takes them, in order, from its `queue`, with in_runtime set so that
 * nothing of its own comes between.
 *
 *	a bit of fz_fiber.pending is set  =>  there is a node for it, in arrivals
 *	or queue, or about to be taken
 */

#include "runtime/fiber/fiber.h"

/* siginfo_t and the like, without libc's headers. */
struct fz_siginfo {
	_Alignas(8) char bytes[128];
};

/* The head of the kernel's siginfo_t, as far as kill(), tgkill() and sigqueue() fill it. */
struct fz_siginfo_head {
	int signo, error, code, pad;
	int pid;
	uint32_t uid;
	uint64_t value;
};

struct fz_signode {
	struct fz_siginfo info;
	struct fz_signode *next;	/* of the same signal, once it is in the queue */
	struct fz_signode *last, *next_signal;	/* of the first of its signal there */
	int sig;
	bool directed;			/* at this thread, not at the process */
	bool charged;			/* counts against RLIMIT_SIGPENDING */
	bool counts;			/* a timer's, as in runtime/signal/overrun.h, with ticket */
	uint64_t ticket;
	uint32_t discards;		/* of its signal, when it was made */
	uint32_t index;			/* const; its place in the pool */
	_Atomic uint32_t next_free;	/* index + 1 */
};

enum { FZ_SIGNAL_FIRST_REALTIME = 32 };

/* Is it dropped where one of its signal is pending? */
static inline bool fz_signode_coalesces(const struct fz_signode *node)
{
	return node->sig < FZ_SIGNAL_FIRST_REALTIME && !node->counts;
}

/*
 * The bit of a signal that is never pending says that a handler has run while the
 * fiber was `suspended`: fz_park() finds it, as it does a pending signal.  It stays
 * until the call that was to end has ended.
 */
#define FZ_SIGNAL_HANDLED ((uint64_t)1 << 31)

/*
 * A node with a copy of info.  charge: refuse if as many as RLIMIT_SIGPENDING
 * allows are pending already.  NULL if refused or out of memory.  Any context.
 */
struct fz_signode *fz_signode_new(int sig, const void *info, bool directed, bool charge);
void fz_signode_free(struct fz_signode *node);

/*
 * The same for what the kernel has sent, and nobody handles at once.  NULL as well if one
 * that is pending counts it.  Any context.
 */
struct fz_signode *fz_signode_arrived(int sig, const void *info, bool directed);

/* It has been ignored since; or the timer that sent it was set again, or is no more. */
bool fz_signode_is_void(const struct fz_signode *node);

/* Is there one of that signal, not void, from n on?  Linked by next. */
bool fz_signode_find(const struct fz_signode *n, int sig);

/*
 * It is about to be handled, or the kernel's: its info says now how many it stands for.
 * False if it is void.
 */
bool fz_signode_settle(struct fz_signode *node);

/*
 * Make the signal pending for f; if it coalesces and is pending already, it is
 * dropped.  The node is f's from now on.  Any context.
 */
void fz_sigqueue_add(struct fz_fiber *f, struct fz_signode *node);

/*
 * Is one of those in `set` pending for the calling thread that was sent to it?  Only the
 * first of each number counts.
 */
bool fz_sigqueue_has_directed(struct fz_fiber *self, uint64_t set);

/*
 * The calling thread takes its first pending signal of those in `accept`: the
 * lowest number first, then as they came.  NULL if there is none.
 */
struct fz_signode *fz_sigqueue_take(struct fz_fiber *self, uint64_t accept);

/* The same for one that it handles, or gets from sigwait: settled. */
struct fz_signode *fz_sigqueue_receive(struct fz_fiber *self, uint64_t accept);

/*
 * The program ignores it now: what is pending of it, wherever it is, is void.  In the
 * runtime.
 */
void fz_sigqueue_discard(int sig);

/* The calling thread's own that are void are no longer pending.  Outside the runtime. */
void fz_sigqueue_purge(struct fz_fiber *self);

/* Drop everything: of an ended fiber that nobody can name, or after fork. */
void fz_sigqueue_clear(struct fz_fiber *f);

#endif
