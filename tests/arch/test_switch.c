/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/test_switch.c - contexts on one kernel thread: what a switch
 * keeps, and how a context begins.
 */
#define _GNU_SOURCE
#include "pair.h"

static void other_registers(void *arg)
{
	pair.wrong |= arg != &pair;
	for (;;) {
		pattern_fill(other_pattern, ~pair.count);
		pair.wrong |= probe_call((void *)pair.fn, &pair.sp, pair.test_sp,
					 pair.tcb, other_pattern);
	}
}

TEST(callee_saved_registers_are_kept)
{
	for (unsigned v = 0; v < probe_variant_count(); v++) {
		unsigned long wrong = 0;

		pair_begin(probe_variants[v].fn, other_registers);
		for (; pair.count < 1000; pair.count++) {
			pattern_fill(test_pattern, pair.count);
			wrong |= probe_call((void *)pair.fn, &pair.test_sp,
					    pair.sp, pair.tcb, test_pattern);
		}
		CHECK(wrong == 0, "%s: test lost registers %#lx",
		      probe_variants[v].name, wrong);
		CHECK(pair.wrong == 0, "%s: context lost registers %#lx",
		      probe_variants[v].name, pair.wrong);
	}
}

static bool fenv_is(const struct probe_fenv *want)
{
	struct probe_fenv now = probe_fenv_read();

	return memcmp(&now, want, sizeof(now)) == 0;
}

static void other_fenv(void *arg)
{
	(void)arg;
	pair.wrong |= !fenv_is(&probe_fenv_c);
	for (;;) {
		probe_fenv_write(probe_fenv_b);
		probe_fenv_use();
		to_test();
		probe_fenv_use();
		pair.wrong |= (unsigned long)!fenv_is(&probe_fenv_b) << 1;
	}
}

TEST(floating_point_environment_is_per_context)
{
	const struct probe_fenv before = probe_fenv_read();

	for (unsigned v = 0; v < probe_variant_count(); v++) {
		unsigned lost = 0;

		/* Made under c, entered under a: it must begin with c. */
		probe_fenv_write(probe_fenv_c);
		pair_begin(probe_variants[v].fn, other_fenv);
		for (unsigned i = 0; i < 100; i++) {
			probe_fenv_write(i % 2 ? probe_fenv_c : probe_fenv_a);
			to_other();
			probe_fenv_use();
			lost += !fenv_is(i % 2 ? &probe_fenv_c : &probe_fenv_a);
		}
		probe_fenv_write(before);
		CHECK(lost == 0, "%s: test lost it %u times",
		      probe_variants[v].name, lost);
		CHECK(pair.wrong == 0, "%s: context found it wrong: %#lx",
		      probe_variants[v].name, pair.wrong);
	}
}

static void other_inherits(void *arg)
{
	(void)arg;
	probe_fenv_write(probe_fenv_a);
	to_test();
	pair.wrong = !fenv_is(&probe_fenv_b);
	to_test();
}

TEST(saved_frame_can_inherit_the_environment)
{
	const struct probe_fenv before = probe_fenv_read();

	pair_begin(probe_variants[0].fn, other_inherits);
	to_other();
	probe_fenv_write(probe_fenv_b);
	fz_frame_inherit(pair.sp);
	probe_fenv_write(before);
	to_other();
	CHECK(pair.wrong == 0, "the frame kept its old environment");
	CHECK(fenv_is(&before), "the test lost its own");
}

static struct {
	uintptr_t sp;		/* probe_entry writes it */
	void (*next)(void *);	/* probe_entry goes on there */
} entry;

static void other_entered(void *arg)
{
	pair.wrong = arg != &entry;
	pair.count++;
	to_test();
}

TEST(first_frame_fits_and_is_aligned)
{
	for (unsigned v = 0; v < probe_variant_count(); v++) {
		for (unsigned off = 0; off < 64; off++) {
			char *top = stack + STACK_SIZE - 128 + off;
			unsigned above = 0;

			pair_begin(probe_variants[v].fn, other_entered);
			memset(stack + STACK_SIZE - 1024, 0xa5, 1024);
			entry.next = other_entered;
			pair.sp = fz_frame_make(top, probe_entry, &entry);
			CHECK((char *)pair.sp >= top - FZ_FRAME_ROOM,
			      "top +%u: uses too much", off);
			CHECK((uintptr_t)pair.sp % 8 == 0, "top +%u: odd sp", off);
			to_other();
			CHECK(pair.count == 1 && !pair.wrong,
			      "top +%u: fn did not get its argument", off);
			CHECK(entry.sp % 16 == PROBE_ENTRY_SP_MOD,
			      "top +%u: entered with sp %#lx", off,
			      (unsigned long)entry.sp);
			CHECK((char *)entry.sp < top &&
			      (char *)entry.sp >= top - FZ_FRAME_ROOM,
			      "top +%u: sp out of place", off);
			for (char *p = top; p < stack + STACK_SIZE; p++)
				above += *p != (char)0xa5;
			CHECK(above == 0, "top +%u: wrote above it", off);
		}
	}
}

static void other_counts(void *arg)
{
	uint64_t mine = 0;

	(void)arg;
	for (;;) {
		mine++;
		pair.wrong |= mine != pair.count;
		to_test();
	}
}

TEST(ten_million_switches)
{
	for (unsigned v = 0; v < probe_variant_count(); v++) {
		uint64_t mine = 0;

		pair_begin(probe_variants[v].fn, other_counts);
		while (mine < 5000000) {
			pair.count = ++mine;
			to_other();
		}
		CHECK(pair.wrong == 0 && pair.count == 5000000,
		      "%s: the contexts' counts disagree",
		      probe_variants[v].name);
		CHECK(fz_tcb_get() == pair.tcb, "%s: thread pointer changed",
		      probe_variants[v].name);
	}
}

/* Many contexts that hand on to each other without coming back in between. */
enum { RING_SIZE = 64, RING_STACK = 4096, RING_ROUNDS = 1000 };

static struct {
	void *sp[RING_SIZE];
	unsigned next, rounds, disorder;
} ring;

static void ring_member(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (;;) {
		ring.disorder += ring.next != me;
		ring.next = (me + 1) % RING_SIZE;
		if (ring.next == 0 && ++ring.rounds == RING_ROUNDS)
			pair.fn(&ring.sp[me], pair.test_sp, pair.tcb);
		pair.fn(&ring.sp[me], ring.sp[ring.next], pair.tcb);
	}
}

TEST(symmetric_switches_among_many)
{
	for (unsigned v = 0; v < probe_variant_count(); v++) {
		pair_begin(probe_variants[v].fn, other_counts);
		memset(&ring, 0, sizeof(ring));
		for (unsigned i = 0; i < RING_SIZE; i++)
			ring.sp[i] = fz_frame_make(stack + (i + 1) * RING_STACK,
						   ring_member,
						   (void *)(uintptr_t)i);
		pair.fn(&pair.test_sp, ring.sp[0], pair.tcb);
		CHECK(ring.rounds == RING_ROUNDS && ring.disorder == 0,
		      "%s: %u rounds, %u out of order", probe_variants[v].name,
		      ring.rounds, ring.disorder);
	}
}
