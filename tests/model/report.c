/* SPDX-License-Identifier: MIT */
/*
 * tests/model/report.c - the story of a run that failed: each switch, with the stacks of both sides.
 */
#include "tests/model/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"
#include "runtime/fiber/fiber.h"

bool tracing;

enum { FRAMES = 24 };

/* The hooks and the model's kernel would only hide where the program is. */
static bool is_of_explorer(const char *line)
{
	static const char *const files[] = { "hooks.c", "memory.c", "schedule.c", "report.c", "kernel.c", "kernel_futex.c",
					     "run.c", "cpu.h", "host.c", "signals.c", "??" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strstr(line, files[i]))
			return true;
	return false;
}

/*
 * "function at file:line", by addr2line, which is asked once for each address; a line for each function that is
 * inlined there.
 */
static const char *place_of(uintptr_t pc)
{
	static struct { uintptr_t pc; char text[400]; } known[2048];
	uint32_t i = (uint32_t)(pc * 0x9e3779b1u) % 2048;
	char command[100];
	size_t n = 0;
	FILE *out;

	while (known[i].pc && known[i].pc != pc)
		i = (i + 1) % 2048;
	if (known[i].pc)
		return known[i].text;
	known[i].pc = pc;
	snprintf(command, sizeof(command), "addr2line -pfsi -e /proc/%d/exe %lx", getpid(),
		 (unsigned long)pc - 1);
	out = popen(command, "r");
	while (out && sizeof(known[i].text) - n > 80 &&
	       fgets(known[i].text + n, (int)(sizeof(known[i].text) - n), out))
		n += strlen(known[i].text + n);
	if (!n)
		snprintf(known[i].text, sizeof(known[i].text), "0x%lx\n", (unsigned long)pc);
	if (out)
		pclose(out);
	return known[i].text;
}

static void print_frames(const uintptr_t *pcs, int n)
{
	for (int i = 0; i < n; i++) {
		char text[400], *line = text, *end;

		snprintf(text, sizeof(text), "%s", place_of(pcs[i]));
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			line += strspn(line, " ");
			line += strncmp(line, "(inlined by) ", 13) ? 0 : 13;
			if (!is_of_explorer(line))
				printf("        %s\n", line);
		}
	}
}

/* By frame pointers; what is not the program's own text ends the walk. */
static int walk(uintptr_t pc, uintptr_t fp, uintptr_t *ret_pcs)
{
	extern const char __executable_start[], etext[];
	int n = 0;

	while (n < FRAMES) {
		if (pc < (uintptr_t)__executable_start || pc >= (uintptr_t)etext)
			break;
		ret_pcs[n++] = pc;
		if (!fp || fp % 8)
			break;
		pc = ((uintptr_t *)fp)[1];
		if (((uintptr_t *)fp)[0] <= fp)
			fp = 0;
		else
			fp = ((uintptr_t *)fp)[0];
	}
	return n;
}

static const char *context_name(uintptr_t tcb, char *text, size_t size)
{
	const struct fz_fiber *f = fz_layout.record ? fz_fiber_of_tcb(tcb) : NULL;

	if (f && (f->kind == FZ_KIND_FIBER || f->kind == FZ_KIND_WIRED))
		snprintf(text, size, "fiber %d%s", f->thread.tid, f->thread.is_main ? " (main)" : "");
	else if (f && f->kind == FZ_KIND_CARRIER)
		snprintf(text, size, "the carrier's own context");
	else
		snprintf(text, size, "itself");
	return text;
}

void report_stack(int kt)
{
	uintptr_t pcs[FRAMES];
	char text[64];
	int n;

	if (kt == M.current) {
		n = walk((uintptr_t)__builtin_return_address(0),
			 ((uintptr_t *)__builtin_frame_address(0))[0], pcs);
		context_name(fz_tcb_get(), text, sizeof(text));
	} else {
		n = walk(fz_frame_pc(M.kt[kt].sp), fz_frame_fp(M.kt[kt].sp), pcs);
		context_name(M.kt[kt].tcb, text, sizeof(text));
	}
	printf("      %s (%d), in %s:\n", M.kt[kt].name, M.kt[kt].tid, text);
	print_frames(pcs, n);
}

void trace_switch(int from, int to, const char *why, bool late)
{
	if (!exploring)
		return;
	printf("   step %lu: %s (%d) %s; %s (%d)%s goes on\n", (unsigned long)step, M.kt[from].name,
	       M.kt[from].tid, why, M.kt[to].name, M.kt[to].tid, late ? ", whose deadline has come," : "");
	report_stack(from);
	report_stack(to);
}

void trace_say(const char *format, ...)
{
	va_list args;

	if (!tracing)
		return;
	va_start(args, format);
	printf("      ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}
