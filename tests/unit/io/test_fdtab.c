/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/backend/filter.h"
#include "runtime/io/fdtab.h"
#include "runtime_setup.h"

static uint32_t kind(int fd)
{
	uint32_t info;

	cr_assert_eq(fz_fdtab_look_up(fd, &info), 0);
	return info & FZ_FD_KIND_MASK;
}

Test(fdtab, nothing_is_known_before_init)
{
	fz_fdtab_set(3, FZ_FD_SOCKET | FZ_FD_OURS);
	cr_assert_eq(fz_fdtab_get(3), FZ_FD_UNKNOWN);
	fz_fdtab_forget_range(0, UINT_MAX);
	fz_fdtab_share_all();
}

Test(fdtab, kinds)
{
	int p[2], s[2];
	uint32_t info = 77;

	fz_fdtab_init();
	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	cr_assert_eq(kind(p[0]), FZ_FD_PIPE);
	cr_assert_eq(kind(s[1]), FZ_FD_SOCKET);
	cr_assert_eq(kind(open("/proc/self/exe", O_RDONLY)), FZ_FD_FILE);
	cr_assert_eq(kind(open("/dev/null", O_RDONLY)), FZ_FD_OTHER);
	cr_assert_eq(kind(eventfd(0, 0)), FZ_FD_ANONYMOUS);
	close(s[1]);
	fz_fdtab_set(s[1], FZ_FD_UNKNOWN);
	cr_assert_eq(fz_fdtab_look_up(s[1], &info), -EBADF);
	cr_assert_eq(fz_fdtab_look_up(-1, &info), -EBADF);
	cr_assert_eq(fz_fdtab_look_up(INT_MAX, &info), -EBADF);
	cr_assert_eq(info, 77);
}

Test(fdtab, out_of_range_is_unknown)
{
	fz_fdtab_init();
	for (int i = 0; i < 2; i++) {
		const int fds[] = { -1, INT_MIN, INT_MAX, 1 << 20 };

		for (int n = 0; n < 4; n++) {
			fz_fdtab_set(fds[n], FZ_FD_SOCKET);
			fz_fdtab_change(fds[n], 0, FZ_FD_OURS);
			fz_fdtab_share(fds[n]);
			cr_assert_eq(fz_fdtab_get(fds[n]), 0);
		}
	}
	fz_fdtab_set((1 << 20) - 1, FZ_FD_SOCKET);
	cr_assert_eq(fz_fdtab_get((1 << 20) - 1), FZ_FD_SOCKET);
}

Test(fdtab, change_needs_a_kind)
{
	fz_fdtab_init();
	fz_fdtab_change(9, 0, FZ_FD_OURS | FZ_FD_NONBLOCK);
	cr_assert_eq(fz_fdtab_get(9), 0);
	fz_fdtab_set(9, FZ_FD_PIPE | FZ_FD_OURS);
	fz_fdtab_change(9, FZ_FD_OURS, FZ_FD_RECV_WAITED);
	cr_assert_eq(fz_fdtab_get(9), FZ_FD_PIPE | FZ_FD_RECV_WAITED);
}

Test(fdtab, nonblocking_is_asked_for_unless_ours)
{
	int p[2];
	uint32_t info;

	fz_fdtab_init();
	cr_assert_eq(pipe(p), 0);
	fz_fdtab_look_up(p[0], &info);
	cr_assert_eq(fz_fdtab_nonblocking(p[0], info), 0);
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	cr_assert_eq(fz_fdtab_nonblocking(p[0], info), 1);
	/* OURS: what was noted counts. */
	fz_fdtab_set(p[0], FZ_FD_PIPE | FZ_FD_OURS);
	cr_assert_eq(fz_fdtab_nonblocking(p[0], FZ_FD_PIPE | FZ_FD_OURS), 0);
	cr_assert_eq(fz_fdtab_nonblocking(p[0], FZ_FD_PIPE | FZ_FD_OURS | FZ_FD_NONBLOCK), 1);
	fz_fdtab_share(p[0]);
	cr_assert_eq(fz_fdtab_nonblocking(p[0], fz_fdtab_get(p[0])), 1);
	close(p[0]);
	cr_assert_eq(fz_fdtab_nonblocking(p[0], FZ_FD_PIPE), -EBADF);
}

