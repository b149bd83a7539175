/* SPDX-License-Identifier: MIT */
#include "runtime/backend/own_fd.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include "runtime/base/lock.h"
#include "runtime/base/sys.h"

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
 * A new process gets the table of descriptors first, and the memory with the bits later.  So a number is that of
 * a filler before its bit is set, and before its bit is cleared: what the child lacks a bit for is a filler.  And a
 * number that is dropped while a process is made keeps its bit until that is over, since the table may have been
 * copied before: the file itself is let go at once.  Nobody waits for another thread here.
 */
static const _Atomic int *filler;	/* a descriptor that may be in the child, too */
static _Atomic uint32_t copying;	/* threads that make a process */
enum { LEFT_MOST = 256 };
static _Atomic int left[LEFT_MOST];	/* numbers to be closed, plus 1; 0: a free place */
static _Atomic bool any_left;
static bool parents;			/* the table is the parent's, too */

void fz_own_fd_fill_with(const _Atomic int *fd)
{
	filler = fd;
}

static int filler_fd(void)
{
	/* relaxed: written before there is a second thread, or by fz_backend_vacate_fd(); then any file serves. */
	return filler ? atomic_load_explicit(filler, memory_order_relaxed) : -1;
}

static bool fill(int number, int with)
{
	return fz_syscall3(__NR_dup3, with, number, O_CLOEXEC) == number;
}

void fz_own_fd_close(int fd)
{
	if (!parents)
		fz_syscall1(__NR_close, fd);
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

static void set_bit(int copy)
{
	atomic_fetch_or_explicit(&kept[copy / WORD_BITS], bit_of(copy), memory_order_relaxed);
	atomic_fetch_add_explicit(&kept_count, 1, memory_order_relaxed);
}

/* Returns false if another thread, or this process when it was made, has cleared it. */
static bool clear_bit(int copy)
{
	if (!(atomic_fetch_and_explicit(&kept[copy / WORD_BITS], ~bit_of(copy),
					memory_order_relaxed) & bit_of(copy)))
		return false;
	atomic_fetch_sub_explicit(&kept_count, 1, memory_order_relaxed);
	return true;
}

static void close_number(int copy)
{
	if (clear_bit(copy))
		fz_own_fd_close(copy);
}

/* Returns a number, with its bit set, or -errno. */
static int keep_number(int fd)
{
	const int copy = fz_own_fd_copy(fd);

	if (copy >= KEPT) {
		fz_syscall1(__NR_close, copy);
		return -EMFILE;
	}
	if (copy >= 0)
		set_bit(copy);
	return copy;
}

int fz_own_fd_keep(int fd)
{
	const int with = filler_fd(), copy = with < 0 ? -EBADF : keep_number(with);

	if (copy >= 0 && fill(copy, fd))
		return copy;
	if (copy >= 0)
		close_number(copy);
	/* A filter forbids dup3, or there is no filler: a process that is made just now may get the file. */
	return keep_number(fd);
}

/* Returns false if there is no room. */
static bool leave(int copy)
{
	for (int i = 0; i < LEFT_MOST; i++) {
		int none = 0;

		/* seq_cst, this and the next: pairs with fz_own_fd_copying_ends(). */
		if (!atomic_compare_exchange_strong_explicit(&left[i], &none, copy + 1,
							     memory_order_seq_cst, memory_order_relaxed))
			continue;
		atomic_store_explicit(&any_left, true, memory_order_seq_cst);
		return true;
	}
	return false;
}

/* A process whose table has the file is counted: its table was copied before the file was let go. */
static bool is_copied(void)
{
	return FZ_UNLIKELY(atomic_load_explicit(&copying, memory_order_seq_cst) != 0);
}

/* Those that were left, unless a process is being made. */
static void close_left(void)
{
	while (atomic_load_explicit(&any_left, memory_order_seq_cst) && !is_copied() &&
	       atomic_exchange_explicit(&any_left, false, memory_order_seq_cst))
		for (int i = 0; i < LEFT_MOST; i++) {
			const int copy = atomic_exchange_explicit(&left[i], 0, memory_order_seq_cst) - 1;

			if (copy >= 0 && (!is_copied() || !leave(copy)))
				close_number(copy);
		}
}

void fz_own_fd_drop(int copy)
{
	/* In a fork's child, fz_own_fd_after_fork() has closed the copy already. */
	if (!fz_own_fd_is_kept(copy))
		return;
	fill(copy, filler_fd());
	if (!is_copied() || !leave(copy))
		close_number(copy);
	/* Its maker may have looked before this one was left. */
	close_left();
}

void fz_own_fd_copying_begins(void)
{
	/* seq_cst: pairs with is_copied(); the kernel's lock of the table is between them. */
	atomic_fetch_add_explicit(&copying, 1, memory_order_seq_cst);
}

void fz_own_fd_copying_ends(void)
{
	atomic_fetch_sub_explicit(&copying, 1, memory_order_seq_cst);
	close_left();
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
	/* relaxed, all of these: there is one thread.  What was left has its bit still. */
	atomic_store_explicit(&copying, 0, memory_order_relaxed);
	if (atomic_exchange_explicit(&any_left, false, memory_order_relaxed))
		for (int i = 0; i < LEFT_MOST; i++)
			atomic_store_explicit(&left[i], 0, memory_order_relaxed);
	for (unsigned fd = fz_own_fd_next_kept(0); fd != UINT_MAX; fd = fz_own_fd_next_kept(fd + 1))
		close_number((int)fd);
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
