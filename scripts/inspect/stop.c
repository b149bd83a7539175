/* SPDX-License-Identifier: MIT */
#include "stop.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "fibers.h"
#include "scripts/process/say.h"

struct held {
	int tid;
	bool stopped;
	int signal;			/* the signal that it was about to receive, or 0 */
	uint64_t switches;		/* its context switches before; unchanged if it has slept */
};

static struct {
	const struct target *target;
	int pid;
	struct held *list;
	size_t count;
	bool goes_first;		/* this tool has scheduling policy SCHED_FIFO until stop_end() */
	double most;			/* ms */
	double began, ended;		/* ms; 0: not yet */
	volatile sig_atomic_t over;
} stop;

/* The thread that had not stopped when the time was over, or 0.  There is one at most: no other is stopped then. */
static volatile sig_atomic_t late;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Let all threads go on. The timer's handler may do the same meanwhile: it sets stopped to false, too. */
static void let_go(void)
{
	for (size_t i = 0; i < stop.count; i++)
		if (stop.list[i].stopped) {
			/* An execve in another thread has killed this one and waits for this waitpid(). */
			if (ptrace(PTRACE_DETACH, stop.list[i].tid, NULL,
				   (void *)(intptr_t)stop.list[i].signal) != 0)
				waitpid(stop.list[i].tid, NULL, __WALL | WNOHANG);
			stop.list[i].stopped = false;
		}
	if (!stop.over)
		stop.ended = now_ms();
	stop.over = 1;
}

static void time_is_over(int signal)
{
	const int saved = errno;

	(void)signal;
	let_go();
	errno = saved;
}

