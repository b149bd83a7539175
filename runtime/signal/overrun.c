/* SPDX-License-Identifier: MIT */
#include "runtime/signal/overrun.h"

#include "runtime/base/time.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"

enum {
	SLOTS = 1024,
	PROBES = 16,			/* slots in which a timer may be */
	MOST = 0x7fffffff,		/* DELAYTIMER_MAX */
};

/*
 * The slot of a timer that has sent a signal.
 *
 *	state = number << 32 | PENDING | count
 *
 * count: the expirations that the pending signal stands for besides its own, including the
 * overruns that the kernel reported with it. number: changes with each signal that becomes
 * pending.
 */
#define PENDING ((uint64_t)1 << 31)
#define COUNT (PENDING - 1)

struct slot {
	_Atomic uint32_t owner;		/* the kernel's id of the timer + 1; 0: free */
	_Atomic uint32_t told;		/* timer_getoverrun()'s answer + 1; 0: ask the kernel */
	_Atomic uint64_t state;
};

/* Whole pages, because fz_overrun_after_fork() drops them. */
static _Alignas(4096) struct slot slots[SLOTS];
_Static_assert(sizeof(slots) % 4096 == 0, "whole pages");
static _Atomic uint64_t signals;

static struct slot *find(int timer)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct slot *s = &slots[((uint32_t)timer + i) % SLOTS];

		/* acquire: pairs with claim(). */
		if (atomic_load_explicit(&s->owner, memory_order_acquire) ==
		    (uint32_t)timer + 1)
			return s;
	}
	return NULL;
}

static void release(struct slot *s)
{
	/* Keep the state: a late ticket for this slot must find another number. */
	atomic_store_explicit(&s->told, 0, memory_order_relaxed);
	atomic_store_explicit(&s->owner, 0, memory_order_release);
}

static struct slot *claim(int timer)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct slot *s = &slots[((uint32_t)timer + i) % SLOTS], *first;
		uint32_t free_ = 0;

		if (!atomic_compare_exchange_strong_explicit(&s->owner, &free_,
							     (uint32_t)timer + 1,
							     memory_order_seq_cst,
							     memory_order_relaxed))
			continue;
		/*
		 * Two threads may claim a slot for one timer at once: the first slot in probing
		 * order is kept.
		 */
		first = find(timer);
		if (first != s)
			release(s);
		return first;
	}
	return NULL;
}

static const struct fz_siginfo_head *of_timer(const void *siginfo)
{
	const struct fz_siginfo_head *info = siginfo;

	return info->code == CODE_TIMER ? info : NULL;
}

static uint64_t clamped(uint64_t n)
{
	return n < MOST ? n : MOST;
}

bool fz_overrun_arrived(const void *siginfo, uint64_t *ret_ticket)
{
	/* si_timerid and si_overrun are where si_pid and si_uid are. */
	const struct fz_siginfo_head *info = siginfo;
	struct slot *s = find(info->pid);
	uint64_t old, new;

	/* relaxed: the signal is not pending anywhere yet. */
	atomic_fetch_or_explicit(&signals, fz_signal_bit(info->signo), memory_order_relaxed);
	*ret_ticket = 0;
	if (!s)
		s = claim(info->pid);
	if (!s)
		return true;
	/* relaxed: a single word; the queue that holds the signal orders it. */
	old = atomic_load_explicit(&s->state, memory_order_relaxed);
	do {
		if (old & PENDING)
			new = (old & ~COUNT) | clamped((old & COUNT) + 1 + info->uid);
		else
			new = (old & ~(PENDING | COUNT)) + (PENDING << 1) + PENDING +
			      clamped(info->uid);
	} while (!atomic_compare_exchange_weak_explicit(&s->state, &old, new,
							memory_order_relaxed,
							memory_order_relaxed));
	if (old & PENDING)
		return false;
	*ret_ticket = (new & ~(PENDING | COUNT)) | ((uint32_t)(s - slots) + 1);
	return true;
}

