/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/select.c - select and pselect: how they ask the kernel; how they wait is in poll.c.
 *
 * The kernel gets the caller's own sets and writes the answer there.  If nothing is ready, the kernel clears the
 * sets.  They are restored at once, so that handlers and other threads see what the caller asked for while the
 * call waits.
 */
#include "runtime/io/io_internal.h"

#include <linux/mman.h>
#include <linux/poll.h>

#include "runtime/base/sys.h"
#include "runtime/sched/own_fds.h"

enum {
	WORD_BITS = 64,
	MAX_WORDS = 64,		/* 4096 descriptors: four times FD_SETSIZE */
	SMALLEST_END = 1024,	/* FD_SETSIZE: every fd_set has this many bits */
	PAGES = 1 << 16,	/* bytes; whole pages for every page size */
	READ = POLLIN | POLLRDNORM | POLLRDBAND,
	WRITE = POLLOUT | POLLWRNORM | POLLWRBAND,
};

struct sets {
	struct fz_io_many many;
	uint64_t *user[3];	/* read, write, except; each may be NULL */
	uint64_t saved[3][MAX_WORDS];
	unsigned words;
	int n;
	bool answered;		/* the caller's sets hold an answer */
};

/* The number of the argument that is the time limit. */
enum { LIMIT = 4 };

/* ---- how many bits of the sets the kernel reads -------------------------- */

/* The length of a table in which fd is the highest number so far, but at least SMALLEST_END. */
static long table_end(int fd)
{
	long end = SMALLEST_END;

	while (end <= fd)
		end *= 2;
	return end;
}

/*
 * Returns the address of the end of PAGES bytes of zeros: an empty fd_set for 8 * PAGES descriptors.  The memory behind
 * that address cannot be read.  Or -errno.
 */
