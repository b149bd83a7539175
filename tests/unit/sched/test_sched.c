/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <sched.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/time.h"
#include "runtime/fiber/adopt.h"
#include "runtime/fiber/cputime.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/base/host.h"
#include "runtime/io/op.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/sched.h"
#include "runtime_setup.h"

#include <linux/io_uring.h>

static _Atomic bool flag, over;
static _Atomic unsigned running, finished;

/* Blocks the kernel thread, by a call that the runtime does not see. */
static void block_unseen(int fd)
{
	char c;

	while (syscall(SYS_read, fd, &c, 1) < 0)
		continue;
}

static unsigned kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* ---- order and fairness -------------------------------------------------- */

static unsigned log_of[1000], logged;	/* one processor: nobody else runs */

static void *log_twice(void *arg)
{
	/* From here on all are in the queue. */
	COUNT(running);
	while (!GET(flag))
		yield_fiber();
	for (int i = 0; i < 2; i++) {
		log_of[logged++] = (unsigned)(uintptr_t)arg;
		yield_fiber();
	}
	return NULL;
}

Test(sched, yield_lets_all_others_run)
{
	enum { N = 20 };
	struct fz_fiber *f[N];
	unsigned seen[N] = { 0 };

	setup_start(1);
	for (uintptr_t i = 0; i < N; i++)
		f[i] = spawn(log_twice, (void *)i);
	while (GET(running) < N)
		yield_fiber();
	SET(flag, true);
	for (int i = 0; i < N; i++)
		join(f[i]);
	cr_assert_eq(logged, 2 * N);
	/* The first half of the log has each of them once. */
	for (int i = 0; i < N; i++)
		seen[log_of[i]]++;
	for (int i = 0; i < N; i++)
		cr_assert_eq(seen[i], 1, "fiber %d ran %u times in the first round", i, seen[i]);
}

static _Atomic unsigned turns[8];

static void *take_turns(void *arg)
{
	while (!GET(over)) {
		COUNT(turns[(uintptr_t)arg]);
		yield_fiber();
	}
	return NULL;
}

static bool turns_are_fair(unsigned *ret_least, unsigned *ret_most)
{
	*ret_least = ~0u;
	*ret_most = 0;
	for (int i = 0; i < 8; i++) {
		unsigned n = GET(turns[i]);

		*ret_least = n < *ret_least ? n : *ret_least;
		*ret_most = n > *ret_most ? n : *ret_most;
	}
	return *ret_least >= *ret_most / 2;
}

Test(sched, yielding_fibers_share_fairly)
{
	struct fz_fiber *f[8];
	unsigned least, most;

	setup_start(1);
	for (uintptr_t i = 0; i < 8; i++)
		f[i] = spawn(take_turns, (void *)i);
	while (GET(turns[0]) < 300000)
		yield_fiber();
	/* Preempted by the kernel, one misses some, which even out: on a busy machine, later. */
	while (!turns_are_fair(&least, &most) && GET(turns[0]) < 20000000)
		yield_fiber();
	SET(over, true);
	for (int i = 0; i < 8; i++)
		join(f[i]);
	cr_assert_geq(least, most / 2, "from %u to %u turns", least, most);
}

/* Two that wake each other in turn do not keep a third from running. */
static struct fz_ticket peer[2];
static _Atomic uint64_t peer_number[2];
static _Atomic unsigned wakes;

enum { MOST_WAKES = 5000000 };

static void *wake_each_other(void *arg)
{
	struct fz_fiber *self = fz_self();
	int me = (int)(uintptr_t)arg;

	while (!GET(over) && COUNT(wakes) < MOST_WAKES) {
		fz_enter_runtime(self);
		peer[me] = fz_wait_arm(self, 0);
		SET(peer_number[me], peer[me].number);
		if (GET(peer_number[!me]))
			fz_wake(peer[!me], FZ_WHY_DONE);
		fz_park(self, now_ns() + 100 * FZ_MSEC);
		fz_leave_runtime(self);
	}
	return NULL;
}

static void *set_flag(void *arg)
{
	SET(flag, true);
	return arg;
}

Test(sched, next_slot_starves_nobody)
{
	struct fz_fiber *f[3];

	setup_start(1);
	f[0] = spawn(wake_each_other, (void *)0);
	f[1] = spawn(wake_each_other, (void *)1);
	while (GET(wakes) < 1000)
		nap(FZ_MSEC);
	f[2] = spawn(set_flag, NULL);
	while (!GET(flag))
		yield_fiber();
	/* How long the others went on meanwhile, counted by what they did. */
	cr_assert_lt(GET(wakes), MOST_WAKES);
	SET(over, true);
	for (int i = 0; i < 3; i++)
		join(f[i]);
}

