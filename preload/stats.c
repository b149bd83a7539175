/* SPDX-License-Identifier: MIT */
#include "preload/stats.h"

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <stdlib.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/redirect.h"
#include "preload/libc/text.h"
#include "runtime/base/count.h"
#include "runtime/base/die.h"
#include "runtime/base/fault.h"
#include "runtime/base/options.h"
#include "runtime/base/ranges.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/counting.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

bool fz_stats_wanted;

static struct {
	char name[32];
	char file[FZ_OPTION_MAX_stats + 1];	/* with %p and %n; empty: the report is printed */
	bool forked;
	bool watches;			/* a signal that ends the process prints the report */
	int pid;			/* of the process that counts */
	_Atomic int teller;		/* the thread that prints, or has printed; 0: none yet */
	_Atomic bool told;		/* the report is complete */
} stats;

_Static_assert((int)FZ_SYM_COUNT < FZ_COUNTED_CALLS, "each symbol has a row, behind that of no call");

/* ---- which calls are the program's --------------------------------------- */

/* The address ranges of libc's functions whose calls are counted. */
static struct fz_range counted_room[FZ_SYM_COUNT];
static struct fz_ranges counted = { .range = counted_room };

static struct fz_range libc;	/* the addresses of libc's code */

extern const char __ehdr_start[] FZ_HIDDEN, etext[] FZ_HIDDEN;

void fz_stats_before_redirect(void)
{
	void **fn = (void **)&fz_real;
	struct fz_text text;
	const ElfW(Sym) *symbol;
	Dl_info info;

	if (!fz_stats_wanted || counted.count)
		return;
	if (fz_text_find(&text))
		libc = (struct fz_range){ text.begin, text.end };
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		if (!dladdr1(fn[i], &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
		    info.dli_saddr != fn[i])
			continue;
		fz_ranges_add(&counted, (struct fz_range){ (uintptr_t)fn[i],
							   (uintptr_t)fn[i] + symbol->st_size });
	}
}

static inline bool is_ours(uintptr_t caller)
{
	const struct fz_range ours = { (uintptr_t)__ehdr_start, (uintptr_t)etext };

	return fz_range_has(ours, caller);
}

bool fz_stats_one_begins(void)
{
	struct fz_fiber *self = fz_self();
	const bool before = self->thread.counted_as_one;

	self->thread.counted_as_one = true;
	return before;
}

void fz_stats_one_ends(const bool *before)
{
	fz_self()->thread.counted_as_one = *before;
}

/* Does the call come from the library itself, or from code of libc that works for a call already counted? */
static bool is_part(uintptr_t caller)
{
	return is_ours(caller) || fz_ranges_have(&counted, caller) ||
	       (fz_self()->thread.counted_as_one && fz_range_has(libc, caller));
}

/* fz_stats_count() in all cases.  Apart, so that the common case saves no registers. */
__attribute__((cold, noinline)) static void count_any(enum fz_symbol symbol, bool fiber, uintptr_t caller)
{
	struct fz_block *block;

	if (is_part(caller))
		return;
	if (fiber) {
		fz_counting_call(fz_self()->carrier, (uint16_t)(symbol + 1));
		return;
	}
	block = fz_counters_shared_block();
	fz_count_in(block, &block->calls[symbol + 1].passed);
}

void fz_stats_count(enum fz_symbol symbol, bool fiber, const void *caller)
{
	if (FZ_LIKELY(fiber && !fz_range_has(counted.all, (uintptr_t)caller) && !is_ours((uintptr_t)caller) &&
		      !fz_self()->thread.counted_as_one))
		fz_counting_call(fz_self()->carrier, (uint16_t)(symbol + 1));
	else
		count_any(symbol, fiber, (uintptr_t)caller);
}

/* ---- the report ----------------------------------------------------------- */

/*
 * Become the one thread that prints the report. Returns false if there is nothing to print, or if a
 * thread is the one already. If another thread is still printing, wait for its end, at most 100 ms.
 */
