/* SPDX-License-Identifier: MIT */
#include "runtime/backend/kept_fd.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "runtime/backend/own_fd.h"
#include "runtime/base/lock.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"

enum {
	KEPT = 1 << 20,		/* copies have lower numbers, as all descriptors have unless fs.nr_open is raised */
	WORD_BITS = 64,
};

/* Held while a copy is made and gets its bit: a thread with the lock sees no new copy without its bit. */
static struct fz_lock kept_lock = FZ_LOCK(FZ_RANK_KEPT);

/*
 * A bit for each number that fz_kept_fd_make() has returned.  relaxed: a reader has learnt the
 * number already, or takes the bit as a hint.
 */
static _Atomic uint64_t kept[KEPT / WORD_BITS];
static _Atomic uint32_t kept_count;

/*
 * fork and clone copy the table of descriptors first, and the memory with the bits later; the child closes each number
 * that has a bit.  If a number became a copy in between, or stopped being one, the child would close a descriptor of the
 * program, or keep a file open.  So while a process is being made,
 *  - a new copy first holds a filler, then gets its bit, and then the file;
 *  - a dropped copy lets the file go at once, and keeps its bit until no process is being made.
 * A change counts itself in `changing`, a thread that makes a process counts itself in `copying`, and then each reads the
 * other counter (all seq_cst).  A thread that makes a process waits for changes that are under way, but not for long: the
 * close of a socket may linger; and if handlers interrupt the changes of two threads and both make processes, each thread
 * waits for the other.  A change never waits for a thread that makes a process, because that may wait for a lock of libc.
 */
static _Atomic uint32_t changing, copying;
/* The calling thread's share of `changing`: a handler that interrupts its change and makes a process does not wait for it. */
static __thread uint32_t own_changes;
enum { LEFT_MOST = 256, DROPPING_MOST = 16 };
/*
 * Dropped copies that still have their bits.  Once no process is being made, the bits are cleared and the numbers
 * closed; free: the number is closed already.  Guarded by kept_lock.
 */
static struct { int copy; bool free; } left[LEFT_MOST];
static _Atomic uint32_t left_count;	/* written with kept_lock held */
/* Copies that have lost their bits and are about to be closed: the number plus 1; 0: a free place. */
static _Atomic int dropping[DROPPING_MOST];
static const _Atomic int *filler;	/* a descriptor that may be in the child, too */

void fz_kept_fd_fill_with(const _Atomic int *fd)
{
	filler = fd;
}

static int filler_fd(void)
{
	/* relaxed: written before there is a second thread, or by fz_backend_vacate_fd(). */
	return filler ? atomic_load_explicit(filler, memory_order_relaxed) : -1;
}

/* Returns true if a process is being made. */
static bool begin_change(void)
{
	own_changes++;
	atomic_fetch_add_explicit(&changing, 1, memory_order_seq_cst);
	return FZ_UNLIKELY(atomic_load_explicit(&copying, memory_order_seq_cst) != 0);
}

static void end_change(void)
{
	atomic_fetch_sub_explicit(&changing, 1, memory_order_seq_cst);
	own_changes--;
}

static uint64_t bit_of(int fd)
{
	return (uint64_t)1 << (unsigned)fd % WORD_BITS;
}

static void set_bit(int copy)
{
	uint64_t before;

	/* The count first: a child looks for bits only while the count is not 0. */
	atomic_fetch_add_explicit(&kept_count, 1, memory_order_release);
	before = atomic_fetch_or_explicit(&kept[copy / WORD_BITS], bit_of(copy), memory_order_release);
	FZ_ASSERT_SLOW(!(before & bit_of(copy)));
}

static void clear_bit(int copy)
{
	const uint64_t before = atomic_fetch_and_explicit(&kept[copy / WORD_BITS], ~bit_of(copy),
							  memory_order_release);

	FZ_ASSERT_SLOW(before & bit_of(copy));
	atomic_fetch_sub_explicit(&kept_count, 1, memory_order_release);
}

/* Returns a copy of fd with its bit set, or -errno.  With kept_lock held. */
static int keep_locked(int fd, bool raises)
{
	const int copy = fz_own_fd_copy_within(fd, raises);

	if (copy >= KEPT) {
		fz_syscall1(__NR_close, copy);
		return -EMFILE;
	}
	if (copy >= 0)
		set_bit(copy);
	return copy;
}

/* Returns a number that was left and holds a filler, or -EBADF.  With kept_lock held. */
static int take_left(void)
{
	/* relaxed: the lock is held. */
	const uint32_t n = atomic_load_explicit(&left_count, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		const int copy = left[i].copy;

		if (left[i].free)
			continue;
		left[i] = left[n - 1];
		atomic_store_explicit(&left_count, n - 1, memory_order_seq_cst);
		return copy;
	}
	return -EBADF;
}