/* ---- several processors -------------------------------------------------- */

static void *spin_until_all_run(void *arg)
{
	COUNT(running);
	while (GET(running) < (unsigned)(uintptr_t)arg)
		continue;
	COUNT(finished);
	return NULL;
}

/* They need each other, and none enters the runtime meanwhile. */
static void all_run(unsigned fibers, unsigned processors)
{
	struct fz_fiber *f[8];

	setup_start(processors);
	for (unsigned i = 0; i < fibers; i++)
		f[i] = spawn(spin_until_all_run, (void *)(uintptr_t)fibers);
	for (unsigned i = 0; i < fibers; i++)
		join(f[i]);
	cr_assert_eq(GET(finished), fibers);
}

Test(sched, work_is_stolen)
{
	all_run(4, 4);
}

/* More than there are processors: the monitor finds carriers for all. */
Test(sched, spinning_fibers_that_need_each_other)
{
	all_run(6, 2);
}

static void *churn(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (int i = 0; i < 300; i++) {
		switch (random_next(&seed) % 4) {
		case 0: yield_fiber(); break;
		case 1: nap(random_next(&seed) % (50 * FZ_USEC)); break;
		case 2: join(spawn_with(set_flag, NULL, 65536, false)); break;
		default:
			for (volatile unsigned n = 0; n < random_next(&seed) % 20000; n++)
				continue;
		}
	}
	return NULL;
}

static void churn_on(unsigned processors)
{
	struct fz_fiber *f[100];

	setup_start(processors);
	for (uintptr_t i = 0; i < 100; i++)
		f[i] = spawn_with(churn, (void *)i, 65536, false);
	for (int i = 0; i < 100; i++)
		join(f[i]);
	cr_assert_eq(fz_fiber_alive(), 1);
}

Test(sched, churn_one_processor)
{
	churn_on(1);
}

Test(sched, churn_two_processors)
{
	churn_on(2);
}

Test(sched, churn_eight_processors)
{
	churn_on(8);
}

/* ---- idle ---------------------------------------------------------------- */

/* How often the threads but the caller have left the CPU so far; -1 if one of them does not sleep. */
static long switches_of_others(void)
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300], line[256];
	long sum = 0, n;

	while (sum >= 0 && (entry = readdir(d))) {
		FILE *file;

		if (entry->d_name[0] == '.' || atol(entry->d_name) == syscall(SYS_gettid))
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		if (!file) {
			sum = -1;
			break;
		}
		while (sum >= 0 && fgets(line, sizeof(line), file))
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ||
			    sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
			else if (!strncmp(line, "State:", 6) && !strstr(line, "S (sleeping)"))
				sum = -1;
		fclose(file);
	}
	closedir(d);
	return sum;
}

/* A native thread's: it waits until nobody wakes up any more, and tells whether that came. */
static void *await_rest(void *arg)
{
	/* Longer than any tick.  After an activity the monitor looks around, and gives back after a second. */
	enum { WINDOW_MS = 1200, WINDOWS = 30 };
	struct fz_ticket *main_fiber = arg;
	long before, after;
	int left = WINDOWS;

	do {
		before = switches_of_others();
		nap(WINDOW_MS * FZ_MSEC);
		after = switches_of_others();
	} while ((before < 0 || after != before) && --left);
	fz_enter_runtime(fz_self());
	fz_wake(*main_fiber, FZ_WHY_DONE);
	fz_leave_runtime(fz_self());
	return (void *)(uintptr_t)left;
}

/*
 * Nothing to do: no carrier and no monitor wakes up.  Counted are wakeups, not CPU time, and who is due but gets no CPU
 * does not sleep: a busy machine hides no tick, and each tick makes all windows fail.
 */
Test(sched, idle_process_does_not_wake_up)
{
	struct fz_fiber *self = fz_self();
	struct fz_ticket ticket;
	pthread_t thread;
	void *left;

	setup_start(2);
	join(spawn(set_flag, NULL));
	fz_enter_runtime(self);
	ticket = fz_wait_arm(self, 0);
	thread = native(await_rest, &ticket);
	fz_park(self, FZ_FOREVER);
	fz_leave_runtime(self);
	pthread_join(thread, &left);
	cr_assert(left, "somebody wakes up again and again");
}