static bool begin(void)
{
	int self, teller = 0;

	/* Make no system call before this: a filter may kill a process for calls that the program never makes. */
	if (!fz_stats_are_printed())
		return false;
	/* The child of a fork that the library did not see has the counters of its parent. */
	self = (int)fz_sys_gettid();
	if (fz_sys_getpid() != stats.pid)
		return false;
	/* relaxed: the counters are relaxed, too. */
	if (atomic_compare_exchange_strong_explicit(&stats.teller, &teller, self,
						    memory_order_relaxed, memory_order_relaxed))
		return true;
	for (int i = 0; i < 100 && teller != self &&
			!atomic_load_explicit(&stats.told, memory_order_relaxed); i++)
		fz_syscall2(__NR_nanosleep, (long)&(struct timespec){ .tv_nsec = 1000000 }, 0);
	return false;
}

static bool can_say(bool wait)
{
	return wait || fz_sys_poll_now(STDERR_FILENO, POLLOUT) & POLLOUT;
}

/* Without `wait`, lines are left out while standard error is a full pipe. */
static void say_all(bool wait)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "%s[%d]: ", stats.name, stats.pid);
	if (can_say(wait) && atomic_load_explicit(&fz_sched.started, memory_order_relaxed))
		fz_say("%srunning, %u processor%s, %u carrier%s, %s", prefix, fz_sched.count,
		       fz_plural(fz_sched.count), fz_carrier_count(), fz_plural(fz_carrier_count()),
		       fz_describe_backend());
	else if (can_say(wait))
		fz_say("%sdormant", prefix);
	if (can_say(wait))
		fz_redirect_say(prefix);
	if (can_say(wait))
		fz_fault_say();
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		const struct fz_call_counts sum = fz_counters_sum(i + 1);

		if (sum.by_fibers + sum.passed && can_say(wait))
			fz_say("%s%s (%s): %lu by fibers, %lu passed through", prefix,
			       fz_symbol_name(i), fz_symbol_rung(i), (unsigned long)sum.by_fibers,
			       (unsigned long)sum.passed);
	}
	atomic_store_explicit(&stats.told, true, memory_order_relaxed);
}

void fz_stats_say(void)
{
	if (begin())
		say_all(true);
}

void fz_stats_last_words(void)
{
	if (begin())
		say_all(false);
}

void fz_stats_go_on(void)
{
	atomic_store_explicit(&stats.told, false, memory_order_relaxed);
	atomic_store_explicit(&stats.teller, 0, memory_order_relaxed);
}

__attribute__((destructor)) static void at_exit(void)
{
	fz_stats_say();
}

/* _exit runs no destructor, so the report of at_exit() is printed here. */
FZ_EXPORT _Noreturn void _exit(int status)
{
	fz_enter(FZ_SYM__exit);
	fz_stats_say();
	fz_real._exit(status);
	__builtin_unreachable();
}
FZ_EXPORT_ALIAS(_Exit, _exit);

/* ---- the end by a signal -------------------------------------------------- */

bool fz_stats_watches(int sig)
{
	return stats.watches && fz_signal_ends_process(sig) &&
	       !((FZ_SIGNALS_OF_LIBC | fz_signal_bit(SIGKILL)) & fz_signal_bit(sig));
}

/*
 * Print the report, set the default action and send the signal again; that signal ends the process
 * when this handler returns.
 */
void fz_stats_signal(int sig, siginfo_t *info, void *ucontext)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	int saved = errno;

	(void)ucontext;
	fz_stats_last_words();
	fz_real.sigaction(sig, &dfl, NULL);
	/* A fault is not sent again: its instruction is repeated, so that a core file shows the fault. */
	if (info->si_code <= 0 || (sig != SIGSEGV && sig != SIGBUS && sig != SIGFPE && sig != SIGILL))
		fz_syscall3(__NR_tgkill, fz_sys_getpid(), fz_sys_gettid(), sig);
	errno = saved;
}

