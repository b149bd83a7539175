/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/test_switch.c - contexts on one kernel thread: what a switch
 * keeps, how a context begins, and how it unwinds.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <stdbool.h>
#include <string.h>
#include <unwind.h>

#include "tests/plain/harness.h"
#include "tests/arch/probe.h"

enum { STACK_SIZE = 256 * 1024 };

/* Two contexts: the test itself, and one with a stack of its own. */
static struct {
	fz_switch_fn *fn;
	void *sp;		/* of the other context, while it is parked */
	void *test_sp;		/* of the test, while the other one runs */
	uintptr_t tcb;
	unsigned long wrong;	/* what the other context has to complain of */
	uint64_t count;
} pair;

static char stack[STACK_SIZE] __attribute__((aligned(64)));

static void pair_begin(fz_switch_fn *fn, void (*other)(void *))
{
	memset(&pair, 0, sizeof(pair));
	pair.fn = fn;
	pair.tcb = fz_tcb_get();
	pair.sp = fz_frame_make(stack + STACK_SIZE, other, &pair);
}

/* What looks like a return address must not lure an unwinder on. */
static void plant_return_address(void)
{
	*(uintptr_t *)fz_frame_cfa(pair.sp) = (uintptr_t)pair_begin + 1;
}

static void to_other(void)
{
	pair.fn(&pair.test_sp, pair.sp, pair.tcb);
}

static void to_test(void)
{
	pair.fn(&pair.sp, pair.test_sp, pair.tcb);
}

