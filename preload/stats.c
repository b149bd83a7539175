/* SPDX-License-Identifier: MIT */
#include "preload/stats.h"

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <stdlib.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/redirect.h"
#include "runtime/base/die.h"
#include "runtime/base/fault.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"

bool fz_stats_wanted;

static struct {
	char name[32];
	/* [0] passed through, [1] by fibers; relaxed: counters. */
	_Atomic uint64_t calls[FZ_SYM_COUNT][2];
	bool watches;			/* for signals that end the process */
	int pid;			/* of the process that counts */
	_Atomic int teller;		/* the thread that prints, or has printed; 0: none yet */
	_Atomic bool told;		/* the report is complete */
} stats;

/* ---- which calls are the program's --------------------------------------- */

/* Addresses from begin to before end. */
struct range {
	uintptr_t begin, end;
};

/* libc's code of the names that are counted, in the order of addresses. */
static struct range counted[FZ_SYM_COUNT];
static unsigned counted_count;

extern const char __ehdr_start[] FZ_HIDDEN, etext[] FZ_HIDDEN;

static void insert(struct range r)
{
	unsigned i = counted_count++;

	for (; i && counted[i - 1].begin > r.begin; i--)
		counted[i] = counted[i - 1];
	counted[i] = r;
}

void fz_stats_before_redirect(void)
{
	void **fn = (void **)&fz_real;
	const ElfW(Sym) *symbol;
	Dl_info info;

	if (!fz_stats_wanted || counted_count)
		return;
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		if (!dladdr1(fn[i], &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
		    info.dli_saddr != fn[i])
			continue;
		insert((struct range){ (uintptr_t)fn[i], (uintptr_t)fn[i] + symbol->st_size });
	}
}

/* Is the call a part of one that was counted, or of the library's own work? */
static bool is_part(uintptr_t caller)
{
	unsigned low = 0, high = counted_count;

	if (caller >= (uintptr_t)__ehdr_start && caller < (uintptr_t)etext)
		return true;
	/* Find the first range that begins behind the caller. */
	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (counted[middle].begin <= caller)
			low = middle + 1;
		else
			high = middle;
	}
	return low && caller < counted[low - 1].end;
}

void fz_stats_count(enum fz_symbol symbol, bool fiber, const void *caller)
{
	if (!is_part((uintptr_t)caller))
		atomic_fetch_add_explicit(&stats.calls[symbol][fiber], 1, memory_order_relaxed);
}

/* ---- the report ----------------------------------------------------------- */

/*
 * Become the one thread that prints the report. Returns false if there is nothing to print, or if
 * another thread has printed it; gives a thread that is printing 100 ms for the rest.
 */
static bool begin(void)
{
	const int self = (int)fz_sys_gettid();
	int teller = 0;

	/* The child of a fork that the library did not see has the counters of its parent. */
	if (!fz_stats_wanted || fz_sys_getpid() != stats.pid)
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

/* Without `wait`, the report ends where standard error is a pipe that nobody empties. */
static void say_all(bool wait)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "%s[%d]: ", stats.name, stats.pid);
	if (can_say(wait) && atomic_load_explicit(&fz_sched.started, memory_order_relaxed))
		fz_say("%srunning, %u processors, %u carriers, %s", prefix, fz_sched.count,
		       fz_carrier_count(), fz_describe_backend());
	else if (can_say(wait))
		fz_say("%sdormant", prefix);
	if (can_say(wait))
		fz_redirect_say(prefix);
	if (can_say(wait))
		fz_fault_say();
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		uint64_t real = atomic_load_explicit(&stats.calls[i][0], memory_order_relaxed);
		uint64_t fiber = atomic_load_explicit(&stats.calls[i][1], memory_order_relaxed);

		if (real + fiber && can_say(wait))
			fz_say("%s%s (%s): %lu by fibers, %lu passed through", prefix,
			       fz_symbol_name(i), fz_symbol_rung(i), (unsigned long)fiber,
			       (unsigned long)real);
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

/* atexit handlers do not run. */
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

/* The signal comes again, with the default action, when this handler returns. */
void fz_stats_signal(int sig, siginfo_t *info, void *ucontext)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	int saved = errno;

	(void)ucontext;
	fz_stats_last_words();
	fz_real.sigaction(sig, &dfl, NULL);
	/* The instruction that caused a fault is repeated, so that a core file shows the fault. */
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

void fz_stats_start(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	fz_stats_wanted = true;
	strncpy(stats.name, slash ? slash + 1 : name ? name : "", sizeof(stats.name) - 1);
	stats.pid = (int)fz_sys_getpid();
	at_quick_exit(fz_stats_say);
}

void fz_stats_after_fork(void)
{
	if (!fz_stats_wanted)
		return;
	memset(stats.calls, 0, sizeof(stats.calls));
	stats.pid = (int)fz_sys_getpid();
	fz_stats_go_on();
	if (stats.watches)
		fz_stats_watch_signals();
}
