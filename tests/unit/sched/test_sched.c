/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/host.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime_setup.h"
#include "sched_fixture.h"

static _Atomic unsigned running, finished;

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
