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
	KEPT = 1 << 21,
	WORD_BITS = 64,
	/*
	 * Where own descriptors begin if the limit is high.  The kernel's table of descriptors
	 * has 8 bytes for each number, up to the power of two above the highest one in use, and
	 * every fork copies it: own descriptors just below a limit of a million would make it 8
	 * MB.
	 */
	HIGH = (1 << 12) - 1024,
	LIMIT_IS_HIGH = (1 << 14) - 1024,
	ROOM = 64,		/* numbers that we take below a limit that cannot be raised */
};

/* Held while RLIMIT_NOFILE is raised for a moment. */
static struct fz_lock limit_lock = FZ_LOCK(FZ_RANK_LIMIT);

/*
 * A bit for each number that fz_own_fd_keep() has returned.  relaxed: a reader has learnt the
 * number already, or takes the bit as a hint.
 */
static _Atomic uint64_t kept[KEPT / WORD_BITS];
static _Atomic uint32_t kept_count;

/*
 * A child's table of descriptors and its memory are copied at one moment, so the bits must say then which copies
 * there are.  Each change counts itself in `changing`, and a thread that makes a process in `copying`, before it looks
 * at the other (seq_cst, all of these).  While a process is made, who drops a copy leaves that to its maker, and who
 * makes one waits.  Neither waits for ever: a handler may make a process on top of a change, and a thread that makes a
 * process may wait for locks whose holder needs the processor of the one that waits.
 */
static _Atomic uint32_t changing, copying;
/* The calling thread's share of `changing`: a handler on top of its own change may make a process. */
static __thread uint32_t own_changes;
enum { LEFT_MOST = 256 };
static _Atomic int left[LEFT_MOST];	/* copies to be dropped, plus 1; 0: a free place */
static _Atomic bool any_left;

/* Until no other thread is counted. */
static void await_others(_Atomic uint32_t *n, uint32_t own)
{
	enum { PAUSES = 40 };
	const struct __kernel_timespec pause = fz_timespec(50 * FZ_USEC);

	for (int i = 0; i < PAUSES && atomic_load_explicit(n, memory_order_seq_cst) > own; i++)
		fz_syscall2(__NR_nanosleep, (long)&pause, 0);
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

int fz_own_fd_copy(int fd)
{
	struct rlimit old, wide, now;
	long limit = 1024, high;
	bool widened = false, high_enough = false;

	if (FZ_FAULT(dup))
		return -EMFILE;
	fz_lock_acquire(&limit_lock);
	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&old) == 0) {
		high_enough = old.rlim_cur > LIMIT_IS_HIGH + ROOM;
		limit = high_enough ? HIGH : (long)old.rlim_cur;
		wide = old;
		wide.rlim_cur = old.rlim_cur + 1024 < old.rlim_max ? old.rlim_cur + 1024 :
								     old.rlim_max;
		if (!high_enough && wide.rlim_cur > old.rlim_cur)
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
	fz_lock_release(&limit_lock);
	return (int)high;
}

static uint64_t bit_of(int fd)
{
	return (uint64_t)1 << (unsigned)fd % WORD_BITS;
}

int fz_own_fd_keep(int fd)
{
	enum { TRIES = 3 };
	int copy;

	for (int i = 0; begin_change() && i < TRIES; i++) {
		end_change();
		await_others(&copying, 0);
	}
	copy = fz_own_fd_copy(fd);
	if (copy >= KEPT) {
		fz_syscall1(__NR_close, copy);
		copy = -EMFILE;
	}
	if (copy >= 0) {
		atomic_fetch_or_explicit(&kept[copy / WORD_BITS], bit_of(copy),
					 memory_order_relaxed);
		atomic_fetch_add_explicit(&kept_count, 1, memory_order_relaxed);
	}
	end_change();
	return copy;
}

static void drop_now(int copy)
{
	/* In a fork's child, fz_own_fd_after_fork() has closed the copy already. */
	if (!(atomic_fetch_and_explicit(&kept[copy / WORD_BITS], ~bit_of(copy),
					memory_order_relaxed) & bit_of(copy)))
		return;
	atomic_fetch_sub_explicit(&kept_count, 1, memory_order_relaxed);
	fz_syscall1(__NR_close, copy);
}

/* Returns false if there is no room. */
static bool leave(int copy)
{
	for (int i = 0; i < LEFT_MOST; i++) {
		int none = 0;

		/* relaxed: published by any_left. */
		if (!atomic_compare_exchange_strong_explicit(&left[i], &none, copy + 1,
							     memory_order_relaxed, memory_order_relaxed))
			continue;
		/* seq_cst: pairs with drop_left(). */
		atomic_store_explicit(&any_left, true, memory_order_seq_cst);
		return true;
	}
	return false;
}

static void drop_left_now(void)
{
	for (int i = 0; i < LEFT_MOST; i++) {
		const int copy = atomic_exchange_explicit(&left[i], 0, memory_order_relaxed) - 1;

		if (copy >= 0)
			drop_now(copy);
	}
}

/* Unless a process is being made, by whoever drops them then. */
static void drop_left(void)
{
	bool goes_on = true;

	while (goes_on && FZ_UNLIKELY(atomic_load_explicit(&any_left, memory_order_seq_cst))) {
		goes_on = !begin_change();
		if (goes_on && atomic_exchange_explicit(&any_left, false, memory_order_seq_cst))
			drop_left_now();
		end_change();
	}
}

void fz_own_fd_drop(int copy)
{
	if (!begin_change() || !leave(copy))
		drop_now(copy);
	end_change();
	/* Its maker may have looked before this one was left. */
	drop_left();
}

void fz_own_fd_copying_begins(void)
{
	atomic_fetch_add_explicit(&copying, 1, memory_order_seq_cst);
	await_others(&changing, own_changes);
}

void fz_own_fd_copying_ends(void)
{
	atomic_fetch_sub_explicit(&copying, 1, memory_order_seq_cst);
	drop_left();
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

void fz_own_fd_after_fork(void)
{
	fz_lock_init(&limit_lock, FZ_RANK_LIMIT);
	atomic_store_explicit(&changing, own_changes, memory_order_relaxed);
	atomic_store_explicit(&copying, 0, memory_order_relaxed);
	/* Those that are left for their maker are kept still. */
	atomic_store_explicit(&any_left, false, memory_order_relaxed);
	for (int i = 0; i < LEFT_MOST; i++)
		atomic_store_explicit(&left[i], 0, memory_order_relaxed);
	for (unsigned fd = fz_own_fd_next_kept(0); fd != UINT_MAX; fd = fz_own_fd_next_kept(fd + 1))
		fz_own_fd_drop((int)fd);
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
