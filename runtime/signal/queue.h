/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_QUEUE_H
#define FZ_RUNTIME_SIGNAL_QUEUE_H

/*
 * runtime/signal/queue.h - signals that are pending for a thread, with their siginfo.
 *
 * A node is one signal. Any thread may add one, in signal handlers too: nodes come from a
 * lock-free pool, and a thread's `arrivals` is a lock-free stack. Only the thread itself takes
 * nodes, in order, from its `queue`, with in_runtime set so that no handler of its own runs in
 * between.
 *
 *	a bit of fz_fiber.pending is set  =>  there is a node for it, in arrivals
 *	or queue, or about to be taken
 */

#include "runtime/fiber/fiber.h"

/* siginfo_t, without libc's headers. */
struct fz_siginfo {
	_Alignas(8) char bytes[128];
};

/* The head of the kernel's siginfo_t, as kill(), tgkill() and sigqueue() fill it. */
struct fz_siginfo_head {
	int signo, error, code, pad;
	int pid;
	uint32_t uid;
	uint64_t value;
};

struct fz_signode {
	struct fz_siginfo info;
	struct fz_signode *next;	/* in the queue: next node of this number */
	struct fz_signode *last, *next_signal;	/* set in the first of its number */
	int sig;
	bool directed;			/* sent to the thread, not to the process */
	bool charged;			/* counts against RLIMIT_SIGPENDING */
	bool counts;			/* of a timer; see runtime/signal/overrun.h */
	uint64_t ticket;
	_Atomic uint64_t kind;		/* discards.count[sig] when the node was made << 32 | sig */
	uint32_t index;			/* const; place in the pool */
	_Atomic uint32_t below;		/* in a stack, of arrivals or of free nodes: index + 1 of the next one */
};

enum { FZ_SIGNAL_FIRST_REALTIME = 32 };

/* Is the node dropped if a signal of its number is pending already? */
static inline bool fz_signode_coalesces(const struct fz_signode *node)
{
	return node->sig < FZ_SIGNAL_FIRST_REALTIME && !node->counts;
}

/*
 * A bit in fz_fiber.pending that stands for no signal: a handler has run while the fiber was
 * `suspended`. fz_park() takes it for a pending signal, and so ends the wait. The bit stays set
 * until the suspended call has ended.
 */
#define FZ_SIGNAL_HANDLED ((uint64_t)1 << 31)

/*
 * A bit in fz_fiber.pending that stands for no signal: another thread has set the fiber's
 * scheduling policy (thread.policy). The fiber is wired and gets the policy when it next runs the
 * program's code. The bit ends no wait.
 */
#define FZ_SIGNAL_POLICY ((uint64_t)1 << 32)

/*
 * Make a node with a copy of info. charge: refuse if RLIMIT_SIGPENDING signals are pending already.
 * Returns NULL if refused or out of memory. Any context.
 */
struct fz_signode *fz_signode_new(int sig, const void *info, bool directed, bool charge);
void fz_signode_free(struct fz_signode *node);

/* The signal counts as sent now: the node is not void, even if its signal was ignored since it was made. */
void fz_signode_renew(struct fz_signode *node);

/*
 * Like fz_signode_new(), for a signal that the kernel has sent and that is not handled at once.
 * Also NULL if the signal is a timer's and a pending one counts it. Any context.
 */
struct fz_signode *fz_signode_arrived(int sig, const void *info, bool directed);

/*
 * Is the node void: has its signal been ignored since, or has its timer been set again or
 * deleted?
 */
bool fz_signode_is_void(const struct fz_signode *node);

/* Is a node of that signal that is not void in the list that begins with n? Linked by next. */
bool fz_signode_find(const struct fz_signode *n, int sig);

/* For queue.c: the node with that index; the signals of which there may be void nodes. */
struct fz_signode *fz_signode_at(uint32_t index);
uint64_t fz_signode_voided(void);

/*
 * Call this before the signal is handled or given to the kernel: it completes the si_overrun of a
 * timer's signal. Returns false if the node is void.
 */
bool fz_signode_settle(struct fz_signode *node);

/*
 * Make the signal pending for f. The node is dropped if it coalesces and its signal is pending
 * already. The node belongs to f from now on. Any context.
 */
void fz_sigqueue_add(struct fz_fiber *f, struct fz_signode *node);

/*
 * Is a signal in `set` pending that was sent to the calling thread, not to the process? Looks at
 * the first node of each number only.
 */
bool fz_sigqueue_has_directed(struct fz_fiber *self, uint64_t set);

/*
 * The calling thread takes its first pending signal in `accept`: lowest number first, then in
 * the order of arrival. NULL if none is pending.
 */
struct fz_signode *fz_sigqueue_take(struct fz_fiber *self, uint64_t accept);

/*
 * Like fz_sigqueue_take(), for a signal that the thread handles or gets from sigwait: the node
 * is settled, and void ones are dropped.
 */
struct fz_signode *fz_sigqueue_receive(struct fz_fiber *self, uint64_t accept);

/*
 * The program ignores sig now: all nodes of sig, wherever they are, become void. In the
 * runtime.
 */
void fz_sigqueue_discard(int sig);

/*
 * Drop the void nodes of the calling thread, so that they are no longer pending. Outside the
 * runtime.
 */
void fz_sigqueue_purge(struct fz_fiber *self);

/* Drop all nodes of f: an ended fiber that no thread can name, or after fork. */
void fz_sigqueue_clear(struct fz_fiber *f);

#endif
