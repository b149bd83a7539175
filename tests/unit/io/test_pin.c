/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "no_numbers.h"
#include "runtime/io/pin.h"
#include "runtime/backend/kept_fd.h"
#include "runtime/backend/own_fd.h"
#include "runtime/sched/own_fds.h"

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
static int close_under(struct fz_pin *pin)
{
	fz_pin_begin(pin, nobody, false);
	fz_pin_closing(pin->number);
	cr_assert(is_open(pin->copy));
	return pin->copy;
}

static void cr_same_file(int a, int b)
{
	struct stat x, y;

	cr_assert_eq(fstat(a, &x), 0);
	cr_assert_eq(fstat(b, &y), 0);
	cr_assert_eq(x.st_ino, y.st_ino);
}

Test(pin, number_while_open)
{
	struct fz_pin pin = FZ_PIN_INIT(0);

	cr_assert_eq(fz_pin_fd(&pin), 0);
	fz_pin_begin(&pin, nobody, false);
	cr_assert(fz_pin_is_pinned(0));
	fz_pin_end(&pin, FZ_WHY_DONE);
	cr_assert_not(fz_pin_is_pinned(0));
	fz_pin_closing(0);
	cr_assert_eq(fz_pin_fd(&pin), 0);
	fz_pin_release(&pin);
	cr_assert(is_open(0));
}

Test(pin, copy_when_closed)
{
	int p[2], copy;

	make_pipe(p);
	struct fz_pin pin = FZ_PIN_INIT(p[0]), other = FZ_PIN_INIT(p[1]);

	fz_pin_begin(&pin, nobody, false);
	fz_pin_begin(&other, nobody, false);
	fz_pin_closing(p[0]);
	fz_pin_end(&pin, FZ_WHY_DONE);
	fz_pin_end(&other, FZ_WHY_DONE);
	copy = fz_pin_fd(&pin);
	cr_assert_neq(copy, p[0]);
	cr_same_file(copy, p[0]);
	cr_assert_eq(fcntl(copy, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(fz_pin_fd(&other), p[1]);
	/* The number is somebody else's from now on. */
	fz_pin_begin(&pin, nobody, false);
	fz_pin_closing(p[0]);
	fz_pin_end(&pin, FZ_WHY_DONE);
	cr_assert_eq(fz_pin_fd(&pin), copy);
	fz_pin_release(&pin);
	cr_assert_not(is_open(copy));
	cr_assert_eq(fz_pin_fd(&pin), p[0]);
}

Test(pin, copy_is_dropped)
{
	int p[2], copy;

	make_pipe(p);
	struct fz_pin pin = FZ_PIN_INIT(p[0]);

	copy = close_under(&pin);
	cr_assert(fz_sched_owns_fd(copy));
	cr_assert_eq(fz_kept_fd_next(0), (unsigned)copy);
	cr_assert_eq(fz_kept_fd_next((unsigned)copy), (unsigned)copy);
	cr_assert_eq(fz_kept_fd_next((unsigned)copy + 1), UINT_MAX);
	cr_assert_lt(fz_sched_vacate_fd(copy), 0);
	/* A limit of the library's own has ended the wait: the call goes on with its file. */
	fz_pin_end(&pin, FZ_WHY_TIMEOUT);
	cr_assert_eq(fz_pin_fd(&pin), copy);
	cr_assert(is_open(copy));
	/* A signal without a handler that is about to run leaves the file, too. */
	fz_pin_end(&pin, FZ_WHY_SIGNAL);
	cr_assert(is_open(copy));
	fz_pin_end(&pin, FZ_WHY_CANCEL);
	cr_assert_not(is_open(copy));
	cr_assert_eq(fz_pin_fd(&pin), p[0]);
}

Test(pin, no_copy_in_a_forks_child)
{
	int p[2], copy;

	make_pipe(p);
	struct fz_pin pin = FZ_PIN_INIT(p[0]);

	copy = close_under(&pin);
	fz_pin_after_fork();
	fz_kept_fd_after_fork();
	cr_assert_not(is_open(copy));
	/* What has its number now is not closed by who comes back to the call. */
	cr_assert_eq(dup2(p[1], copy), copy);
	fz_pin_release(&pin);
	cr_assert(is_open(copy));
}

/* Each of several has its own. */
Test(pin, several_and_bad_numbers)
{
	int p[2];

	make_pipe(p);
	struct fz_pin a = FZ_PIN_INIT(p[0]), b = FZ_PIN_INIT(p[0]), bad = FZ_PIN_INIT(-1),
		       closed = FZ_PIN_INIT(900);

	fz_pin_begin(&a, nobody, false);
	fz_pin_begin(&b, nobody, false);
	fz_pin_begin(&bad, nobody, false);
	fz_pin_begin(&closed, nobody, false);
	fz_pin_closing(p[0]);
	fz_pin_closing(-1);
	fz_pin_closing(900);
	fz_pin_end(&b, FZ_WHY_DONE);
	fz_pin_end(&a, FZ_WHY_DONE);
	fz_pin_end(&bad, FZ_WHY_DONE);
	fz_pin_end(&closed, FZ_WHY_DONE);
	cr_assert(is_open(a.copy));
	cr_assert(is_open(b.copy));
	cr_assert_neq(a.copy, b.copy);
	cr_assert_eq(fz_pin_fd(&bad), -1);
	/* It has had no file, and must not find the next one that gets the number. */
	cr_assert_eq(fz_pin_fd(&closed), FZ_PIN_CLOSED);
	fz_pin_release(&a);
	cr_assert(is_open(b.copy));
	fz_pin_release(&b);
}

/* Without a number for a copy, the call must not go on with another file that gets its number. */
Test(pin, no_number_for_a_copy)
{
	int p[2], lowest;

	make_pipe(p);
	struct fz_pin pin = FZ_PIN_INIT(p[0]);

	fz_pin_begin(&pin, nobody, false);
	lowest = take_numbers();
	fz_pin_closing(p[0]);
	give_numbers_back(lowest);
	fz_pin_end(&pin, FZ_WHY_DONE);
	cr_assert_eq(fcntl(fz_pin_fd(&pin), F_GETFD), -1);
	/* A call that waits again has no more to lose. */
	fz_pin_begin(&pin, nobody, false);
	cr_assert_not(fz_pin_is_pinned(p[0]));
	fz_pin_end(&pin, FZ_WHY_CANCEL);
	cr_assert_eq(fz_pin_fd(&pin), p[0]);
}

Test(pin, next_in_order)
{
	struct fz_pin low = FZ_PIN_INIT(7), high = FZ_PIN_INIT(7 + 256);

	cr_assert_eq(fz_pin_next(0), UINT_MAX);
	fz_pin_begin(&high, nobody, false);
	fz_pin_begin(&low, nobody, false);
	cr_assert_eq(fz_pin_next(0), 7);
	cr_assert_eq(fz_pin_next(7), 7);
	cr_assert_eq(fz_pin_next(8), 7 + 256);
	cr_assert_eq(fz_pin_next(264), UINT_MAX);
	fz_pin_after_fork();
	cr_assert_eq(fz_pin_next(0), UINT_MAX);
}
