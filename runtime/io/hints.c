/* SPDX-License-Identifier: MIT */
#include "runtime/io/hints.h"

#include <asm/errno.h>
#include <asm/socket.h>

#include "runtime/base/lock.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/socket.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

/* ---- hints that are taken back ------------------------------------------ */

/*
 * Waits rest on hints: no O_NONBLOCK, no timeout.  The monitor asks the kernel whether a hint was right only some time
 * after the wait has begun.  Meanwhile the program may take the hint back: by a fork, for example, after which the
 * descriptor is not OURS.  From then on others may set O_NONBLOCK, and calls that wait already wait on, as natively.
 * So the kernel is asked then: after the change of the word, and before the program goes on.  If the hint was wrong,
 * the word says so, and the monitor ends the waits that rested on it; otherwise they all began rightly.
 *
 * A call sets FZ_FD_RESTED_ON while the word still has the hint, before it waits.  Without that bit there is nothing
 * to ask: a socket that is given a timeout right after accept() costs no system call, nor does a fork for descriptors
 * on which no call has begun to rest since the last one.
 *
 * The lock is held while the kernel is asked, and when a hint on which calls may rest is taken back.  So who
 * finds the hint taken back can wait for the answer (await_answers()); and what the monitor is told while the hint
 * stands is from before any change by the program.
 */
#define ONE_CHANGE (FZ_FD_CHANGES & -FZ_FD_CHANGES)

static struct fz_lock lock = FZ_LOCK(FZ_RANK_HINTS);

void fz_fdtab_rest_after_fork(void)
{
	fz_lock_init(&lock, FZ_RANK_HINTS);
}

uint32_t fz_fdtab_rest(int fd)
{
	_Atomic uint32_t *e = fz_fdtab_word(fd);
	uint32_t word = e ? atomic_load_explicit(e, memory_order_relaxed) : 0;

	while (fz_fdtab_rests(word) && !(word & FZ_FD_RESTED_ON) &&
	       !atomic_compare_exchange_weak_explicit(e, &word, word | FZ_FD_RESTED_ON, memory_order_relaxed,
						      memory_order_relaxed))
		continue;
	return word & ~FZ_FD_CHANGES;
}

/* Ask the kernel which of the hints `rests` are wrong; note them in the word, unless fd is another file than in `word`. */
static void ask(int fd, uint32_t word, uint32_t rests)
{
	_Atomic uint32_t *e = fz_fdtab_word(fd);
	uint32_t now = atomic_load_explicit(e, memory_order_relaxed), wrong = 0, clear = 0, set = 0;

	if (rests & FZ_FD_WAS_NONBLOCK && fz_fdtab_nonblocking(fd, FZ_FD_UNKNOWN) > 0) {
		wrong |= FZ_FD_WAS_NONBLOCK;
		clear = FZ_FD_OURS;
	}
	if (rests & FZ_FD_HAD_TIMEOUT && fz_fdtab_has_timeout(fd)) {
		wrong |= FZ_FD_HAD_TIMEOUT;
		set = FZ_FD_TIMEOUTS;
	}
	while (wrong && (now & FZ_FD_CHANGES) == (word & FZ_FD_CHANGES) &&
	       !atomic_compare_exchange_weak_explicit(e, &now, (now & ~clear) | set | wrong, memory_order_relaxed,
						      memory_order_relaxed))
		continue;
}

/* While in_runtime is set, the caller may be a child that vfork() has made, with descriptors of its own. */
static bool is_in_program(void)
{
	return !atomic_load_explicit(&fz_self()->in_runtime, memory_order_relaxed);
}

/* Change *word, and ask about the hints that it has lost.  Returns false, and sets *word, if the word is another. */
static bool swap_and_ask(int fd, uint32_t *word, uint32_t new, uint32_t lost)
{
	const uint32_t nested = fz_bar_handlers();
	bool swapped;

	fz_lock_acquire(&lock);
	/* release: pairs with await_answers(). */
	swapped = atomic_compare_exchange_strong_explicit(fz_fdtab_word(fd), word, new, memory_order_release,
							  memory_order_relaxed);
	if (swapped)
		ask(fd, new, lost);
	fz_lock_release(&lock);
	fz_allow_handlers(nested);
	return swapped;
}

/*
 * Change bits of a descriptor that is known.  Ask the kernel about the hints that the word lacks then, if a call may
 * rest on them; and about all if the descriptor is shared from now on.  After that, the waits so far are done with,
 * since they have another name.  The caller then calls await_answers(), before the open file can change.
 */
