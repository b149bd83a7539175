/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/select.c - select: ask without waiting, then one request per descriptor
 * until the first is ready, then ask again for the answer.
 *
 * The kernel alone reads and changes the caller's sets.  If nothing is ready, the kernel clears
 * them; they are then restored from the saved copy.
 */
#include "runtime/io/io_internal.h"

#include <linux/poll.h>

#include "runtime/base/sys.h"
#include "runtime/sched/announce.h"
#include "runtime/signal/signal.h"

enum {
	WORD_BITS = 64,
	MAX_WORDS = 64,		/* 4096 descriptors: four times FD_SETSIZE */
	/*
	 * How often a wait may end with nothing ready before the real call waits instead.
	 * Usually another thread took what was there; but the ring also ends a request when the
	 * peer hangs up, even if the program did not ask for that.
	 */
	MAX_SPURIOUS = 3,
	READ = POLLIN | POLLRDNORM | POLLRDBAND,
	WRITE = POLLOUT | POLLWRNORM | POLLWRBAND,
};

struct sets {
	uint64_t *user[3];	/* read, write, except; each may be NULL */
	uint64_t saved[3][MAX_WORDS];
	unsigned words;
	int n;
};

/* The number of the argument that is the time limit. */
enum { LIMIT = 4 };

static struct fz_io_call call_of(const struct sets *s)
{
	return (struct fz_io_call){ __NR_pselect6, { s->n, (long)s->user[0], (long)s->user[1],
						     (long)s->user[2] } };
}

static int64_t select_now(const struct fz_fiber *self, const struct sets *s)
{
	const struct __kernel_timespec none = { 0, 0 };
	struct fz_io_call c = call_of(s);

	c.args[LIMIT] = (long)&none;
	return fz_io_look(self, &c);
}

static int64_t select_announced(struct fz_fiber *self, const struct sets *s, fz_nsec deadline)
{
	struct fz_io_call c = call_of(s);

	return fz_io_make_limited(self, &c, LIMIT, deadline);
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

static void restore(struct sets *s)
{
	for (int i = 0; i < 3; i++)
		if (s->user[i])
			__builtin_memcpy(s->user[i], s->saved[i], s->words * sizeof(uint64_t));
}

/*
 * Make a pollfd for each descriptor in the sets.  Returns how many, or -1 if there are more than
 * FZ_IO_MAX_POLLS.
 */
static int gather(const struct sets *s, struct pollfd *fds)
{
	static const short events[3] = { READ, WRITE, POLLPRI };
	int used = 0;

	for (unsigned w = 0; w < s->words; w++) {
		uint64_t any = 0;

		for (int i = 0; i < 3; i++)
			any |= s->user[i] ? s->saved[i][w] : 0;
		for (; any; any &= any - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(any);
			int fd = (int)(w * WORD_BITS + bit);

			if (fd >= s->n)
				break;
			if (used == FZ_IO_MAX_POLLS)
				return -1;
			fds[used] = (struct pollfd){ .fd = fd };
			for (int i = 0; i < 3; i++)
				if (s->user[i] && s->saved[i][w] >> bit & 1)
					fds[used].events |= events[i];
			used++;
		}
	}
	return used;
}

/*
 * Make the answer if a descriptor has been closed since the call began.  Natively it then counts
 * as ready for everything that was asked (fs/select.c); the kernel would refuse the closed number
 * now.
 */
static int64_t answer_closed(const struct sets *s, struct pollfd *fds, int n)
{
	static const short events[3] = {
		READ | POLLHUP | POLLERR | POLLNVAL, WRITE | POLLERR | POLLNVAL, POLLPRI | POLLNVAL,
	};
	struct __kernel_timespec none = { 0, 0 };
	int64_t count = 0;

	for (int i = 0; i < 3; i++)
		if (s->user[i])
			__builtin_memset(s->user[i], 0, s->words * sizeof(uint64_t));
	fz_syscall5(__NR_ppoll, (long)fds, n, (long)&none, 0, 0);
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

static void set_up(struct sets *s, int n, void *const sets[3])
{
	for (int i = 0; i < 3; i++)
		s->user[i] = sets[i];
	s->words = n > 0 ? ((unsigned)n + WORD_BITS - 1) / WORD_BITS : 0;
	s->n = n;
}

/* select, but for fz_signal_mark(). */
static int wait_for(struct fz_fiber *self, int n, void *const sets[3], fz_nsec deadline)
{
	struct pollfd wanted[FZ_IO_MAX_POLLS];
	struct sets s;
	int used, spurious = 0;
	int64_t ret;

	fz_io_test_cancel(self);
	set_up(&s, n, sets);
	if (deadline == 0)
		fz_io_yield_sometimes(self, false);
	if (deadline == 0 || n < 0)
		return (int)select_now(self, &s);
	if (s.words > MAX_WORDS)
		return (int)select_announced(self, &s, deadline);
	if (!save(&s))
		return -EFAULT;
	ret = select_now(self, &s);
	if (ret != 0)
		return (int)ret;
	restore(&s);
	used = gather(&s, wanted);
	while (used >= 0 && spurious < MAX_SPURIOUS && !fz_is_alone(self)) {
		int more = fz_io_wait_any(self, wanted, (unsigned)used, deadline);

		if (more == -EINTR)
			return more;
		if (more == -EINVAL)
			break;
		ret = select_now(self, &s);
		if (ret == -EBADF)
			ret = answer_closed(&s, wanted, used);
		if (ret != 0 || !more)
			return (int)ret;
		restore(&s);
		spurious++;
	}
	ret = select_announced(self, &s, deadline);
	if (ret == -EINTR)
		restore(&s);
	return (int)ret;
}

int fz_io_select(struct fz_fiber *self, int n, void *const sets[3], fz_nsec deadline)
{
	fz_signal_mark(self);
	return wait_for(self, n, sets, deadline);
}

int fz_io_pselect(struct fz_fiber *self, int n, void *const sets[3], fz_nsec deadline,
		  uint64_t mask)
{
	struct fz_mask_swap old;
	struct sets s;
	bool saved;
	int ret;

	fz_io_test_cancel(self);
	set_up(&s, n, sets);
	saved = s.words <= MAX_WORDS && save(&s);
	fz_signal_mark(self);
	if (saved) {
		ret = (int)select_now(self, &s);
		if (ret != 0)
			return ret;
		restore(&s);
	}
	ret = fz_signal_swap_mask(self, mask, &old) ? -EINTR :
						      wait_for(self, n, sets, deadline);
	fz_signal_unswap_mask(self, &old);
	/* As natively: a handler that ran because of the mask ends the call with EINTR, whatever is ready now. */
	if (ret >= 0 && self->sig.handlers_run) {
		if (saved)
			restore(&s);
		return -EINTR;
	}
	return ret;
}