static void pattern_fill(uint64_t pattern[PROBE_REGS], uint64_t seed)
{
	for (unsigned i = 0; i < PROBE_REGS; i++)
		pattern[i] = (seed + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t other_pattern[PROBE_REGS], test_pattern[PROBE_REGS];

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

/* What an unwinder saw.  Filled in contexts and handlers, judged by the test. */
static struct {
	unsigned frames;
	bool ended;		/* reached an end, not a limit or an error */
	void *outermost;	/* function of the last frame with an address */
	bool saw_park;
	int glibc_frames;
	void *glibc_last;
} trail;

/* The return address may be behind its function's last byte: look before it. */
static void *function_of(uintptr_t return_address)
{
	return _Unwind_FindEnclosingFunction((void *)return_address);
}

static __attribute__((noinline)) void park(void)
{
	to_test();
	__asm__ volatile("");	/* no tail call: park must have a frame */
}

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *c, void *arg)
{
	uintptr_t ip = _Unwind_GetIP(c);

	(void)arg;
	if (++trail.frames > 100)
		return _URC_NORMAL_STOP;
	if (ip)
		trail.outermost = function_of(ip);
	trail.saw_park |= ip && trail.outermost == (void *)park;
	return _URC_NO_REASON;
}

static void other_unwinds(void *arg)
{
	void *pcs[100];

	(void)arg;
	trail.ended = _Unwind_Backtrace(on_frame, NULL) == _URC_END_OF_STACK;
	trail.glibc_frames = backtrace(pcs, 100);
	for (int i = 0; i < trail.glibc_frames; i++)
		if (pcs[i])
			trail.glibc_last = function_of((uintptr_t)pcs[i]);
	park();
}

TEST(unwinding_ends_at_the_first_frame)
{
	memset(&trail, 0, sizeof(trail));
	pair_begin(probe_variants[0].fn, other_unwinds);
	plant_return_address();
	to_other();
	CHECK(trail.ended, "the unwinder did not find the end");
	CHECK(trail.outermost == (void *)fz_fiber_start,
	      "it ends in %p", trail.outermost);
	CHECK(trail.frames <= 4, "%u frames", trail.frames);
	CHECK(trail.glibc_frames >= 2 && trail.glibc_frames <= 4 &&
	      trail.glibc_last == (void *)fz_fiber_start,
	      "backtrace(): %d frames, the last in %p", trail.glibc_frames,
	      trail.glibc_last);
}

TEST(parked_context_can_be_walked)
{
	const uintptr_t *fp;
	void *last = NULL;
	unsigned n = 0;

	pair_begin(probe_variants[0].fn, other_unwinds);
	CHECK(function_of(fz_frame_pc(pair.sp)) == (void *)fz_fiber_start,
	      "a new context is in fz_fiber_start");
	CHECK(fz_frame_fp(pair.sp) == 0, "and has no frame pointer");

	to_other();
	/* The innermost C function: to_test, or park with it inlined. */
	last = function_of(fz_frame_pc(pair.sp));
	CHECK(last == (void *)park || last == (void *)to_test,
	      "parked in %p", last);
	CHECK(fz_frame_cfa(pair.sp) > (uintptr_t)pair.sp &&
	      fz_frame_cfa(pair.sp) <= fz_frame_fp(pair.sp),
	      "the caller's stack pointer lies between frame and frame pointer");
	for (fp = (void *)fz_frame_fp(pair.sp); fp && n < 100;
	     fp = (void *)fp[0]) {
		REQUIRE((char *)fp > stack && (char *)fp < stack + STACK_SIZE,
			"frame pointer %p is not in the stack",
			(const void *)fp);
		last = function_of(fp[1]);
		n++;
	}
	CHECK(fp == NULL && last == (void *)fz_fiber_start,
	      "the chain of %u frame pointers ends in %p", n, last);
}

/*
 * At every instruction of a switch, an unwinder must find the caller, the
 * caller's value of each callee-saved register, and the end of the stack.
 */
static struct {
	unsigned calls, no_caller, no_end, registers, moved;
	uintptr_t caller_sp[2];	/* of test and other: the same at every step */
	uintptr_t last_bad_pc;
	uintptr_t pc;
	bool found_fn, found_caller, reached_start, past_end;
} step;

static bool on_other_stack(uintptr_t sp)
{
	return sp > (uintptr_t)stack && sp <= (uintptr_t)stack + STACK_SIZE;
}

static _Unwind_Reason_Code on_step_frame(struct _Unwind_Context *c, void *arg)
{
	uintptr_t ip = _Unwind_GetIP(c);

	(void)arg;
	if (step.found_fn && !step.found_caller) {
		step.found_caller = function_of(ip) == (void *)probe_call;
		if (step.found_caller) {
			uintptr_t sp = _Unwind_GetCFA(c);
			bool other = on_other_stack(sp);
			const uint64_t *want = other ? other_pattern :
						       test_pattern;

			if (!step.caller_sp[other])
				step.caller_sp[other] = sp;
			step.moved += step.caller_sp[other] != sp;
			for (unsigned i = 0; i < PROBE_REGS; i++)
				if (_Unwind_GetGR(c, probe_dwarf[i]) != want[i])
					step.registers |= 1u << i;
		} else if (function_of(ip) == (void *)fz_fiber_start) {
			/* Entering a first frame: there are no patterns yet. */
			step.found_caller = true;
		} else {
			return _URC_NORMAL_STOP;
		}
	}
	if (ip == step.pc)
		step.found_fn = true;
	if (step.reached_start && ip)
		step.past_end = true;
	if (ip && function_of(ip) == (void *)fz_fiber_start)
		step.reached_start = true;
	return _URC_NO_REASON;
}

static void on_step(uintptr_t pc)
{
	bool other, ended;
	unsigned registers = step.registers, moved = step.moved;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	step.pc = pc;
	step.found_fn = step.found_caller = false;
	step.reached_start = step.past_end = false;
	/* The handler runs on the stack that was interrupted. */
	other = on_other_stack(here);
	ended = _Unwind_Backtrace(on_step_frame, NULL) == _URC_END_OF_STACK;
	step.calls++;
	step.no_caller += !step.found_caller;
	step.no_end += !ended || step.past_end || step.reached_start != other;
	if (!step.found_caller || !ended || step.reached_start != other ||
	    step.past_end || registers != step.registers || moved != step.moved)
		step.last_bad_pc = pc;
}

static unsigned long step_wrong;

/* Filled before stepping: C between two switches would only be stepped too. */
static void other_steps(void *arg)
{
	(void)arg;
	for (;;)
		pair.wrong |= probe_call((void *)pair.fn, &pair.sp, pair.test_sp,
					 pair.tcb, other_pattern);
}

static fz_switch_fn *step_fn;

static void step_begin(void)
{
	/* Different environments lead through the slow paths as well. */
	probe_fenv_write(probe_fenv_a);
	pair_begin(step_fn, other_steps);
	plant_return_address();
	probe_fenv_write(probe_fenv_c);
}

static void step_saved(void)
{
	step_wrong |= probe_call((void *)pair.fn, &pair.test_sp, pair.sp,
				 pair.tcb, test_pattern) | pair.wrong;
}

static void step_first(void)
{
	step_begin();
	step_saved();
}

/*
 * Into a first frame, and into one that was saved: each in a run of its own,
 * since probe_step may show an instruction only once per body().
 */
TEST(unwinding_works_at_every_instruction)
{
	const struct probe_fenv before = probe_fenv_read();

	pattern_fill(test_pattern, 1);
	pattern_fill(other_pattern, 1000);
	for (unsigned i = 0; i < 2 * probe_variant_count(); i++) {
		const char *name = probe_variants[i / 2].name;
		const char *into = i % 2 ? "first" : "saved";
		unsigned steps;

		memset(&step, 0, sizeof(step));
		step_wrong = 0;
		step_fn = probe_variants[i / 2].fn;
		step_begin();
		step_saved();
		steps = probe_step((void *)step_fn,
				   i % 2 ? step_first : step_saved, on_step);
		probe_fenv_write(before);
		step_wrong |= pair.wrong;
		CHECK(steps >= 20 && step.calls >= 20,
		      "%s, %s: stepped through %u instructions only", name,
		      into, steps);
		CHECK(step_wrong == 0, "%s, %s: lost registers %#lx", name,
		      into, step_wrong);
		CHECK(step.no_caller == 0 && step.no_end == 0 &&
		      step.registers == 0 && step.moved == 0,
		      "%s, %s: of %u steps, %u without caller, %u without end, "
		      "%u with another CFA; wrong registers %#x; last at +%#lx",
		      name, into, step.calls, step.no_caller, step.no_end,
		      step.moved, step.registers,
		      (unsigned long)(step.last_bad_pc - (uintptr_t)step_fn));
	}
}

/* Of one thread, so that they may count on different CPUs as they like. */
TEST(cycles_pass)
{
	uint64_t before = fz_cycles(), after = before;
	unsigned tries;

	for (tries = 0; tries < 1000000 && after == before; tries++)
		after = fz_cycles();
	CHECK(after > before, "%llu and %llu after %u tries", (unsigned long long)before,
	      (unsigned long long)after, tries);
}