/*
 * keep_locked() while a process is being made, or has just been made: filler, bit, file.  With kept_lock
 * held.  The limit is not raised: dup3() refuses numbers from the soft limit on, and such a number may
 * be in left[].
 */
static int keep_filled(int fd)
{
	const int with = filler_fd();
	int copy = take_left();

	if (copy < 0 && with >= 0)
		copy = keep_locked(with, false);
	if (copy < 0)
		return copy == -EBADF ? keep_locked(fd, false) : copy;
	if (fz_syscall3(__NR_dup3, fd, copy, O_CLOEXEC) == copy)
		return copy;
	/* A filter forbids dup3: do without a filler, although the new process may then keep the file. */
	clear_bit(copy);
	fz_syscall1(__NR_close, copy);
	return keep_locked(fd, false);
}

/* Clear the bits of all copies in left[], and close them.  With kept_lock held, in a change, while no process is made. */
static void clear_left(void)
{
	/* relaxed: the lock is held. */
	uint32_t n = atomic_load_explicit(&left_count, memory_order_relaxed);

	while (n) {
		clear_bit(left[--n].copy);
		if (!left[n].free)
			fz_syscall1(__NR_close, left[n].copy);
	}
	atomic_store_explicit(&left_count, 0, memory_order_seq_cst);
}

int fz_kept_fd_make(int fd)
{
	bool process;
	int copy;

	if (FZ_FAULT(dup))
		return -EMFILE;
	process = begin_change();
	fz_lock_acquire(&kept_lock);
	/* First: the new copy may get a number in left[] that is free but still has its bit. */
	if (!process)
		clear_left();
	copy = process ? keep_filled(fd) : keep_locked(fd, true);
	fz_lock_release(&kept_lock);
	end_change();
	return copy;
}

/*
 * Put the copy into left[], where it keeps its bit.  filled: its number holds a filler.  Without a filler the number
 * must not be below the soft limit: then the program cannot get it while it is free.  Returns false if neither is so, or
 * left[] is full.
 */
static bool leave(int copy, bool filled)
{
	struct rlimit limit;
	bool is_left = true;
	uint32_t n;

	fz_lock_acquire(&kept_lock);
	n = atomic_load_explicit(&left_count, memory_order_relaxed);
	if (n == LEFT_MOST)
		is_left = false;
	else if (!filled)
		is_left = fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit) == 0 &&
			  (rlim_t)copy >= limit.rlim_cur;
	if (is_left) {
		left[n].copy = copy;
		left[n].free = !filled;
		/* seq_cst: pairs with fz_kept_fd_copying_ends(). */
		atomic_store_explicit(&left_count, n + 1, memory_order_seq_cst);
	}
	fz_lock_release(&kept_lock);
	return is_left;
}

/* clear_left() if no process is being made; otherwise the thread that makes the process does it later. */
static void clear_left_if_none_is_made(void)
{
	if (FZ_LIKELY(!atomic_load_explicit(&left_count, memory_order_seq_cst)))
		return;
	if (!begin_change()) {
		fz_lock_acquire(&kept_lock);
		clear_left();
		fz_lock_release(&kept_lock);
	}
	end_change();
}

/* Put the copy into dropping[].  Returns its place there; NULL: all places are taken. */
static _Atomic int *note_dropping(int copy)
{
	for (int i = 0; i < DROPPING_MOST; i++) {
		int unused = 0;

		/* relaxed: the release of clear_bit() publishes it; pairs with find_owner(). */
		if (atomic_compare_exchange_strong_explicit(&dropping[i], &unused, copy + 1, memory_order_relaxed,
							    memory_order_relaxed))
			return &dropping[i];
	}
	return NULL;
}

static void clear_and_close(int copy)
{
	_Atomic int *place = note_dropping(copy);

	clear_bit(copy);
	fz_syscall1(__NR_close, copy);
	/* release: the number is closed; pairs with find_owner(). */
	if (place)
		atomic_store_explicit(place, 0, memory_order_release);
}

void fz_kept_fd_drop(int copy)
{
	bool filled = false, is_left = false;

	/* In a fork's child, fz_kept_fd_after_fork() has closed the copy already. */
	if (!fz_kept_fd_is(copy))
		return;
	/* Never close the file with the lock held: to close a socket may take seconds (SO_LINGER). */
	if (begin_change()) {
		filled = fz_syscall3(__NR_dup3, filler_fd(), copy, O_CLOEXEC) == copy;
		is_left = leave(copy, filled);
	}
	if (!is_left)
		clear_and_close(copy);
	else if (!filled)
		fz_syscall1(__NR_close, copy);
	end_change();
	/* The thread that makes a process may have called clear_left() before this copy was in left[]. */
	clear_left_if_none_is_made();
}