Test(fdtab, ranges)
{
	fz_fdtab_init();
	for (int fd = 0; fd < 100; fd++)
		fz_fdtab_set(fd, FZ_FD_SOCKET | FZ_FD_OURS);
	fz_fdtab_forget_range(10, 19);
	for (int fd = 0; fd < 100; fd++)
		cr_assert_eq(fz_fdtab_get(fd) == 0, fd >= 10 && fd <= 19);
	fz_fdtab_forget_range(50, 40);
	cr_assert_neq(fz_fdtab_get(45), 0);
	fz_fdtab_share_all();
	cr_assert_eq(fz_fdtab_get(99), FZ_FD_SOCKET);
	fz_fdtab_forget_range(3, UINT_MAX);
	cr_assert_eq(fz_fdtab_get(2), FZ_FD_SOCKET);
	for (int fd = 3; fd < 100; fd++)
		cr_assert_eq(fz_fdtab_get(fd), 0);
}

Test(fdtab, name_changes_with_the_open_file)
{
	const unsigned before_it_repeats = 2047;
	uint32_t name, info;
	int p[2];

	cr_assert_eq(fz_fdtab_name(3), 0);
	fz_fdtab_init();
	cr_assert_eq(pipe(p), 0);
	fz_fdtab_look_up(p[0], &info);
	name = fz_fdtab_name(p[0]);
	cr_assert_eq(name & ~FZ_FD_CHANGES, (uint32_t)p[0] + 1);
	cr_assert_neq(fz_fdtab_name(p[1]), name);
	/* What is remembered of it does not matter. */
	fz_fdtab_change(p[0], 0, FZ_FD_RECV_WAITED | FZ_FD_OURS);
	fz_fdtab_share(p[0]);
	cr_assert_eq(fz_fdtab_name(p[0]), name);
	for (unsigned i = 0; i < before_it_repeats; i++) {
		fz_fdtab_set(p[0], i % 2 ? FZ_FD_PIPE : FZ_FD_SOCKET);
		cr_assert_neq(fz_fdtab_name(p[0]), name);
	}
	/* Neither does a look show the count, nor a number beyond the table. */
	cr_assert_eq(fz_fdtab_get(p[0]), FZ_FD_SOCKET);
	fz_fdtab_look_up(p[0], &info);
	cr_assert_eq(info, FZ_FD_SOCKET);
	cr_assert_eq(fz_fdtab_name(-1), 0);
	cr_assert_eq(fz_fdtab_name(1 << 20), 0);
}

/* A wait that begins now, as far as the library remembers. */
static uint32_t wait_on(int fd)
{
	return fz_fdtab_wait(fd, fz_fdtab_rests(fz_fdtab_rest(fd)));
}

static bool is_wrong(int fd)
{
	const uint32_t wait = wait_on(fd);

	return wait && fz_fdtab_is_wrong(wait);
}

enum { SHARE, SHARE_ALL, CHANGE_NONBLOCK, SET_TIMEOUT, WAYS };

static void take_back(int fd, int way)
{
	switch (way) {
	case SHARE: fz_fdtab_share(fd); break;
	case SHARE_ALL: fz_fdtab_share_all(); break;
	case CHANGE_NONBLOCK: fz_fdtab_nonblocking_begins(fd); break;
	default: fz_fdtab_timeout_begins(fd);
	}
}

/* What is wrong when a hint is taken back was wrong when the call began; what comes later is not. */
Test(fdtab, waits_and_hints_that_are_taken_back)
{
	const struct timeval tv = { .tv_sec = 2 };

	fz_fdtab_init();
	for (int way = 0; way < WAYS; way++)
		for (int before = 0; before < 2; before++) {
			uint32_t first, second;
			int s[2];

			cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
			fz_fdtab_set(s[0], FZ_FD_SOCKET | FZ_FD_OURS);
			first = wait_on(s[0]);
			cr_assert(first);
			for (int set = 0; set < 2; set++) {
				if (set != before)
					take_back(s[0], way);
				else if (way == SET_TIMEOUT)
					setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
				else
					fcntl(s[0], F_SETFL, O_NONBLOCK);
			}
			second = wait_on(s[0]);
			cr_assert_eq(fz_fdtab_is_wrong(first), !before);
			cr_assert(!second || !fz_fdtab_is_wrong(second));
			close(s[0]);
			close(s[1]);
		}
}

/* Bits of a file that has the number now have nothing to say about a call that waits on what had it before. */
Test(fdtab, wait_whose_number_is_a_file)
{
	const uint32_t bits = FZ_FD_RING_REFUSED | FZ_FD_SYNC | FZ_FD_APPEND;
	uint32_t wait;
	int s[2];

	fz_fdtab_init();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	fz_fdtab_set(s[0], FZ_FD_SOCKET | FZ_FD_OURS);
	wait = wait_on(s[0]);
	cr_assert(wait);
	fz_fdtab_set(s[0], FZ_FD_FILE | bits);
	cr_assert_eq(fz_fdtab_found_wrong(wait), 0);
	cr_assert(!fz_fdtab_is_wrong(wait));
	close(s[0]);
	close(s[1]);
}