static struct slot *slot_of(uint64_t ticket)
{
	return &slots[(uint32_t)ticket - 1];
}

static bool is_for(uint64_t state, uint64_t ticket)
{
	return state & PENDING && state >> 32 == ticket >> 32;
}

bool fz_overrun_is_void(uint64_t ticket)
{
	return ticket && !is_for(atomic_load_explicit(&slot_of(ticket)->state,
						      memory_order_relaxed), ticket);
}

/* End the ticket. Returns how many more expirations its signal stood for, or -1 if void. */
static int64_t end(uint64_t ticket)
{
	struct slot *s = slot_of(ticket);
	uint64_t old = atomic_load_explicit(&s->state, memory_order_relaxed);

	do {
		if (!is_for(old, ticket))
			return -1;
	} while (!atomic_compare_exchange_weak_explicit(&s->state, &old,
							old & ~(PENDING | COUNT),
							memory_order_relaxed,
							memory_order_relaxed));
	return (int64_t)(old & COUNT);
}

bool fz_overrun_redeem(uint64_t ticket, void *siginfo)
{
	struct fz_siginfo_head *info = siginfo;
	int64_t more;

	if (!ticket)
		return true;
	more = end(ticket);
	if (more < 0)
		return false;
	info->uid = (uint32_t)more;
	return true;
}

void fz_overrun_forget(uint64_t ticket)
{
	if (ticket)
		end(ticket);
}

void fz_overrun_collect(void *siginfo)
{
	struct fz_siginfo_head *info = siginfo;
	struct slot *s = of_timer(info) ? find(info->pid) : NULL;
	uint64_t old;

	if (!s)
		return;
	old = atomic_fetch_and_explicit(&s->state, ~(PENDING | COUNT), memory_order_relaxed);
	if (old & PENDING)
		info->uid = (uint32_t)clamped((uint64_t)info->uid + 1 + (old & COUNT));
}

void fz_overrun_tell(const void *siginfo)
{
	const struct fz_siginfo_head *info = of_timer(siginfo);
	struct slot *s = info ? find(info->pid) : NULL;

	/*
	 * Before the first fiber the kernel can answer timer_getoverrun(); afterwards the
	 * kernel may already have sent the next signal, so the count is kept here.
	 */
	if (info && !s && atomic_load_explicit(&fz_sched.started, memory_order_acquire))
		s = claim(info->pid);
	/* relaxed: read by a thread that asks because it has received the signal. */
	if (s)
		atomic_store_explicit(&s->told, info->uid + 1, memory_order_relaxed);
}

int fz_overrun_told(int timer)
{
	struct slot *s = find(timer);
	uint32_t told = s ? atomic_load_explicit(&s->told, memory_order_relaxed) : 0;

	return (int)told - 1;
}

void fz_overrun_void(int timer, fz_nsec not_before, bool deleted)
{
	struct slot *s = find(timer);
	uint64_t old;

	if (!s)
		return;
	old = atomic_load_explicit(&s->state, memory_order_seq_cst);
	/* If the word is unchanged after the clock was read, no signal has come since. */
	while (old & PENDING && fz_now() < not_before &&
	       !atomic_compare_exchange_weak_explicit(&s->state, &old, old & ~(PENDING | COUNT),
						      memory_order_seq_cst,
						      memory_order_seq_cst))
		continue;
	if (deleted)
		release(s);
	else if (!(old & PENDING) || fz_now() < not_before)
		atomic_store_explicit(&s->told, 1, memory_order_relaxed);
}

bool fz_overrun_is_timers(int sig)
{
	return atomic_load_explicit(&signals, memory_order_relaxed) & fz_signal_bit(sig);
}

void fz_overrun_after_fork(void)
{
	/* A fork's child inherits no timers. */
	fz_sys_forget_pages(slots, sizeof(slots));
	atomic_store_explicit(&signals, 0, memory_order_relaxed);
}