static void set_timer(double ms)
{
	const struct itimerval timer = { .it_value = {
		(time_t)(ms / 1e3), (suseconds_t)(ms * 1e3) % 1000000,
	} };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* The letter of the thread's state, as in proc(5); 'X' if it is gone. */
static char state_of(int tid)
{
	char line[512];
	const char *end;

	task_line(stop.pid, tid, "stat", line, sizeof(line));
	end = strrchr(line, ')');
	return end && end[1] ? end[2] : 'X';
}

static bool runs(int tid)
{
	return state_of(tid) == 'R';
}

/* Has the thread ended?  The kernel forbids to trace a zombie. */
static bool has_ended(int tid)
{
	const char state = state_of(tid);

	return state == 'X' || state == 'Z';
}

/* The signal that the thread was about to receive when it stopped, or 0: then PTRACE_INTERRUPT has stopped it. */
static int signal_of(int status)
{
	return status >> 16 ? 0 : WSTOPSIG(status);
}

/*
 * Let the late thread go on if it has stopped by now.  The handler may do the same meanwhile: waitpid() tells one
 * of the two.
 */
static void let_late_go(void)
{
	const int tid = late;
	int status;

	if (tid && waitpid(tid, &status, __WALL | WNOHANG) == tid) {
		if (WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal_of(status));
		late = 0;
	}
}

static void thread_changes(int signal)
{
	const int saved = errno;

	(void)signal;
	let_late_go();
	errno = saved;
}

/*
 * Wait until the thread has stopped or the time is over.  SIGCHLD and SIGALRM tell that.  Both are blocked
 * except in sigsuspend(): a signal that came just before it would be lost, and the wait would not end.
 */
static bool has_stopped(int tid, int *ret_status)
{
	sigset_t both, before, open;
	pid_t got;

	sigemptyset(&both);
	sigaddset(&both, SIGALRM);
	sigaddset(&both, SIGCHLD);
	sigprocmask(SIG_BLOCK, &both, &before);
	open = before;
	sigdelset(&open, SIGALRM);
	sigdelset(&open, SIGCHLD);
	while ((got = waitpid(tid, ret_status, __WALL | WNOHANG)) == 0 && !stop.over)
		sigsuspend(&open);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return got == tid && WIFSTOPPED(*ret_status);
}

/* Is it a thread of the kernel for io_uring? It runs no code of the program; a stop would interrupt its I/O. */
static bool is_of_kernel(int tid)
{
	char name[16];

	task_line(stop.pid, tid, "comm", name, sizeof(name));
	return strncmp(name, "iou-", 4) == 0;
}

/*
 * Stop a thread; it is no error if the thread ends meanwhile.  If the time is over before the thread has
 * stopped, it may stop later, while this tool writes to a pipe that nobody reads: SIGCHLD's handler lets it go on then.
 */
static void hold(struct held *h)
{
	int status = 0;

	if (ptrace(PTRACE_SEIZE, h->tid, NULL, NULL) != 0) {
		const int error = errno;

		if (error == ESRCH || has_ended(h->tid))
			return;
		let_go();
		target_die(stop.target, EXIT_FORBIDDEN, "%d: thread %d cannot be stopped: %s", stop.pid,
			   h->tid, error == EPERM ? "another program traces it, or it is not allowed" :
						    strerror(error));
	}
	if (stop.began <= 0) {
		stop.began = now_ms();
		set_timer(stop.most);
	}
	/* Wait even if this fails because the thread is ending: scripts/process/live.c has the reason. */
	ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
	if (!has_stopped(h->tid, &status)) {
		late = stop.over ? h->tid : 0;
		/* It may have stopped just before. */
		let_late_go();
		return;
	}
	/* If a signal has stopped the thread, and not PTRACE_INTERRUPT, it must be sent again later. */
	h->signal = signal_of(status);
	h->stopped = true;
	if (stop.over)
		let_go();
}

void stop_begin(const struct target *t, double most_ms)
{
	const struct sigaction action = { .sa_handler = time_is_over };
	const struct sigaction changes = { .sa_handler = thread_changes, .sa_flags = SA_RESTART };
	struct tasks tasks;
	int monitor;

	tasks_read(&tasks, t->source.pid);
	monitor = monitor_of(t, &tasks);
	memset(&stop, 0, sizeof(stop));
	stop.target = t;
	stop.pid = t->source.pid;
	stop.most = most_ms > 0.1 ? most_ms : 0.1;
	stop.list = calloc(tasks.count + 1, sizeof(*stop.list));
	if (!stop.list)
		die(EXIT_OTHER, "no memory for %zu kernel threads", tasks.count);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGCHLD, &changes, NULL);
	/*
	 * While the process is stopped, this tool should not wait for a CPU, so it uses SCHED_FIFO if
	 * that is allowed.  A nice value would not help against processes of other sessions.
	 */
	stop.goes_first = sched_getscheduler(0) == SCHED_OTHER &&
			  sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ 1 }) == 0;
	for (size_t i = 0; i < tasks.count && !stop.over; i++) {
		struct held *h = &stop.list[i];

		h->tid = tasks.list[i].tid;
		h->switches = task_usage(t->source.pid, h->tid).switches;
		stop.count = i + 1;
		/* The monitor wakes up each 1 to 8 ms, so stop it even if it sleeps; EINTR does it no harm. */
		if (h->tid == monitor || (runs(h->tid) && !is_of_kernel(h->tid)))
			hold(h);
	}
	tasks_free(&tasks);
}

/* Have all threads that were not stopped slept all the time, and is there no new thread? */
static bool were_still(void)
{
	struct tasks tasks;
	bool still = !stop.over;

	tasks_read(&tasks, stop.pid);
	still &= tasks.count == stop.count;
	tasks_free(&tasks);
	for (size_t i = 0; still && i < stop.count; i++)
		still = stop.list[i].stopped ||
			(!runs(stop.list[i].tid) &&
			 task_usage(stop.pid, stop.list[i].tid).switches == stop.list[i].switches);
	return still;
}

bool stop_end(double *ret_stopped_ms)
{
	const bool still = were_still();

	set_timer(0);
	let_go();
	if (stop.goes_first)
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	*ret_stopped_ms = stop.began > 0 ? stop.ended - stop.began : 0;
	free(stop.list);
	memset(&stop, 0, sizeof(stop));
	return still;
}