static void *wake_from_outside(void *arg)
{
	struct fz_fiber *self = fz_self();
	struct fz_ticket *t = arg;

	nap(30 * FZ_MSEC);
	fz_enter_runtime(self);
	fz_wake(*t, FZ_WHY_DONE);
	fz_leave_runtime(self);
	return NULL;
}

Test(sched, native_wakes_an_idle_process)
{
	struct fz_fiber *self = fz_self();

	setup_start(2);
	for (int i = 0; i < 10; i++) {
		struct fz_ticket t;
		enum fz_why why;
		pthread_t thread;

		fz_enter_runtime(self);
		t = fz_wait_arm(self, 0);
		thread = native(wake_from_outside, &t);
		why = fz_park(self, now_ns() + 10 * FZ_SEC);
		fz_leave_runtime(self);
		cr_assert_eq(why, FZ_WHY_DONE);
		pthread_join(thread, NULL);
	}
}

/* ---- the hand-off -------------------------------------------------------- */

static int pipes[8][2];

static void make_pipes(void)
{
	for (int i = 0; i < 8; i++)
		cr_assert_eq(pipe(pipes[i]), 0);
}

static void *block_announced(void *arg)
{
	fz_announce(fz_self());
	block_unseen(pipes[(uintptr_t)arg][0]);
	COUNT(finished);
	return NULL;
}

static void *block_silently(void *arg)
{
	block_unseen(pipes[(uintptr_t)arg][0]);
	COUNT(finished);
	return NULL;
}

static void others_run_while_blocked(void *(*fn)(void *), unsigned processors)
{
	struct fz_fiber *f[8];

	setup_start(processors);
	make_pipes();
	for (uintptr_t i = 0; i < 8; i++)
		f[i] = spawn(fn, (void *)i);
	/* All eight sit in the kernel, and still there is somebody to run these. */
	for (int i = 0; i < 200; i++)
		join(spawn(set_flag, NULL));
	nap(20 * FZ_MSEC);
	for (int i = 0; i < 200; i++)
		join(spawn(set_flag, NULL));
	cr_assert_eq(GET(finished), 0);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(write(pipes[i][1], "", 1), 1);
	for (int i = 0; i < 8; i++)
		join(f[i]);
	cr_assert_eq(GET(finished), 8);
	cr_assert_leq(kernel_threads(), processors + 8 + 4);
}

Test(sched, announced_calls_stop_nobody)
{
	others_run_while_blocked(block_announced, 1);
}

Test(sched, announced_calls_stop_nobody_two_processors)
{
	others_run_while_blocked(block_announced, 2);
}

Test(sched, unseen_calls_stop_nobody)
{
	others_run_while_blocked(block_silently, 1);
}

Test(sched, unseen_calls_stop_nobody_two_processors)
{
	others_run_while_blocked(block_silently, 2);
}

Test(sched, spinning_stops_nobody)
{
	struct fz_fiber *f;

	setup_start(1);
	f = spawn(set_flag, NULL);
	while (!GET(flag))
		continue;
	join(f);
}

/* ---- births ---------------------------------------------------------------- */

static int (*create_now)(void *stack, size_t size, void *(*fn)(void *), void *arg,
			 unsigned long *ret_handle);
static _Atomic bool born;

struct late {
	void *(*fn)(void *);
	void *arg;
};

static void *live_late(void *arg)
{
	struct late *late = arg;

	while (!GET(born))
		syscall(SYS_sched_yield);
	return late->fn(late->arg);
}

static int create_late(void *stack, size_t size, void *(*fn)(void *), void *arg,
		       unsigned long *ret_handle)
{
	static struct late late;

	/* The carrier spawner makes its threads meanwhile. */
	if (fz_self()->kind == FZ_KIND_HELPER)
		return create_now(stack, size, fn, arg, ret_handle);
	late = (struct late){ fn, arg };
	return create_now(stack, size, live_late, &late, ret_handle);
}

static void *count_finished(void *arg)
{
	COUNT(finished);
	return arg;
}

/* The kernel runs the new thread when the creator has long gone on, and others, too. */
static void create_before_birth(unsigned processors)
{
	setup_start(processors);
	join(spawn(set_flag, NULL));
	create_now = fz_host.thread_create;
	fz_host.thread_create = create_late;
	/* Another size of stack: no ended fiber fits. */
	spawn_with(count_finished, NULL, 1 << 20, true);
	fz_host.thread_create = create_now;
	for (int i = 0; i < 10; i++) {
		yield_fiber();
		nap(FZ_MSEC);
		SET(flag, false);
		join(spawn(set_flag, NULL));
		cr_assert(GET(flag));
	}
	cr_assert_eq(GET(finished), 0);
	SET(born, true);
	while (!GET(finished))
		nap(FZ_MSEC);
}

