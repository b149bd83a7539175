/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/test_unwind.c - how a context unwinds, also at each instruction of a switch.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <unwind.h>

#include "pair.h"

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