/*
 * What is found out about sockets between the begin and the end of a setsockopt() does not hide the timeout.  But of waits
 * that began meanwhile nobody asks then: the kernel would tell what has just been set.
 */
Test(fdtab, timeout_that_is_being_set)
{
	const struct timeval tv = { .tv_sec = 2 };
	const uint32_t both = FZ_FD_TIMEOUTS;

	fz_fdtab_init();
	for (int by_duplicate = 0; by_duplicate < 2; by_duplicate++) {
		uint32_t info, wait;
		int s[2], fd;

		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
		fd = by_duplicate ? dup(s[0]) : s[0];
		fz_fdtab_timeout_begins(fd);
		fz_fdtab_look_up(s[0], &info);
		cr_assert_eq(info & both, 0);
		wait = wait_on(s[0]);
		cr_assert(wait);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
		fz_fdtab_timeout_set(fd, false);
		cr_assert_eq(fz_fdtab_get(s[0]) & both, both);
		cr_assert(!fz_fdtab_is_wrong(wait));
		cr_assert_neq(fz_fdtab_deadline(s[0], fz_fdtab_get(s[0]), false), FZ_FOREVER);
		if (by_duplicate)
			close(fd);
		fz_fdtab_set(s[0], FZ_FD_UNKNOWN);
		close(s[0]);
		close(s[1]);
	}
}

/* A timeout on a descriptor of which a filter forbids to ask what it is; and on one that is known to be no socket. */
Test(fdtab, timeout_on_what_may_be_a_socket)
{
	const uint32_t both = FZ_FD_TIMEOUTS;
	int s[2], duplicate;
	uint32_t info;

	fz_fdtab_init();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	duplicate = dup(s[0]);
	fz_fdtab_look_up(duplicate, &info);
	fz_fdtab_set(s[0], FZ_FD_OTHER);
	fz_fdtab_timeout_begins(s[0]);
	cr_assert_eq(fz_fdtab_get(duplicate) & both, 0);
	fz_fdtab_set(s[0], FZ_FD_OTHER | FZ_FD_UNASKED);
	fz_fdtab_timeout_begins(s[0]);
	cr_assert_eq(fz_fdtab_get(duplicate) & both, both);
}

/* Nobody asks where the program has a filter, which may end the process for that. */
Test(fdtab, waits_beside_a_filter_of_the_programs)
{
	const struct timeval tv = { .tv_sec = 2 };
	const uint32_t both = FZ_FD_TIMEOUTS;
	int s[2], duplicate;
	uint32_t wait, info;

	fz_fdtab_init();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	duplicate = dup(s[1]);
	fz_fdtab_look_up(duplicate, &info);
	fz_fdtab_set(s[0], FZ_FD_SOCKET | FZ_FD_OURS);
	wait = wait_on(s[0]);
	cr_assert(wait);
	fcntl(s[0], F_SETFL, O_NONBLOCK);
	setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	fz_filter_changed();
	cr_assert(!fz_fdtab_is_wrong(wait));
	fz_fdtab_share(s[0]);
	cr_assert_eq(fz_fdtab_found_wrong(wait), 0);
	/* Of whatever may be a socket, all that may be duplicates are noted. */
	fz_fdtab_timeout_begins(s[1]);
	cr_assert_eq(fz_fdtab_get(duplicate) & both, both);
}

/* A call that began with another open file under the number rests on nothing that is found out about this one. */
Test(fdtab, waits_on_a_number_that_is_used_again)
{
	uint32_t first, second;
	int s[2];

	fz_fdtab_init();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	fz_fdtab_set(s[0], FZ_FD_SOCKET | FZ_FD_OURS);
	first = wait_on(s[0]);
	fz_fdtab_set(s[0], FZ_FD_SOCKET | FZ_FD_OURS);
	second = wait_on(s[0]);
	fcntl(s[0], F_SETFL, O_NONBLOCK);
	cr_assert_eq(fz_fdtab_found_wrong(second), 0);
	cr_assert(fz_fdtab_is_wrong(second));
	cr_assert_eq(fz_fdtab_found_wrong(second), FZ_FD_WAS_NONBLOCK);
	cr_assert_eq(fz_fdtab_found_wrong(first), 0);
	cr_assert(!fz_fdtab_is_wrong(first));
	close(s[0]);
	close(s[1]);
}

