/* SPDX-License-Identifier: MIT */
#include "runtime/backend/own_fd.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include "runtime/base/lock.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"

enum {
	KEPT = 1 << 20,		/* numbers that may be kept: all that there are, unless fs.nr_open is raised */
	WORD_BITS = 64,
	/*
	 * Where own descriptors begin if the limit is high.  The kernel's table of descriptors has 8 bytes for each
	 * number, up to the power of two above the highest one in use, and every fork copies it: own descriptors
	 * just below a limit of a million would make it 8 MB.
	 */
	HIGH = (1 << 12) - 1024,
	LIMIT_IS_HIGH = (1 << 14) - 1024,
	ROOM = 64,		/* numbers that we take below a limit that cannot be raised */
};

/* Held while RLIMIT_NOFILE is raised for a moment. */
static struct fz_lock limit_lock = FZ_LOCK(FZ_RANK_LIMIT);
/* Threads that make processes, which must not inherit a raised limit.  Guarded by limit_lock. */
static uint32_t limit_holders;

/*
 * A bit for each number that fz_own_fd_keep() has returned.  relaxed: a reader has learnt the
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
 * other counter (all seq_cst).  A thread that makes a process waits for changes that are under way, but not for long: a
 * socket may linger, and if handlers interrupt the changes of two threads and make processes, each waits for the other.  A
 * change never waits for a thread that makes a process, which may wait for a lock of libc.
 */
static _Atomic uint32_t changing, copying;
/* The calling thread's share of `changing`: a handler that interrupts its change and makes a process does not wait for it. */
static __thread uint32_t own_changes;
enum { LEFT_MOST = 256 };
/*
 * Dropped copies that still have their bits.  Once no process is being made, the bits are cleared and the numbers
 * closed; free: the number is closed already.  Guarded by limit_lock.
 */
static struct { int copy; bool free; } left[LEFT_MOST];
static _Atomic uint32_t left_count;	/* written with limit_lock held */
static const _Atomic int *filler;	/* a descriptor that may be in the child, too */
static bool parents;			/* the table is the parent's, too */

void fz_own_fd_fill_with(const _Atomic int *fd)
{
	filler = fd;
}

static int filler_fd(void)
{
	/* relaxed: written before there is a second thread, or by fz_backend_vacate_fd(). */
	return filler ? atomic_load_explicit(filler, memory_order_relaxed) : -1;
}

void fz_own_fd_close(int fd)
{
	if (!parents)
		fz_syscall1(__NR_close, fd);
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

/* As fz_own_fd_copy(), with limit_lock held.  raises: not while a process may be made that inherits the limit. */
static int copy_locked(int fd, bool raises)
{
	struct rlimit old, wide, now;
	long limit = 1024, high;
	bool widened = false, high_enough = false;

	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&old) == 0) {
		high_enough = old.rlim_cur > LIMIT_IS_HIGH + ROOM;
		limit = high_enough ? HIGH : (long)old.rlim_cur;
		wide = old;
		wide.rlim_cur = old.rlim_cur + 1024 < old.rlim_max ? old.rlim_cur + 1024 :
								     old.rlim_max;
		if (raises && !limit_holders && !high_enough && wide.rlim_cur > old.rlim_cur)
			widened = fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE,
					      (long)&wide, 0) == 0;
	}
	high = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC,
			   widened || high_enough ? limit : limit - ROOM);
	/*
	 * The limit cannot be raised, and copies of closed descriptors fill the numbers just below
	 * it: look for a free number from half of the limit on, then from a quarter, and so on.
	 */
	for (limit /= 2; high < 0 && high != -EBADF && limit > 2; limit /= 2)
		high = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, limit);
	/* Restore the limit, unless the program has set another one meanwhile. */
	if (widened && fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&now) == 0 &&
	    now.rlim_cur == wide.rlim_cur) {
		now.rlim_cur = old.rlim_cur;
		fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, (long)&now, 0);
	}
	return (int)high;
}

int fz_own_fd_copy(int fd)
{
	int copy;

	if (FZ_FAULT(dup))
		return -EMFILE;
	fz_lock_acquire(&limit_lock);
	copy = copy_locked(fd, true);
	fz_lock_release(&limit_lock);
	return copy;
}

