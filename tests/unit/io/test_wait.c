/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sys/socket.h>

#include "connection.h"
#include "runtime/io/io.h"
#include "runtime_setup.h"

static _Atomic unsigned turns;
static _Atomic bool over;

static void *take_turns(void *arg)
{
	while (!GET(over)) {
		COUNT(turns);
		yield_fiber();
	}
	return arg;
}

/* Receives that never wait, until the other fiber of the only processor has had a turn. */
static unsigned receive_until_its_turn(int fd, int flags)
{
	const unsigned before = GET(turns);
	unsigned n = 0;
	char c;

	while (GET(turns) == before && n < 1000000) {
		n++;
		if (fz_io_recv(fz_self(), fd, &c, 1, flags) != 1)
			return 0;
	}
	return n;
}

Test(yield_sometimes, receives_that_do_not_wait_let_others_run)
{
	const int flags[] = { MSG_PEEK | MSG_DONTWAIT, MSG_PEEK };
	const unsigned most = 64;
	struct fz_fiber *f;
	unsigned n;
	int s[2];

	setup_start(1);
	connect_ends(s);
	cr_assert_eq(send(s[1], "x", 1, 0), 1);
	f = spawn(take_turns, NULL);
	cr_assert(EVENTUALLY(GET(turns)));
	for (unsigned i = 0; i < 100; i++) {
		n = receive_until_its_turn(s[0], flags[i % 2]);
		cr_assert_gt(n, 0);
		cr_assert_leq(n, most, "%u receives before the other fiber ran", n);
	}
	SET(over, true);
	join(f);
}