static void take_back(int fd, uint32_t clear, uint32_t set)
{
	_Atomic uint32_t *e = fz_fdtab_word(fd);
	uint32_t word = e ? atomic_load_explicit(e, memory_order_relaxed) : 0;
	const bool shares = clear & FZ_FD_OURS;

	while (word & FZ_FD_KIND_MASK && !fz_fdtab_is_unshared()) {
		uint32_t new = (word & ~clear) | set;
		const uint32_t lost = fz_fdtab_rests(word) & ~(shares ? 0 : fz_fdtab_rests(new));

		/* Where a filter may end the process for asking, waits that began wrongly wait on. */
		if (FZ_UNLIKELY(lost && word & FZ_FD_RESTED_ON) && is_in_program() && fz_io_may_look()) {
			/* Waits that rested on what was wrong keep their name. */
			if (shares && !(word & (FZ_FD_WAS_NONBLOCK | FZ_FD_HAD_TIMEOUT)))
				new = ((new & ~(uint32_t)FZ_FD_RESTED_ON) | FZ_FD_SHARED) + ONE_CHANGE;
			if (swap_and_ask(fd, &word, new, lost))
				return;
		} else if (new == word || atomic_compare_exchange_weak_explicit(e, &word, new, memory_order_relaxed,
										memory_order_relaxed)) {
			return;
		}
	}
}

/* If another thread has just taken a hint back that the caller has not found, it may not have asked the kernel yet. */
static void await_answers(void)
{
	uint32_t nested;

	/* acquire: pairs with swap_and_ask(): after its change of the word, the lock is seen taken until it has asked. */
	atomic_thread_fence(memory_order_acquire);
	if (FZ_LIKELY(!atomic_load_explicit(&lock.word, memory_order_relaxed)) || !is_in_program())
		return;
	nested = fz_bar_handlers();
	fz_lock_acquire(&lock);
	fz_lock_release(&lock);
	fz_allow_handlers(nested);
}

void fz_fdtab_nonblocking_begins(int fd)
{
	if (fz_fdtab_get(fd) & FZ_FD_OURS)
		take_back(fd, 0, FZ_FD_CHANGING);
	await_answers();
}

void fz_fdtab_nonblocking_ends(int fd, bool changed, bool on)
{
	const uint32_t changing = fz_fdtab_get(fd) & FZ_FD_OURS ? FZ_FD_CHANGING : 0;

	if (changed)
		fz_fdtab_change(fd, changing | (on ? 0 : FZ_FD_NONBLOCK), on ? FZ_FD_NONBLOCK : 0);
	else
		fz_fdtab_change(fd, changing, 0);
}

void fz_fdtab_share(int fd)
{
	take_back(fd, FZ_FD_OURS, 0);
	await_answers();
}

void fz_fdtab_share_all(void)
{
	const int high = fz_fdtab_highest();

	for (int fd = 0; fd <= high; fd++)
		take_back(fd, FZ_FD_OURS, 0);
	await_answers();
}

/* The program sets a socket option on fd: note it by `change` for fd and for all sockets that may be duplicates of it. */
static void note_option(int fd, uint32_t option, void (*change)(int fd, uint32_t clear, uint32_t set))
{
	const bool ours = fz_fdtab_get(fd) & FZ_FD_OURS;

	change(fd, 0, option);
	for (int other = -1; !ours && (other = fz_fdtab_next_shared_socket(other)) >= 0;)
		change(other, 0, option);
}

/* Is it certain that no socket option can be set on fd? */
static bool is_no_socket(int fd)
{
	const uint32_t info = fz_fdtab_get(fd), kind = info & FZ_FD_KIND_MASK;
	int type;

	if (kind == FZ_FD_SOCKET)
		return false;
	if (fd < 0 || (kind != FZ_FD_UNKNOWN && !(info & FZ_FD_UNASKED)))
		return true;
	if (!fz_io_may_look())
		return false;
	type = fz_sys_socket_option(fd, SO_TYPE);
	return type == -EBADF || type == -ENOTSOCK;
}

void fz_fdtab_timeout_begins(int fd)
{
	/* To go through all sockets would take longer. */
	if (is_no_socket(fd))
		return;
	note_option(fd, FZ_FD_TIMEOUTS, take_back);
	await_answers();
}

void fz_fdtab_timeout_set(int fd, bool negative)
{
	if (negative)
		atomic_store_explicit(&fz_fdtab_negative_seen, true, memory_order_relaxed);
	note_option(fd, FZ_FD_TIMEOUTS, fz_fdtab_change);
}

void fz_fdtab_low_water_set(int fd)
{
	note_option(fd, FZ_FD_LOW_WATER, fz_fdtab_change);
}

