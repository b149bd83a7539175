/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
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

/* A message that comes back, until the other fiber has had a turn.  Returns how often that was. */
static unsigned exchange_until_its_turn(const int s[2])
{
	const unsigned before = GET(turns), most = 1000;
	unsigned n = 0;
	char c = 0;

	while (GET(turns) == before && n < most) {
		const fz_nsec begin = now_ns();

		n++;
		cr_assert_eq(fz_io_send(fz_self(), s[1], &c, 1, 0), 1);
		cr_assert_eq(fz_io_recv(fz_self(), s[0], &c, 1, MSG_DONTWAIT), 1);
		/* A turn of its own lasts 50 us at least. */
		while (now_ns() < begin + 10 * FZ_USEC)
			continue;
	}
	return n;
}

/* Sends are counted, too: whether the receives have the even numbers or the odd ones makes no difference. */
Test(yield_sometimes, as_often_whichever_numbers_receives_have)
{
	/* Other threads of the machine may end a turn early, so the longest ones are compared. */
	unsigned longest[2] = { 0 };
	struct fz_fiber *f;
	char c = 0;
	int s[2];

	setup_start(1);
	connect_ends(s);
	f = spawn(take_turns, NULL);
	cr_assert(EVENTUALLY(GET(turns)));
	for (int odd = 0; odd < 2; odd++) {
		exchange_until_its_turn(s);
		for (int i = 0; i < 50; i++) {
			const unsigned n = exchange_until_its_turn(s);

			longest[odd] = n > longest[odd] ? n : longest[odd];
		}
		cr_assert_eq(fz_io_recv(fz_self(), s[0], &c, 1, MSG_DONTWAIT), -EAGAIN);
	}
	SET(over, true);
	join(f);
	cr_assert_lt(longest[0], 4 * longest[1], "%u and %u", longest[0], longest[1]);
	cr_assert_lt(longest[1], 4 * longest[0], "%u and %u", longest[0], longest[1]);
}