static uint64_t bit_of(int fd)
{
	return (uint64_t)1 << (unsigned)fd % WORD_BITS;
}

static void set_bit(int copy)
{
	uint64_t before;

	/* The count first: a child that sees the bit alone would not look for more. */
	atomic_fetch_add_explicit(&kept_count, 1, memory_order_release);
	before = atomic_fetch_or_explicit(&kept[copy / WORD_BITS], bit_of(copy), memory_order_release);
	FZ_ASSERT_SLOW(!(before & bit_of(copy)));
}

static void clear_bit(int copy)
{
	const uint64_t before = atomic_fetch_and_explicit(&kept[copy / WORD_BITS], ~bit_of(copy),
							  memory_order_relaxed);

	FZ_ASSERT_SLOW(before & bit_of(copy));
	atomic_fetch_sub_explicit(&kept_count, 1, memory_order_release);
}

/* Returns a copy of fd with its bit set, or -errno.  With limit_lock held. */
static int keep_locked(int fd, bool raises)
{
	const int copy = copy_locked(fd, raises);

	if (copy >= KEPT) {
		fz_syscall1(__NR_close, copy);
		return -EMFILE;
	}
	if (copy >= 0)
		set_bit(copy);
	return copy;
}

/* Returns a number that was left and holds a filler, or -EBADF.  With limit_lock held. */
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
 * While a process is made, or was a moment ago.  With limit_lock held.  From the limit on dup3() has no numbers, and some may
 * be in left[]: so the limit is not raised.
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
	/* A filter forbids dup3: the process may get the file, too. */
	clear_bit(copy);
	fz_syscall1(__NR_close, copy);
	return keep_locked(fd, false);
}

/* Those that were left.  With limit_lock held, within a change while no process is made. */
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

int fz_own_fd_keep(int fd)
{
	bool process;
	int copy;

	if (FZ_FAULT(dup))
		return -EMFILE;
	process = begin_change();
	fz_lock_acquire(&limit_lock);
	/* Their numbers may be free, with their bits set still. */
	if (!process)
		clear_left();
	copy = process ? keep_filled(fd) : keep_locked(fd, true);
	fz_lock_release(&limit_lock);
	end_change();
	return copy;
}

/*
 * The copy keeps its bit: its number has a filler, or is one from the limit on, which the program does not get while
 * it is free.  Returns false if there is no room, or a filter forbids fillers.
 */
static bool leave(int copy, bool filled)
{
	struct rlimit limit;
	bool is_left = true;
	uint32_t n;

	fz_lock_acquire(&limit_lock);
	n = atomic_load_explicit(&left_count, memory_order_relaxed);
	if (n == LEFT_MOST)
		is_left = false;
	else if (!filled)
		is_left = fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit) == 0 &&
			  (rlim_t)copy >= limit.rlim_cur;
	if (is_left) {
		left[n].copy = copy;
		left[n].free = !filled;
		/* seq_cst: pairs with fz_own_fd_copying_ends(). */
		atomic_store_explicit(&left_count, n + 1, memory_order_seq_cst);
	}
	fz_lock_release(&limit_lock);
	return is_left;
}

/* Unless a process is being made, by whoever clears them then. */
static void clear_left_if_none_is_made(void)
{
	if (FZ_LIKELY(!atomic_load_explicit(&left_count, memory_order_seq_cst)))
		return;
	if (!begin_change()) {
		fz_lock_acquire(&limit_lock);
		clear_left();
		fz_lock_release(&limit_lock);
	}
	end_change();
}

void fz_own_fd_drop(int copy)
{
	bool filled = false, is_left = false;

	/* In a fork's child, fz_own_fd_begin_in_child() has closed the copy already. */
	if (!fz_own_fd_is_kept(copy))
		return;
	/* The file is let go without the lock, in each case: to close a socket may take seconds (SO_LINGER). */
	if (begin_change()) {
		filled = fz_syscall3(__NR_dup3, filler_fd(), copy, O_CLOEXEC) == copy;
		is_left = leave(copy, filled);
	}
	if (!is_left)
		clear_bit(copy);
	if (!is_left || !filled)
		fz_syscall1(__NR_close, copy);
	end_change();
	/* The thread that makes a process may have looked before this one was left. */
	clear_left_if_none_is_made();
}