Test(sched, creator_waits_for_no_birth)
{
	create_before_birth(1);
}

Test(sched, creator_waits_for_no_birth_two_processors)
{
	create_before_birth(2);
}

static void *yield_until_over(void *arg)
{
	while (!GET(over))
		yield_fiber();
	return arg;
}

/* A new fiber is not kept waiting by those that are runnable all the time. */
Test(sched, a_new_fiber_has_its_turn)
{
	struct fz_fiber *busy[2], *f;
	int yields;

	setup_start(1);
	for (int i = 0; i < 2; i++)
		busy[i] = spawn(yield_until_over, NULL);
	nap(FZ_MSEC);
	/* Another size of stack: no ended fiber fits. */
	f = spawn_with(set_flag, NULL, 1 << 20, false);
	while (!fz_adopt_is_over(f))
		syscall(SYS_sched_yield);
	for (yields = 0; !GET(flag); yields++)
		yield_fiber();
	cr_assert(yields < 100, "%d yields", yields);
	SET(over, true);
	for (int i = 0; i < 2; i++)
		join(busy[i]);
	join(f);
}

static void *poke(void *arg)
{
	while (!GET(over))
		fz_monitor_poke();
	return arg;
}

/* However often the monitor is woken: a fiber that runs for a moment is not CPU-bound. */
Test(sched, pokes_are_no_ticks)
{
	pthread_t poking;
	bool cpu_bound = false;

	setup_start(1);
	poking = native(poke, NULL);
	for (int i = 0; i < 50; i++) {
		uint64_t begin;

		nap(2 * FZ_MSEC);
		begin = fz_cputime_of_tid(0);
		while (fz_cputime_of_tid(0) < begin + 200 * FZ_USEC)
			continue;
		cpu_bound |= fz_fiber_is_cpu_bound(fz_self());
	}
	SET(over, true);
	pthread_join(poking, NULL);
	cr_assert_not(cpu_bound);
}

/*
 * The same after an announced call that took so long that everything else, the
 * monitor included, went to sleep.
 */
Test(sched, spinning_after_a_long_announced_call_stops_nobody)
{
	const struct timespec long_time = { 0, 150000000 };
	struct fz_fiber *f;

	setup_start(1);
	/* So that making a fiber below does not take a carrier's start. */
	join(spawn(set_flag, NULL));
	SET(flag, false);
	fz_announce(fz_self());
	syscall(SYS_nanosleep, &long_time, NULL);
	f = spawn(set_flag, NULL);
	while (!GET(flag))
		continue;
	join(f);
}

static void *wait_for_byte(void *arg)
{
	struct fz_op op = {
		.opcode = IORING_OP_POLL_ADD, .fd = pipes[(uintptr_t)arg][0], .op_flags = POLLIN,
	};

	fz_op_wait(fz_self(), &op, FZ_FOREVER, 0);
	if (write(pipes[7][1], "", 1) != 1)
		return (void *)1;
	return NULL;
}

static void *write_late(void *arg)
{
	(void)arg;
	nap(60 * FZ_MSEC);
	return (void *)(uintptr_t)(write(pipes[0][1], "", 1) != 1);
}

static void on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

/*
 * Requests in flight are received while their processor's carrier is in an
 * announced call: here the call ends only when that has happened.
 */
static void completion_during_announced_call(void)
{
	struct fz_fiber *f;
	pthread_t t;

	setup_start(1);
	make_pipes();
	f = spawn(wait_for_byte, (void *)0);
	yield_fiber();
	t = native(write_late, NULL);
	fz_announce(fz_self());
	block_unseen(pipes[7][0]);
	cr_assert_null(join(f));
	pthread_join(t, NULL);
}

Test(sched, completion_during_announced_call)
{
	completion_during_announced_call();
}

Test(sched, completion_during_announced_call_one_cpu)
{
	on_one_cpu();
	completion_during_announced_call();
}

static void *ring_bell(void *arg)
{
	nap(60 * FZ_MSEC);
	return (void *)(uintptr_t)(write(pipes[7][1], "", 1) != 1 || arg);
}

