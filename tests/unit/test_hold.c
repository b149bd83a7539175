/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/hold.h"
#include "runtime/own_fd.h"

static const struct fz_ticket nobody;

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void make_pipe(int p[2])
{
	cr_assert_eq(pipe(p), 0);
}

/* Closed while the call waits.  Returns its copy. */
static int close_under(struct fz_hold *hold)
{
	fz_hold_begin(hold, nobody, false);
	fz_hold_closing(hold->number);
	cr_assert(is_open(hold->copy));
	return hold->copy;
}

static void cr_same_file(int a, int b)
{
	struct stat x, y;

	cr_assert_eq(fstat(a, &x), 0);
	cr_assert_eq(fstat(b, &y), 0);
	cr_assert_eq(x.st_ino, y.st_ino);
}

Test(hold, number_while_open)
{
	struct fz_hold hold = FZ_HOLD_INIT(0);

	cr_assert_eq(fz_hold_fd(&hold), 0);
	fz_hold_begin(&hold, nobody, false);
	cr_assert(fz_hold_is_held(0));
	fz_hold_end(&hold, true);
	cr_assert_not(fz_hold_is_held(0));
	fz_hold_closing(0);
	cr_assert_eq(fz_hold_fd(&hold), 0);
	fz_hold_release(&hold);
	cr_assert(is_open(0));
}

Test(hold, copy_when_closed)
{
	int p[2], copy;

	make_pipe(p);
	struct fz_hold hold = FZ_HOLD_INIT(p[0]), other = FZ_HOLD_INIT(p[1]);

	fz_hold_begin(&hold, nobody, false);
	fz_hold_begin(&other, nobody, false);
	fz_hold_closing(p[0]);
	fz_hold_end(&hold, true);
	fz_hold_end(&other, true);
	copy = fz_hold_fd(&hold);
	cr_assert_neq(copy, p[0]);
	cr_same_file(copy, p[0]);
	cr_assert_eq(fcntl(copy, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(fz_hold_fd(&other), p[1]);
	/* The number is somebody else's from now on. */
	fz_hold_begin(&hold, nobody, false);
	fz_hold_closing(p[0]);
	fz_hold_end(&hold, true);
	cr_assert_eq(fz_hold_fd(&hold), copy);
	fz_hold_release(&hold);
	cr_assert_not(is_open(copy));
	cr_assert_eq(fz_hold_fd(&hold), p[0]);
}

Test(hold, copy_is_dropped)
{
	int p[2], copy;

	make_pipe(p);
	struct fz_hold hold = FZ_HOLD_INIT(p[0]);

	copy = close_under(&hold);
	cr_assert(fz_sched_owns_fd(copy));
	cr_assert_eq(fz_own_fd_next_kept(0), (unsigned)copy);
	cr_assert_eq(fz_own_fd_next_kept((unsigned)copy), (unsigned)copy);
	cr_assert_eq(fz_own_fd_next_kept((unsigned)copy + 1), UINT_MAX);
	cr_assert_lt(fz_sched_vacate_fd(copy), 0);
	fz_hold_end(&hold, false);
	cr_assert_not(is_open(copy));
	cr_assert_eq(fz_hold_fd(&hold), p[0]);
}

Test(hold, no_copy_in_a_forks_child)
{
	int p[2], copy;

	make_pipe(p);
	struct fz_hold hold = FZ_HOLD_INIT(p[0]);

	copy = close_under(&hold);
	fz_hold_after_fork();
	fz_own_fd_after_fork();
	cr_assert_not(is_open(copy));
	/* What has its number now is not closed by who comes back to the call. */
	cr_assert_eq(dup2(p[1], copy), copy);
	fz_hold_release(&hold);
	cr_assert(is_open(copy));
}

/* Each of several has its own. */
Test(hold, several_and_bad_numbers)
{
	int p[2];

	make_pipe(p);
	struct fz_hold a = FZ_HOLD_INIT(p[0]), b = FZ_HOLD_INIT(p[0]), bad = FZ_HOLD_INIT(-1),
		       closed = FZ_HOLD_INIT(900);

	fz_hold_begin(&a, nobody, false);
	fz_hold_begin(&b, nobody, false);
	fz_hold_begin(&bad, nobody, false);
	fz_hold_begin(&closed, nobody, false);
	fz_hold_closing(p[0]);
	fz_hold_closing(-1);
	fz_hold_closing(900);
	fz_hold_end(&b, true);
	fz_hold_end(&a, true);
	fz_hold_end(&bad, true);
	fz_hold_end(&closed, true);
	cr_assert(is_open(a.copy));
	cr_assert(is_open(b.copy));
	cr_assert_neq(a.copy, b.copy);
	cr_assert_eq(fz_hold_fd(&bad), -1);
	cr_assert_eq(fz_hold_fd(&closed), 900);
	fz_hold_release(&a);
	cr_assert(is_open(b.copy));
	fz_hold_release(&b);
}

Test(hold, next_in_order)
{
	struct fz_hold low = FZ_HOLD_INIT(7), high = FZ_HOLD_INIT(7 + 256);

	cr_assert_eq(fz_hold_next(0), UINT_MAX);
	fz_hold_begin(&high, nobody, false);
	fz_hold_begin(&low, nobody, false);
	cr_assert_eq(fz_hold_next(0), 7);
	cr_assert_eq(fz_hold_next(7), 7);
	cr_assert_eq(fz_hold_next(8), 7 + 256);
	cr_assert_eq(fz_hold_next(264), UINT_MAX);
	fz_hold_after_fork();
	cr_assert_eq(fz_hold_next(0), UINT_MAX);
}
