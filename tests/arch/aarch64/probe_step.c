/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/aarch64/probe_step.c - a breakpoint on each instruction in turn.
 *
 * User space cannot single-step itself here, so body() runs once for every
 * instruction of fn, with a brk in its place until it is reached.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "tests/arch/probe.h"

#define BRK 0xd4200000u

static uint32_t *patched;
static uint32_t original;
static probe_at_fn *at_insn;
static unsigned steps;

static void patch(uint32_t insn)
{
	*patched = insn;
	__builtin___clear_cache((char *)patched, (char *)(patched + 1));
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	if (uc->uc_mcontext.pc != (uintptr_t)patched)
		_exit(3);
	patch(original);
	steps++;
	at_insn((uintptr_t)patched);
}

unsigned probe_step(void *fn, void (*body)(void), probe_at_fn *at)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO }, old;
	uintptr_t page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	uintptr_t page = (uintptr_t)fn & page_mask;
	size_t len = ((uintptr_t)fn + 4096 - page + ~page_mask) & page_mask;

	if (mprotect((void *)page, len, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 0;
	at_insn = at;
	steps = 0;
	sa.sa_sigaction = on_trap;
	sigaction(SIGTRAP, &sa, &old);
	for (patched = fn;
	     _Unwind_FindEnclosingFunction((char *)patched + 1) == fn;
	     patched++) {
		original = *patched;
		patch(BRK);
		body();
		patch(original);
	}
	sigaction(SIGTRAP, &old, NULL);
	mprotect((void *)page, len, PROT_READ | PROT_EXEC);
	return steps;
}