/* The same with a deadline instead of a request. */
Test(sched, deadline_during_announced_call_one_cpu)
{
	struct fz_fiber *f;

	on_one_cpu();
	setup_start(1);
	make_pipes();
	f = spawn(ring_bell, NULL);
	yield_fiber();
	fz_announce(fz_self());
	block_unseen(pipes[7][0]);
	cr_assert_null(join(f));
}

Test(sched, completion_during_unseen_call)
{
	struct fz_fiber *f;
	pthread_t t;

	setup_start(1);
	make_pipes();
	f = spawn(wait_for_byte, (void *)0);
	yield_fiber();
	t = native(write_late, NULL);
	block_unseen(pipes[7][0]);
	cr_assert_null(join(f));
	pthread_join(t, NULL);
}

/* Everybody at once: announced calls, spinning, sleeping, requests. */
static void *mixed(void *arg)
{
	const struct timespec short_time = { 0, 200000 };
	uint64_t seed = (uintptr_t)arg + 1;

	for (int i = 0; i < 60; i++) {
		fz_nsec until;

		switch (random_next(&seed) % 5) {
		case 0:
			fz_announce(fz_self());
			syscall(SYS_nanosleep, &short_time, NULL);
			break;
		case 1:
			syscall(SYS_nanosleep, &short_time, NULL);
			break;
		case 2:
			until = now_ns() + random_next(&seed) % (300 * FZ_USEC);
			while (now_ns() < until)
				continue;
			break;
		case 3:
			nap(random_next(&seed) % (500 * FZ_USEC));
			break;
		default:
			join(spawn_with(set_flag, NULL, 65536, false));
		}
	}
	COUNT(finished);
	return NULL;
}

static void all_mixed(unsigned processors)
{
	struct fz_fiber *f[40];

	setup_start(processors);
	for (uintptr_t i = 0; i < 40; i++)
		f[i] = spawn(mixed, (void *)i);
	for (int i = 0; i < 40; i++)
		join(f[i]);
	cr_assert_eq(GET(finished), 40);
}

Test(sched, everything_mixed_one_processor)
{
	all_mixed(1);
}

Test(sched, everything_mixed_three_processors)
{
	all_mixed(3);
}

/* ---- descriptors --------------------------------------------------------- */

Test(sched, knows_its_descriptors)
{
	unsigned open_ones = 0;

	setup_start(3);
	for (uint32_t i = 0; i < fz_sched_fd_count(); i++) {
		if (fz_sched_fd(i) < 0)
			continue;
		cr_assert(fz_sched_owns_fd(fz_sched_fd(i)));
		open_ones++;
	}
	cr_assert_eq(open_ones, fz_backend_kind() == FZ_BACKEND_RING ? 9 : 6);
	cr_assert(!fz_sched_owns_fd(0));
	cr_assert(!fz_sched_owns_fd(-1));
	/* One is wanted by the program: everything goes on working. */
	for (uint32_t i = 0; i < fz_sched_fd_count(); i++) {
		int old = fz_sched_fd(i);

		if (old < 0)
			continue;
		cr_assert_eq(fz_sched_vacate_fd(old), 0);
		cr_assert(!fz_sched_owns_fd(old));
		cr_assert_eq(dup2(2, old), old);
	}
	for (int i = 0; i < 50; i++)
		join(spawn(spin_until_all_run, (void *)1));
	nap(FZ_MSEC);
}

static int (*create)(void *stack, size_t size, void *(*fn)(void *), void *arg,
		     unsigned long *ret_handle);
static int creations_left;

static int create_few(void *stack, size_t size, void *(*fn)(void *), void *arg,
		      unsigned long *ret_handle)
{
	return creations_left-- > 0 ? create(stack, size, fn, arg, ret_handle) : -EAGAIN;
}

/* Whichever kernel thread is one too many: nothing has changed, and later it may go. */
Test(sched, starts_whole_or_not_at_all)
{
	const char *why = "";
	unsigned before = kernel_threads();

	setup_layout();
	create = fz_host.thread_create;
	fz_host.thread_create = create_few;
	for (int n = 0; n < 3; n++) {
		creations_left = n;
		cr_assert_eq(fz_sched_start(2, FZ_BACKEND_AUTO, &why), -EAGAIN);
		cr_assert_str_eq(why, "no kernel threads for the library");
		cr_assert_eq(kernel_threads(), before);
		cr_assert_eq(fz_self()->kind, FZ_KIND_NATIVE);
	}
	creations_left = 1000;
	cr_assert_eq(fz_sched_start(2, FZ_BACKEND_AUTO, &why), 0);
	cr_assert_eq(fz_self()->kind, FZ_KIND_FIBER);
}
