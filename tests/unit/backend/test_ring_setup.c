/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ring_fixture.h"

static int ring_fd(void)
{
	return GET(ring.fd);
}

static void works(void)
{
	struct waiter w = { .fiber.thread.tid = 0 };
	bool kicked = false;

	start_nop(&w);
	fz_ring_submit(&ring);
	kick();
	fz_ring_wait(&ring, fz_ring_publish(&ring), now_ns() + 5 * FZ_SEC);
	fz_ring_poll(&ring);
	fz_ring_reap(&ring, UINT32_MAX, &kicked);
	cr_assert(done(&w));
	cr_assert(kicked);
}

Test(ring_setup, descriptors_are_high_and_close_on_exec)
{
	struct rlimit limit, after;
	int fd;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max > 4096)
		limit.rlim_cur = 1024;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	init();
	fd = ring_fd();
	cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	if (limit.rlim_max > 4096)
		cr_assert_geq(fd, 1024);
	else
		cr_assert_geq(fd, (int)limit.rlim_cur - 64);
	getrlimit(RLIMIT_NOFILE, &after);
	cr_assert_eq(after.rlim_cur, limit.rlim_cur);
	cr_assert_eq(after.rlim_max, limit.rlim_max);
	works();
}

Test(ring_setup, hard_limit_leaves_no_room_above)
{
	struct rlimit limit = { 256, 256 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	init();
	cr_assert(ring_fd() >= 192 && ring_fd() < 256);
	works();
}

Test(ring_setup, tiny_limit)
{
	struct rlimit limit = { 32, 32 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	init();
	works();
}

Test(ring_setup, makes_way_for_the_program)
{
	int old;

	init();
	old = ring_fd();
	cr_assert_eq(fz_ring_vacate_fd(&ring, 0), 0);
	cr_assert_eq(ring_fd(), old);
	cr_assert_eq(fz_ring_vacate_fd(&ring, old), 0);
	cr_assert_neq(ring_fd(), old);
	cr_assert_eq(dup2(2, old), old);
	cr_assert_eq(fcntl(ring_fd(), F_GETFD), FD_CLOEXEC);
	works();
}

Test(ring_setup, init_fails_cleanly_without_descriptors)
{
	int before = dup(0), after;
	struct rlimit limit;
	const char *why = NULL;

	close(before);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)before;
	setrlimit(RLIMIT_NOFILE, &limit);
	cr_assert_eq(fz_ring_init(&ring, &why), -EMFILE);
	cr_assert_not_null(why);
	limit.rlim_cur++;
	setrlimit(RLIMIT_NOFILE, &limit);
	after = dup(0);
	cr_assert_eq(after, before, "a descriptor leaked");
}
