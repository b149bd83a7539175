/* SPDX-License-Identifier: MIT */
/*
 * tests/model/host.c - what the runtime asks of libc, and what stands in for runtime/base/die.c.
 */
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>

#include "runtime/base/host.h"
#include "runtime/base/sys.h"
#include "runtime/fiber/fiber.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"

/* libc's own words of a thread. */
static __thread int libc_tid, libc_cancelhandling;

int host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg,
			      unsigned long *ret_handle)
{
	int kt;

	if (!stack) {
		size = 256 * 1024;
		stack = model_map(size);
	}
	kt = kthread_start(stack, size, fn, arg, "kernel thread");
	if (ret_handle)
		*ret_handle = M.kt[kt].tcb;
	return 0;
}

static uint64_t host_threads_begin(void)
{
	uint64_t before;

	fz_sys_sigmask(HOW_BLOCK, &(uint64_t){ ~(uint64_t)0 }, &before);
	return before;
}

static void host_threads_end(uint64_t mask)
{
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
}

static void host_run_thread(void *(*start)(void *), void *arg, void **result)
{
	fz_signal_life_begins(fz_self());
	*result = start(arg);
	fz_signal_life_ends(fz_self());
}

/* As preload/signal/signal.c has it. */
static void host_signal_handler(int sig, void *info, void *ucontext)
{
	ucontext_t *uc = ucontext;
	uint64_t before, mask;

	memcpy(&before, &uc->uc_sigmask, sizeof(before));
	fz_signal_arrived(sig, info, ucontext);
	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	fz_signal_handler_ends(fz_self(), before, mask, (struct fz_alt_stack *)(void *)&uc->uc_stack);
}

static void host_call_handler(int sig, void *info)
{
	(void)sig;
	(void)info;
	model_outside("a kernel that refuses a signal");
}

/* libc's handler of SIGSETXID, of which runtime/signal/nudge.c copies flags and restorer. */
static void libc_setxid(int sig, void *info, void *ucontext)
{
	(void)sig;
	(void)info;
	(void)ucontext;
	model_outside("libc's SIGSETXID");
}

static void host_nothing(void)
{
}

static void host_test_cancel(void)
{
}

static int host_clock_gettime(int clock, struct timespec *ret)
{
	struct timespec ts = { (time_t)(M.now / 1000000000), (long)(M.now % 1000000000) };

	(void)clock;
	reduce_use(OBJECT_CLOCK, false);
	model_put(ret, &ts, sizeof(ts));
	return 0;
}

static void host_name(const char *name)
{
	static char names[KTHREADS][16];

	snprintf(names[M.current], sizeof(names[0]), "%s", name);
	M.kt[M.current].name = names[M.current];
}

/* Instead of runtime/base/die.c, which would write to the model's descriptor 2. */
bool fz_verbose;

void fz_say(const char *format, ...);
_Noreturn void fz_die(const char *format, ...);

void fz_say(const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	trace_say("the library says: %s", text);
}

_Noreturn void fz_die(const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	model_fail("fz_die: %s", text);
}

_Noreturn void fz_assert_failed(const char *cond, const char *file, int line)
{
	model_fail("assertion %s (%s:%d)", cond, file, line);
}

static void switch_checked(void **save_sp, void *load_sp, uintptr_t tcb)
{
	check_at_switch(save_sp, load_sp, tcb);
	model_note_write(save_sp, sizeof(*save_sp));
	fz_switch_fsgsbase(save_sp, load_sp, tcb);
}

void host_lay_out(void)
{
	fz_arch_init(getauxval(AT_HWCAP2));
	if (!fz_cpu_fsgsbase)
		model_outside("a CPU or kernel without FSGSBASE");
	fz_switch = switch_checked;
	fz_host = (struct fz_host){
		.thread_create = host_thread_create,
		.threads_begin = host_threads_begin,
		.threads_end = host_threads_end,
		.run_thread = host_run_thread,
		.release_thread_state = host_nothing,
		.reset_thread_state = host_nothing,
		.test_cancel = host_test_cancel,
		.name_kernel_thread = host_name,
		.clock_gettime = host_clock_gettime,
		.signal_handler = host_signal_handler,
		.call_handler = host_call_handler,
	};
	M.signals.action[SIG_SETXID] = (struct kernel_action){ .handler = libc_setxid,
							       .flags = FLAG_SIGINFO | FLAG_RESTART };
	fz_layout.record = (intptr_t)fz_self() - (intptr_t)fz_tcb_get();
	fz_layout.handle = 0;
	fz_layout.tid = (intptr_t)&libc_tid - (intptr_t)fz_tcb_get();
	fz_layout.cancelhandling = (intptr_t)&libc_cancelhandling - (intptr_t)fz_tcb_get();
	fz_fdtab_init();
	libc_tid = M.kt[M.current].tid;
	M.kt[M.current].mask = 0;
	M.kt[M.current].name = "first";
}