bool fz_own_fd_is_others(int fd)
{
	fz_lock_acquire(&limit_lock);
	const bool ret = fz_syscall2(__NR_fcntl, fd, F_GETFD) != -EBADF && !fz_own_fd_is_kept(fd);
	fz_lock_release(&limit_lock);
	return ret;
}

/* As any copy, with a bit: between its system calls a process may be made. */
bool fz_own_fd_has_room(int fd)
{
	bool held;
	int copy;

	fz_lock_acquire(&limit_lock);
	held = limit_holders > 0;
	fz_lock_release(&limit_lock);
	if (!held)
		return true;
	copy = fz_own_fd_keep(fd);
	if (copy >= 0)
		fz_own_fd_drop(copy);
	return copy != -EMFILE;
}

void fz_own_fd_hold_limit(void)
{
	fz_lock_acquire(&limit_lock);
	limit_holders++;
	fz_lock_release(&limit_lock);
}

void fz_own_fd_release_limit(void)
{
	fz_lock_acquire(&limit_lock);
	/* A handler may have forked between the two: its child has no holder. */
	limit_holders -= limit_holders > 0;
	fz_lock_release(&limit_lock);
}

void fz_own_fd_copying_begins(void)
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

void fz_own_fd_copying_ends(void)
{
	atomic_fetch_sub_explicit(&copying, 1, memory_order_seq_cst);
	clear_left_if_none_is_made();
}

bool fz_own_fd_is_kept(int fd)
{
	return atomic_load_explicit(&kept_count, memory_order_relaxed) && fd < KEPT &&
	       atomic_load_explicit(&kept[fd / WORD_BITS], memory_order_relaxed) & bit_of(fd);
}

unsigned fz_own_fd_next_kept(unsigned first)
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

void fz_own_fd_begin_in_child(bool shares)
{
	parents = shares;
	fz_lock_init(&limit_lock, FZ_RANK_LIMIT);
	limit_holders = 0;
	/* relaxed, all of these: there is one thread.  What was left has its bit still. */
	atomic_store_explicit(&changing, own_changes, memory_order_relaxed);
	atomic_store_explicit(&copying, 0, memory_order_relaxed);
	atomic_store_explicit(&left_count, 0, memory_order_relaxed);
	for (unsigned fd = fz_own_fd_next_kept(0); fd != UINT_MAX; fd = fz_own_fd_next_kept(fd + 1)) {
		clear_bit((int)fd);
		fz_own_fd_close((int)fd);
	}
	/* One that another thread had counted, without its bit. */
	atomic_store_explicit(&kept_count, 0, memory_order_relaxed);
}

void fz_own_fd_end_in_child(void)
{
	parents = false;
}

int fz_own_fd_raise(int fd)
{
	int high = fz_own_fd_copy(fd);

	/* No high number is free: keep the descriptor where it is. */
	if (high < 0)
		return fd;
	fz_syscall1(__NR_close, fd);
	return high;
}

int fz_own_fd_elsewhere(int fd)
{
	long copy = FZ_FAULT(dup) ? -EMFILE : fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1);

	if (copy == -EINVAL || copy == -EMFILE)
		copy = fz_syscall3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, 3);
	return (int)copy;
}

uint32_t fz_own_fd_allowed(uint32_t wanted)
{
	enum { SHARE = 4 };
	struct rlimit limit;
	uint32_t unused = 0;

	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit))
		return wanted;
	/* Few are open, so that this ends soon even if the limit is high. */
	for (rlim_t fd = 0; fd < limit.rlim_max && unused < SHARE * wanted; fd++) {
		long flags = fz_syscall2(__NR_fcntl, (long)fd, F_GETFD);

		/* A filter forbids to ask. */
		if (flags < 0 && flags != -EBADF)
			return wanted;
		unused += flags < 0;
	}
	return unused / SHARE < wanted ? unused / SHARE : wanted;
}