static bool is_dropping(int fd)
{
	for (int i = 0; i < DROPPING_MOST; i++)
		/* acquire: pairs with clear_and_close(). */
		if (atomic_load_explicit(&dropping[i], memory_order_acquire) == fd + 1)
			return true;
	return false;
}

enum owner { NOBODY, OTHERS, UNKNOWN };

static enum owner find_owner(int fd)
{
	enum owner owner = NOBODY;

	fz_lock_acquire(&kept_lock);
	if (fz_syscall2(__NR_fcntl, fd, F_GETFD) != -EBADF && !fz_kept_fd_is(fd)) {
		/* acquire: pairs with clear_bit().  A thread that sees the bit cleared sees the number in dropping[]. */
		atomic_thread_fence(memory_order_acquire);
		owner = is_dropping(fd) ? UNKNOWN : OTHERS;
		/* Look once more: fd may have been a copy that was dropped, and so closed, since the first look. */
		if (owner == OTHERS && fz_syscall2(__NR_fcntl, fd, F_GETFD) == -EBADF)
			owner = NOBODY;
	}
	fz_lock_release(&kept_lock);
	return owner;
}

bool fz_kept_fd_is_others(int fd)
{
	const struct __kernel_timespec pause = fz_timespec(50 * FZ_USEC);
	const int most = 1000;
	enum owner owner;

	/*
	 * UNKNOWN: the number is in dropping[], and free soon.  The wait is long in one case: the file of the copy
	 * lingers after its number was freed, and the program has opened the number again.
	 */
	for (int i = 0; (owner = find_owner(fd)) == UNKNOWN && i < most; i++)
		fz_syscall2(__NR_nanosleep, (long)&pause, 0);
	return owner != NOBODY;
}

/* Tries a copy with a bit, like any copy, because a process may be made before the copy is closed. */
bool fz_kept_fd_has_room(int fd)
{
	int copy;

	if (!fz_own_fd_limit_is_held())
		return true;
	copy = fz_kept_fd_make(fd);
	if (copy >= 0)
		fz_kept_fd_drop(copy);
	return copy != -EMFILE;
}

void fz_kept_fd_copying_begins(void)
{
	const fz_nsec longest = 16 * FZ_MSEC, all = 100 * FZ_MSEC;

	atomic_fetch_add_explicit(&copying, 1, memory_order_seq_cst);
	for (fz_nsec waited = 0, pause = 50 * FZ_USEC;
	     waited < all && atomic_load_explicit(&changing, memory_order_seq_cst) > own_changes;
	     waited += pause, pause = pause < longest ? 2 * pause : pause) {
		const struct __kernel_timespec time = fz_timespec(pause);

		fz_syscall2(__NR_nanosleep, (long)&time, 0);
	}
}

void fz_kept_fd_copying_ends(void)
{
	atomic_fetch_sub_explicit(&copying, 1, memory_order_seq_cst);
	clear_left_if_none_is_made();
}

bool fz_kept_fd_is(int fd)
{
	return atomic_load_explicit(&kept_count, memory_order_relaxed) && fd < KEPT &&
	       atomic_load_explicit(&kept[fd / WORD_BITS], memory_order_relaxed) & bit_of(fd);
}

unsigned fz_kept_fd_next(unsigned first)
{
	for (unsigned i = first / WORD_BITS;
	     i < KEPT / WORD_BITS && atomic_load_explicit(&kept_count, memory_order_relaxed); i++) {
		uint64_t word = atomic_load_explicit(&kept[i], memory_order_relaxed);

		if (i == first / WORD_BITS)
			word &= ~(uint64_t)0 << first % WORD_BITS;
		if (word)
			return i * WORD_BITS + (unsigned)__builtin_ctzll(word);
	}
	return UINT_MAX;
}

void fz_kept_fd_after_fork(void)
{
	fz_lock_init(&kept_lock, FZ_RANK_KEPT);
	/* relaxed, all of these: there is one thread.  Copies in left[] still have their bits, so they are closed below. */
	atomic_store_explicit(&changing, own_changes, memory_order_relaxed);
	atomic_store_explicit(&copying, 0, memory_order_relaxed);
	atomic_store_explicit(&left_count, 0, memory_order_relaxed);
	for (int i = 0; i < DROPPING_MOST; i++)
		atomic_store_explicit(&dropping[i], 0, memory_order_relaxed);
	for (unsigned fd = fz_kept_fd_next(0); fd != UINT_MAX; fd = fz_kept_fd_next(fd + 1)) {
		clear_bit((int)fd);
		fz_own_fd_close((int)fd);
	}
	/* Another thread of the parent may have counted a copy whose bit was not set yet. */
	atomic_store_explicit(&kept_count, 0, memory_order_relaxed);
}