static long end_of_empty_set(void)
{
	static _Atomic long made;
	/* acquire, acq_rel: the memory can be read before others see its address. */
	long end = atomic_load_explicit(&made, memory_order_acquire), others = 0, ret;

	if (end)
		return end;
	end = fz_sys_mmap(2 * PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (fz_sys_failed(end))
		return end;
	ret = fz_syscall3(__NR_mprotect, end, PAGES, PROT_READ | PROT_WRITE);
	end += PAGES;
	if (ret == 0 && atomic_compare_exchange_strong_explicit(&made, &others, end, memory_order_acq_rel,
								memory_order_acquire))
		return end;
	fz_syscall2(__NR_munmap, end - PAGES, 2 * PAGES);
	return ret ? ret : others;
}

/*
 * Returns the length of the kernel's table of descriptors; n if that is less, or if the length cannot be found.  select()
 * reads one bit for each descriptor in the table.  So a set with unreadable memory behind bit `end - 1` fails with EFAULT
 * if the table is longer than `end`.
 */
static long kernel_end(int n)
{
	const struct __kernel_timespec none = { 0, 0 };
	const long behind = end_of_empty_set();
	long end = SMALLEST_END;

	if (fz_sys_failed(behind))
		return n;
	while (end < n && end <= 8 * PAGES) {
		const long ret = fz_syscall6(__NR_pselect6, end + 1, behind - end / 8, 0, 0, (long)&none, 0);

		if (ret == -EINTR)
			continue;
		if (ret != -EFAULT)
			return end;
		end *= 2;
	}
	return n;
}

/*
 * The table is as long as the highest descriptor needs that the program has ever had.  The library has not seen every
 * descriptor (inherited ones, those received by a message or made inside libc), so look for the highest open one, too.  One
 * poll of all would be faster, but swallows events of some files.  This is needed even if there are no own descriptors: exec()
 * keeps the table, so it may have the length of a program that had some.
 */
int fz_io_select_end(int n)
{
	long all, end, fd;

	if (FZ_LIKELY(n <= SMALLEST_END))
		return n;
	all = kernel_end(n);
	end = table_end(fz_fdtab_highest_had());
	for (fd = all - 1; fd >= end && !fz_sched_program_has_fd((int)fd);)
		fd--;
	if (fd >= end)
		end = table_end((int)fd);
	return (int)(end < all ? end : all);
}

/* ---- the calls ---------------------------------------------------------- */

static struct fz_io_call call_of(const struct sets *s)
{
	return (struct fz_io_call){ __NR_pselect6, { s->n, (long)s->user[0], (long)s->user[1],
						     (long)s->user[2] } };
}

/*
 * Copy the caller's sets.  Returns false if they cannot be read: the real call then fails with
 * EFAULT, too.
 */
static bool save(struct sets *s)
{
	for (int i = 0; i < 3; i++) {
		if (!s->user[i] || !s->words)
			continue;
		if (!fz_sys_readable(s->user[i]) ||
		    !fz_sys_readable(s->user[i] + s->words - 1))
			return false;
		__builtin_memcpy(s->saved[i], s->user[i], s->words * sizeof(uint64_t));
	}
	return true;
}

/*
 * Set the caller's sets to what the call began with (saved), or to empty, as the kernel leaves them when nothing is ready.
 * A word that is right already is not written, because its memory may be read-only.
 */
static void write_sets(const struct sets *s, bool saved)
{
	for (int i = 0; i < 3 && !s->many.once; i++)
		for (unsigned w = 0; s->user[i] && w < s->words; w++) {
			const uint64_t word = saved ? s->saved[i][w] : 0;

			if (s->user[i][w] != word)
				s->user[i][w] = word;
		}
}

static bool gather(struct fz_io_many *m)
{
	static const short all_events[3] = { READ, WRITE, POLLPRI };
	const struct sets *s = fz_container_of(m, struct sets, many);

	for (unsigned w = 0; w < s->words; w++) {
		uint64_t any = 0;

		for (int i = 0; i < 3; i++)
			any |= s->user[i] ? s->saved[i][w] : 0;
		for (; any; any &= any - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(any);
			int fd = (int)(w * WORD_BITS + bit);

			short events = 0;

			if (fd >= s->n)
				break;
			for (int i = 0; i < 3; i++)
				if (s->user[i] && s->saved[i][w] >> bit & 1)
					events |= all_events[i];
			if (!fz_io_want(m, fd, events))
				return false;
		}
	}
	return true;
}

/*
 * Make the answer if a descriptor has been closed since the call began.  Natively that descriptor
 * counts as ready for all events that were asked for (fs/select.c).  The kernel's select() would now
 * fail with EBADF.
 */
static int answer_closed(const struct sets *s)
{
	static const short events[3] = {
		READ | POLLHUP | POLLERR | POLLNVAL, WRITE | POLLERR | POLLNVAL, POLLPRI | POLLNVAL,
	};
	struct __kernel_timespec none = { 0, 0 };
	struct pollfd *const fds = s->many.wanted;
	const unsigned n = s->many.count;
	int count = 0;

	write_sets(s, false);
	/* Without the answer: those that are closed are ready, and of the others nothing is known. */
	if (fz_syscall5(__NR_ppoll, (long)fds, n, (long)&none, 0, 0) < 0)
		for (unsigned i = 0; i < n; i++)
			fds[i].revents = fz_syscall2(__NR_fcntl, fds[i].fd, F_GETFD) == -EBADF ? POLLNVAL : 0;
	for (const struct pollfd *f = fds; f < fds + n; f++) {
		unsigned w = (unsigned)f->fd / WORD_BITS;
		uint64_t bit = (uint64_t)1 << (unsigned)f->fd % WORD_BITS;

		for (int i = 0; i < 3; i++) {
			if (!s->user[i] || !(s->saved[i][w] & bit) || !(f->revents & events[i]))
				continue;
			s->user[i][w] |= bit;
			count++;
		}
	}
	return count;
}

static int look(struct fz_fiber *self, struct fz_io_many *m)
{
	const struct __kernel_timespec none = { 0, 0 };
	struct sets *s = fz_container_of(m, struct sets, many);
	struct fz_io_call c = call_of(s);
	int ret;

	c.args[LIMIT] = (long)&none;
	ret = (int)fz_io_look(self, &c);
	if (ret == -EBADF && m->count)
		ret = answer_closed(s);
	if (ret == 0)
		write_sets(s, true);
	s->answered = ret > 0;
	return ret;
}

static int announced(struct fz_fiber *self, struct fz_io_many *m, fz_nsec deadline)
{
	struct sets *s = fz_container_of(m, struct sets, many);
	struct fz_io_call c = call_of(s);
	const int ret = (int)fz_io_make_limited(self, &c, LIMIT, deadline);

	s->answered = ret > 0;
	return ret;
}

int fz_io_select(struct fz_fiber *self, int n, void *const sets[3], fz_nsec deadline,
		 const uint64_t *mask)
{
	struct sets s;
	int ret;

	for (int i = 0; i < 3; i++)
		s.user[i] = sets[i];
	s.words = n > 0 ? ((unsigned)n + WORD_BITS - 1) / WORD_BITS : 0;
	s.n = n;
	s.answered = false;
	s.many = (struct fz_io_many){ look, announced, gather, .poll_number = __NR_ppoll };
	/* A call that need not wait is made only once. */
	s.many.once = (deadline == 0 && !mask) || s.words > MAX_WORDS;
	if (!s.many.once && !save(&s))
		return -EFAULT;
	ret = fz_io_wait_many(self, &s.many, deadline, mask);
	if (ret == 0)
		write_sets(&s, false);
	/* A handler ran because of the mask, so the call ends with EINTR: take the answer out of the sets. */
	if (ret == -EINTR && s.answered)
		write_sets(&s, true);
	return ret;
}