/* How often has the count of the word gone on since the call began? */
static uint32_t changes_since(uint32_t wait, uint32_t word)
{
	return (((word & FZ_FD_CHANGES) << 1) - (wait & FZ_FD_CHANGES << 1)) / (ONE_CHANGE << 1);
}

uint32_t fz_fdtab_found_wrong(uint32_t wait)
{
	const uint32_t word = atomic_load_explicit(fz_fdtab_word(fz_fdtab_wait_fd(wait)), memory_order_relaxed);
	const uint32_t changes = changes_since(wait, word);

	/* The number may be a file's by now, whose bits mean something else. */
	if ((word & FZ_FD_KIND_MASK) == FZ_FD_FILE)
		return 0;
	/* If the file has been shared since, what the kernel said then is in the word. */
	return !changes || (changes == 1 && word & FZ_FD_SHARED) ? word & fz_fdtab_wait_rests(wait) : 0;
}

bool fz_fdtab_is_wrong(uint32_t wait)
{
	const int fd = fz_fdtab_wait_fd(wait);
	uint32_t word;
	bool wrong;

	if (!fz_io_may_look())
		return fz_fdtab_found_wrong(wait) != 0;
	fz_lock_acquire(&lock);
	word = atomic_load_explicit(fz_fdtab_word(fd), memory_order_relaxed);
	if (!changes_since(wait, word))
		ask(fd, word, fz_fdtab_wait_rests(wait) & fz_fdtab_rests(word));
	wrong = fz_fdtab_found_wrong(wait) != 0;
	fz_lock_release(&lock);
	return wrong;
}

/* ---- the monitor --------------------------------------------------------- */

enum {
	BATCH = 256,		/* fibers looked at with the registry locked */
	LOOK_MOST = 4,		/* batches in one look; a look at 10,000 fibers would take 2 ms */
	PERIOD_MS = 100,	/* between looks */
	/* After these, each wait has been met at two looks; in the first round, one may be about to begin. */
	ROUNDS = 3,
};

/* Used by the monitor alone. */
static struct {
	struct {
		struct fz_ticket ticket;
		uint32_t hinted;
	} waits[BATCH];
	unsigned count;
	uint32_t entries;	/* how often the runtime had been entered, at the last call of check() */
	unsigned due;		/* rounds to come */
	bool amid;		/* the last look ended in the middle of a round */
	fz_nsec last;
} hints;

/*
 * Collect the fiber's wait if it rests on a hint, was there at the last look, and has not been
 * collected yet.  To ask the kernel about a wait costs a system call, and few waits of a server last
 * until the second look.
 */
static void collect(struct fz_fiber *f)
{
	/* acquire: pairs with fz_wait_arm(), before which the fiber stored `hinted`. */
	const uint64_t word = atomic_load_explicit(&f->wait, memory_order_acquire);
	const uint64_t state = word & FZ_WAIT_STATE_MASK, number = word >> FZ_WAIT_NUMBER_SHIFT;
	/* relaxed: the fence and the second load of `wait` show to which wait `hinted` belongs. */
	const uint32_t hinted = atomic_load_explicit(&f->timer.hinted, memory_order_relaxed);

	if (!hinted || (state != FZ_WAIT_ARMED && state != FZ_WAIT_PARKED) || f->all.wait_checked == number)
		return;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&f->wait, memory_order_relaxed) >> FZ_WAIT_NUMBER_SHIFT != number)
		return;
	if (f->all.wait_seen != number) {
		f->all.wait_seen = number;
		return;
	}
	f->all.wait_checked = number;
	hints.waits[hints.count].ticket = (struct fz_ticket){ f, number };
	hints.waits[hints.count].hinted = hinted;
	hints.count++;
}

/* Look at the next waits. */
static void look(void)
{
	for (unsigned batches = 0; batches < LOOK_MOST; batches++) {
		hints.count = 0;
		hints.amid = fz_fiber_each_of(collect, BATCH, !hints.amid);
		for (unsigned i = 0; i < hints.count; i++)
			if (fz_fdtab_is_wrong(hints.waits[i].hinted))
				fz_wake(hints.waits[i].ticket, FZ_WHY_SIGNAL);
		if (!hints.amid)
			break;
	}
}

static bool check(fz_nsec now, uint32_t entries, bool in_use)
{
	/* A fiber on a processor that is in use may be about to wait. */
	if (entries != hints.entries || in_use)
		hints.due = ROUNDS;
	hints.entries = entries;
	if (hints.due && now >= hints.last + PERIOD_MS * FZ_MSEC) {
		hints.last = now;
		look();
		hints.due -= !hints.amid;
	}
	return hints.due;
}

void fz_hints_init(void)
{
	fz_monitor_check_waits = check;
}