void fz_stats_watch_signals(void)
{
	struct sigaction sa;

	stats.watches = true;
	for (int sig = 1; sig <= FZ_SIGNALS; sig++)
		if (fz_stats_watches(sig) && sigaction(sig, NULL, &sa) == 0 &&
		    sa.sa_handler == SIG_DFL)
			sigaction(sig, &sa, NULL);
}

/* ---- start ------------------------------------------------------------------ */

static void name_counters(void)
{
	/* All waits for requests are counted in one row; only "ps" shows which call waits. */
	static const char *const waits[FZ_COUNTED_WAITS] = {
		[FZ_FOR_REQUEST] = "request",
#define FZ_WAIT(name, value, word, by) [value] = word,
#include "runtime/inspect/fields.def"
	};
	struct fz_call_counters *c = fz_call_counters;

	memcpy(c->counted.program, stats.name, sizeof(c->counted.program));
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		strncpy(c->calls[i + 1].name, fz_symbol_name(i), sizeof(c->calls->name) - 1);
		strncpy(c->calls[i + 1].rung, fz_symbol_rung(i), sizeof(c->calls->rung) - 1);
	}
	for (unsigned i = 0; i < FZ_COUNTED_WAITS && waits[i]; i++)
		strncpy(c->waits[i], waits[i], sizeof(*c->waits) - 1);
	c->counted.calls = FZ_SYM_COUNT + 1;
}

bool fz_stats_are_printed(void)
{
	return fz_stats_wanted && !*stats.file;
}

void fz_stats_start(const char *name, uint64_t option)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	if (!fz_counters_start_calls()) {
		fz_say("no memory for the counters of --stats");
		return;
	}
	fz_stats_wanted = true;
	strncpy(stats.name, slash ? slash + 1 : name ? name : "", sizeof(stats.name) - 1);
	if (option > 1)
		strcpy(stats.file, (const char *)(uintptr_t)option);
	stats.pid = (int)fz_sys_getpid();
	name_counters();
	if (fz_stats_are_printed())
		at_quick_exit(fz_stats_say);
}

/*
 * Write the name of the file with %p and %n replaced to path. *ret_own: the name has the process id
 * (%p). Returns false if the name is too long.
 */
static bool expand(char *path, size_t size, bool *ret_own)
{
	size_t at = 0;

	*ret_own = false;
	for (const char *c = stats.file; *c && at < size; c++) {
		if (*c != '%') {
			path[at++] = *c;
			continue;
		}
		c++;
		*ret_own |= *c == 'p';
		at += (size_t)(*c == 'p' ? snprintf(path + at, size - at, "%d", stats.pid) :
			       snprintf(path + at, size - at, "%s", *c == 'n' ? stats.name : "%"));
	}
	if (at >= size)
		return false;
	path[at] = '\0';
	return true;
}

void fz_stats_to_file(uint32_t processors)
{
	char path[4000];
	bool own;
	int err;

	if (!fz_stats_wanted || !*stats.file)
		return;
	err = expand(path, sizeof(path), &own) ? 0 : -ENAMETOOLONG;
	if (stats.forked && !own)
		return;
	if (!err)
		err = fz_counters_to_file(path, processors);
	if (err == -EEXIST)
		fz_say("%s[%d]: no counters in %s: it is another file, or a process that lives counts "
		       "there; see %%p of --stats", stats.name, stats.pid, path);
	else if (err)
		fz_say("%s[%d]: no counters in %s: %s", stats.name, stats.pid, path,
		       strerrorname_np(-err));
}

void fz_stats_started(void)
{
	strncpy(fz_counters->backend, fz_backend_name(), sizeof(fz_counters->backend) - 1);
}

void fz_stats_after_fork(void)
{
	fz_counters_after_fork();
	fz_stats_wanted = fz_call_counters != NULL;
	if (!fz_stats_wanted)
		return;
	stats.forked = true;
	stats.pid = (int)fz_sys_getpid();
	name_counters();
	fz_stats_go_on();
	if (stats.watches)
		fz_stats_watch_signals();
}
