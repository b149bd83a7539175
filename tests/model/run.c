/* SPDX-License-Identifier: MIT */
/*
 * tests/model/run.c - one run after another from the same state: what a run has changed is put back.
 */
#include "tests/model/model.h"
#include "tests/model/reduce/outcomes.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/scenario.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "arch/arch.h"
#include "runtime/fiber/fiber.h"

void *explorer_sp;
uintptr_t explorer_tcb;
char failure[2048];

static struct machine start;
static enum outcome outcome;
static bool ready, in_run;
static struct { char *stack, *low, *copy; size_t size; const char *name; } stacks[STACKS];
static int stack_count;

void stack_register(void *stack, size_t size, const char *name)
{
	if (stack_count == STACKS)
		model_outside("more stacks than run.c has room for");
	stacks[stack_count].stack = stack;
	stacks[stack_count].size = size;
	stacks[stack_count++].name = name;
}

/* What of the stacks is in use, which no hook sees. */
static void save_stacks(void)
{
	for (int i = 0; i < stack_count; i++) {
		char *low = stacks[i].stack, *end = low + stacks[i].size;

		while (low < end && !*(uint64_t *)low)
			low += 8;
		stacks[i].low = low;
		stacks[i].copy = malloc((size_t)(end - low));
		memcpy(stacks[i].copy, low, (size_t)(end - low));
	}
}

_Noreturn void run_over(enum outcome outcome_)
{
	static void *gone;

	outcome = outcome_;
	exploring = false;
	fz_switch_fsgsbase(&gone, explorer_sp, explorer_tcb);
	__builtin_unreachable();
}

_Noreturn void model_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(failure, sizeof(failure), format, args);
	va_end(args);
	if (!in_run) {
		fprintf(stderr, "model: while %s is set up: %s\n", scenario_now->name, failure);
		_exit(3);
	}
	if (tracing)
		report_stack(M.current);
	run_over(RUN_FAILED);
}

_Noreturn void model_outside(const char *what)
{
	fprintf(stderr, "model: outside of what is modelled: %s\n", what);
	tracing = true;
	exploring = false;
	report_stack(M.current);
	fflush(stdout);
	_exit(3);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;

	if (!in_run) {
		fprintf(stderr, "model: signal %d at %p while nothing runs\n", sig, info->si_addr);
		_exit(3);
	}
	model_fail("signal %d, address %p, at pc %llx", sig, info->si_addr,
		   (unsigned long long)u->uc_mcontext.gregs[REG_RIP]);
}

static void catch_faults(void)
{
	static char stack[64 * 1024];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_sigaction = on_fault,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGILL, &action, NULL);
	sigaction(SIGTRAP, &action, NULL);
}

static void boot(void)
{
	const size_t size = 256 * 1024;
	void *first;

	catch_faults();
	memory_start();
	kernel_start();
	schedule_begin_run(HOW_LISTED);
	first = model_map(size);
	kthread_start(first, size, (void *(*)(void *))(void *)scenario_boot, (void *)scenario_now,
		      "first");
	explorer_tcb = fz_tcb_get();
	fz_switch_fsgsbase(&explorer_sp, M.kt[0].sp, M.kt[0].tcb);
	save_stacks();
	statics_keep();
	start = M;
	ready = true;
}

enum outcome run_once(enum how how)
{
	if (!ready)
		boot();
	memory_begin_run();
	schedule_begin_run(how);
	exploring = in_run = true;
	fz_switch_fsgsbase(&explorer_sp, M.kt[M.current].sp, M.kt[M.current].tcb);
	exploring = in_run = false;
	reduce_end_run(outcome == RUN_CUT);
	if (outcomes && outcome == RUN_PASSED)
		outcomes_end_run();
	if (step > longest)
		longest = step;
	if (points > most_points)
		most_points = points;
	memory_undo();
	for (int i = 0; i < stack_count; i++)
		memcpy(stacks[i].low, stacks[i].copy,
		       (size_t)(stacks[i].stack + stacks[i].size - stacks[i].low));
	M = start;
	statics_check();
	return outcome;
}
