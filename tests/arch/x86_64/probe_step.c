/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/x86_64/probe_step.c - single-step with the CPU's trap flag.
 *
 * The flag is in rflags, which fz_switch does not change: the steps go on in
 * the next context, and back.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#include "tests/arch/probe.h"

static void *traced;
static probe_at_fn *at_insn;
static unsigned steps;
static uintptr_t last_pc;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uintptr_t pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (_Unwind_FindEnclosingFunction((void *)(pc + 1)) != traced)
		return;
	if (pc > last_pc)
		steps++;
	last_pc = pc;
	at_insn(pc);
}

/* The compiler may use the red zone, which a push would overwrite. */
static inline void trap_flag_set(void)
{
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "orq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "leaq 128(%%rsp), %%rsp"
			 : : : "memory", "cc");
}

static inline void trap_flag_clear(void)
{
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "leaq 128(%%rsp), %%rsp"
			 : : : "memory", "cc");
}

unsigned probe_step(void *fn, void (*body)(void), probe_at_fn *at)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO }, old;

	traced = fn;
	at_insn = at;
	steps = 0;
	last_pc = 0;
	sa.sa_sigaction = on_trap;
	sigaction(SIGTRAP, &sa, &old);
	trap_flag_set();
	body();
	trap_flag_clear();
	sigaction(SIGTRAP, &old, NULL);
	return steps;
}