Test(fdtab, timeouts)
{
	const struct timeval tv = { .tv_sec = 2, .tv_usec = 500000 };
	const uint32_t both = FZ_FD_TIMEOUTS;
	int s[2], duplicate;
	uint32_t info;
	fz_nsec before, d;

	fz_fdtab_init();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	fz_fdtab_look_up(s[0], &info);
	cr_assert_eq(info, FZ_FD_SOCKET | FZ_FD_STREAM | FZ_FD_UNIX);
	cr_assert_eq(fz_fdtab_deadline(s[0], info, false), FZ_FOREVER);
	duplicate = dup(s[0]);
	fz_fdtab_look_up(duplicate, &info);
	fz_fdtab_timeout_begins(s[0]);
	setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	fz_fdtab_timeout_set(s[0], false);
	/* The duplicate has it as well; what is only ours has not. */
	cr_assert_eq(fz_fdtab_get(duplicate) & both, both);
	before = now_ns();
	d = fz_fdtab_deadline(duplicate, fz_fdtab_get(duplicate), false);
	cr_assert_geq(d, before + 2500 * FZ_MSEC);
	cr_assert_leq(d, now_ns() + 2500 * FZ_MSEC);
	cr_assert_eq(fz_fdtab_deadline(duplicate, fz_fdtab_get(duplicate), true), FZ_FOREVER);
	/* Unknown until now: the kernel knows. */
	fz_fdtab_set(s[0], FZ_FD_UNKNOWN);
	fz_fdtab_look_up(s[0], &info);
	cr_assert_eq(info, FZ_FD_SOCKET | FZ_FD_STREAM | FZ_FD_UNIX | FZ_FD_RECV_TIMEOUT);
	close(s[0]);
	close(s[1]);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	fz_fdtab_set(s[0], FZ_FD_UNKNOWN);
	fz_fdtab_look_up(s[0], &info);
	cr_assert_eq(info, FZ_FD_SOCKET | FZ_FD_UNIX);
	/* Set by somebody whom the library does not see. */
	cr_assert(!is_wrong(s[0]));
	setsockopt(s[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	cr_assert(is_wrong(s[0]));
	cr_assert_eq(fz_fdtab_get(s[0]) & both, both);
	cr_assert(!is_wrong(s[0]));
	fz_fdtab_set(s[1], FZ_FD_SOCKET | FZ_FD_OURS);
	cr_assert(!is_wrong(s[1]));
	fcntl(s[1], F_SETFL, O_NONBLOCK);
	cr_assert(is_wrong(s[1]));
	cr_assert_eq(fz_fdtab_nonblocking(s[1], fz_fdtab_get(s[1])), 1);
	/* The kernel reports a negative timeout as none. */
	cr_assert_eq(fz_fdtab_deadline(s[0], fz_fdtab_get(s[0]), false), FZ_FOREVER);
	fz_fdtab_timeout_set(s[0], true);
	cr_assert_eq(fz_fdtab_deadline(s[0], fz_fdtab_get(s[0]), false), FZ_FD_ASK_KERNEL);
}

/*
 * A remark about a descriptor (fz_fdtab_change) must not undo what another
 * thread has set meanwhile because the number is another file now.
 */
static _Atomic bool over;

static void *remark(void *arg)
{
	(void)arg;
	while (!GET(over)) {
		fz_fdtab_change(5, 0, FZ_FD_RECV_WAITED);
		fz_fdtab_change(5, FZ_FD_RECV_WAITED, 0);
	}
	return NULL;
}

Test(fdtab, remark_does_not_undo_a_reopening)
{
	const uint32_t old = FZ_FD_SOCKET | FZ_FD_OURS;
	const uint32_t new = FZ_FD_PIPE | FZ_FD_OURS | FZ_FD_NONBLOCK;
	unsigned undone = 0;
	pthread_t t;

	fz_fdtab_init();
	fz_fdtab_set(5, old);
	t = native(remark, NULL);
	for (unsigned i = 0; i < 3000000 && !undone; i++) {
		uint32_t set = i % 2 ? new : old;

		fz_fdtab_set(5, set);
		for (int look = 0; look < 5; look++)
			undone += (fz_fdtab_get(5) & ~(uint32_t)FZ_FD_RECV_WAITED) != set;
	}
	SET(over, true);
	pthread_join(t, NULL);
	cr_assert_eq(undone, 0, "a stale remark made the new file the old one again");
}
