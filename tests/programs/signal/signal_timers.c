/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_timers.c - alarm, setitimer, timer_create with all kinds of
 * notification, while threads sleep and compute; a signal wakes a process that is asleep,
 * which nothing else does.
 */
#include "check.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t alarms, values;
static volatile int stop;
static _Atomic int notified;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void on_value(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	CHECK_INT(info->si_code, SI_TIMER);
	CHECK_INT(info->si_value.sival_int, 4711);
	values++;
}

static void *computes(void *arg)
{
	while (!stop)
		;
	return arg;
}

static void *sleeps(void *arg)
{
	while (!stop)
		usleep(5000);
	return arg;
}

static void by_alarm(void)
{
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } }, off = { { 0, 0 }, { 0, 0 } };
	long long before;
	unsigned left;

	alarms = 0;
	CHECK_INT(alarm(1000), 0);
	before = now(CLOCK_MONOTONIC);
	left = alarm(1);
	CHECK(left > 0 && left <= 1000);
	while (!alarms)
		pause();
	CHECK(now(CLOCK_MONOTONIC) - before >= 900 * MS);
	CHECK_OK(setitimer(ITIMER_REAL, &every, NULL));
	while (alarms < 20)
		pause();
	CHECK_OK(setitimer(ITIMER_REAL, &off, NULL));
	puts("alarm and setitimer");
}

static void by_ualarm(void)
{
	long long before = now(CLOCK_MONOTONIC);
	useconds_t left;

	alarms = 0;
	CHECK_INT(ualarm(900000, 0), 0);
	/* It may be late, and it may not have come. */
	left = ualarm(20000, 0);
	CHECK(left <= 900000 && (left > 0 || alarms));
	while (!alarms)
		pause();
	CHECK(now(CLOCK_MONOTONIC) - before >= 20 * MS);
	alarms = 0;
	ualarm(1000, 2000);
	while (alarms < 20)
		pause();
	ualarm(0, 0);
	CHECK_INT(ualarm(0, 0), 0);
	CHECK_ERR((int)ualarm(1000000, 0), EINVAL);
	puts("ualarm");
}

static timer_t make(int notify, int sig, void (*fn)(union sigval), long ns)
{
	struct sigevent event = { .sigev_notify = notify, .sigev_signo = sig };
	struct itimerspec when = { { 0, ns }, { 0, ns } };
	timer_t timer;

	event.sigev_value.sival_int = 4711;
	if (notify == SIGEV_THREAD)
		event.sigev_notify_function = fn;
	if (notify == SIGEV_THREAD_ID)
		event._sigev_un._tid = gettid();
	CHECK_OK(timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_OK(timer_settime(timer, 0, &when, NULL));
	return timer;
}

static void notify(union sigval value)
{
	CHECK_INT(value.sival_int, 4711);
	usleep(100);
	notified++;
}

/* For this thread, which takes it by sigwaitinfo. */
static void *has_timer(void *arg)
{
	sigset_t set;
	siginfo_t info;
	timer_t timer;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	timer = make(SIGEV_THREAD_ID, SIGRTMIN + 2, NULL, 2 * MS);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(sigwaitinfo(&set, &info), SIGRTMIN + 2);
		CHECK_INT(info.si_code, SI_TIMER);
		CHECK_INT(info.si_value.sival_int, 4711);
	}
	CHECK_OK(timer_delete(timer));
	return arg;
}

static void by_timer(void)
{
	struct sigaction sa = { .sa_sigaction = on_value, .sa_flags = SA_SIGINFO };
	timer_t timer;

	CHECK_OK(sigaction(SIGRTMIN + 1, &sa, NULL));
	timer = make(SIGEV_SIGNAL, SIGRTMIN + 1, NULL, 2 * MS);
	while (values < 10)
		usleep(10000);
	CHECK_OK(timer_delete(timer));
	puts("SIGEV_SIGNAL");
	timer = make(SIGEV_THREAD, 0, notify, 2 * MS);
	while (notified < 10)
		usleep(1000);
	CHECK_OK(timer_delete(timer));
	puts("SIGEV_THREAD");
	finish(start(has_timer, NULL));
	puts("SIGEV_THREAD_ID");
}

/* ---- a process that is asleep ------------------------------------------------- */

static int answer[2];

static void answers(int sig)
{
	(void)sig;
	if (write(answer[1], "x", 1) != 1)
		abort();
}

static void ends(int sig)
{
	(void)sig;
	_exit(9);
}

static void *parks(void *arg)
{
	char c;

	CHECK_INT(read(*(int *)arg, &c, 1), 0);
	return NULL;
}

enum { SIGNALS = 3 };

/* How often its threads have been put to sleep, or off the CPU, so far; -1 if one of them does not sleep. */
static long switches(pid_t pid)
{
	char path[300], line[256];
	const struct dirent *entry;
	long sum = 0, n;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	CHECK(tasks != NULL);
	while (sum >= 0 && (entry = readdir(tasks)) != NULL) {
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, entry->d_name);
		file = fopen(path, "r");
		if (!file) {
			sum = -1;
			break;
		}
		while (sum >= 0 && fgets(line, sizeof(line), file))
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ||
			    sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
			else if (strncmp(line, "State:", 6) == 0 && !strstr(line, "S (sleeping)"))
				sum = -1;
		CHECK_OK(fclose(file));
	}
	CHECK_OK(closedir(tasks));
	return sum;
}

/*
 * Wait until none of its threads wakes up for 300 ms.  One that is due and gets no CPU does not sleep, so a busy machine
 * hides none; a process that looks around for ever is never at rest.
 */
static void await_rest(pid_t pid)
{
	long before;

	do {
		before = switches(pid);
		usleep(300000);
	} while (before < 0 || switches(pid) != before);
}

static void asleep(void)
{
	int never[2], status;
	struct rusage used;
	pid_t pid;
	char c;

	CHECK_OK(pipe(answer));
	CHECK_OK(pipe(never));
	pid = fork();
	if (pid == 0) {
		signal(SIGUSR1, answers);
		signal(SIGUSR2, ends);
		close(never[1]);
		for (int i = 0; i < 50; i++)
			start(parks, &never[0]);
		usleep(50000);
		CHECK_INT(write(answer[1], "r", 1), 1);
		for (;;)
			pause();
	}
	CHECK_INT(read(answer[0], &c, 1), 1);
	/* Nothing but the signal wakes who answers. */
	for (int i = 0; i < SIGNALS; i++) {
		await_rest(pid);
		CHECK_OK(kill(pid, SIGUSR1));
		CHECK_INT(read(answer[0], &c, 1), 1);
	}
	CHECK_OK(kill(pid, SIGUSR2));
	CHECK_INT(wait4(pid, &status, 0, &used), pid);
	CHECK_INT(status, 9 << 8);
	/* Seconds of sleep. */
	CHECK(used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000 < 300);
	puts("asleep");
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	pthread_t t[4];

	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	asleep();
	for (int i = 0; i < 4; i++)
		t[i] = start(i % 2 ? computes : sleeps, NULL);
	by_alarm();
	by_ualarm();
	by_timer();
	stop = 1;
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	return success();
}
