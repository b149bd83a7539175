/* SPDX-License-Identifier: MIT */
/* tests/programs/process/wait_handlers.c - a handler, or a cancellation, while the thread waits for a child. */
#include "check.h"

#include <sys/fsuid.h>

static volatile sig_atomic_t handled, forked = -1, reaped;
static volatile unsigned long turns;
static siginfo_t shared;	/* by a handler and its thread */
/* Only the test itself has the end that is written to: its children do not outlive it. */
static int lifeline[2];

struct waiter {
	int by_id;	/* waitid() */
	int want;	/* the errno, 0: the child */
	int forked_want;	/* the errno in the child that the handler forks */
	pid_t child;
};

/* A child that goes on until it is killed. */
static pid_t make_child(void)
{
	pid_t pid = fork();
	char c;

	CHECK(pid >= 0);
	if (pid == 0) {
		close(lifeline[1]);
		_exit(read(lifeline[0], &c, 1) == 0 ? 98 : 99);
	}
	return pid;
}

/* Returns the child or -1. */
static pid_t wait_for(int by_id, pid_t pid)
{
	siginfo_t info;
	int status;

	if (!by_id)
		return waitpid(pid, &status, 0);
	return waitid(P_PID, (id_t)pid, &info, WEXITED) ? -1 : info.si_pid;
}

static void handle(int sig, void (*handler)(int), int flags)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	handled = 0;
	CHECK_OK(sigaction(sig, &action, NULL));
}

/* A signal that is sent to the process may be handled soon after the call of a thread has returned. */
static void await_handled(int times)
{
	while (handled < times)
		usleep(1000);
	CHECK_INT(handled, times);
}

static void *computes(void *arg)
{
	const struct waiter *w = arg;

	event_post(&will_sleep);
	CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	wait_for(w->by_id, w->child);
	for (;;)
		turns++;
	return NULL;
}

/* The cancellation comes as the wait ends, so it may find the thread in the call, on its way out, or in the loop. */
static void cancelled(int by_id, int child_first)
{
	struct waiter w = { .by_id = by_id, .child = make_child() };
	pthread_t t = start_asleep(computes, &w);
	siginfo_t info = { .si_pid = 0 };
	pid_t ret;

	if (child_first)
		CHECK_OK(kill(w.child, SIGKILL));
	CHECK_OK(pthread_cancel(t));
	if (!child_first)
		CHECK_OK(kill(w.child, SIGKILL));
	/* Without a sleep, which would help the cancellation along.  The thread may reap the child, or not. */
	while (waitid(P_PID, (id_t)w.child, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && !info.si_pid)
		;
	CHECK(finish(t) == PTHREAD_CANCELED);
	ret = waitpid(w.child, NULL, 0);
	CHECK(ret == w.child || (ret == -1 && errno == ECHILD));
}

static void counts(int sig)
{
	(void)sig;
	handled++;
}

/*
 * A child that ends leaves no status.  Who sleeps in a wait for it looks once more before the handler runs, and finds
 * that there is no child, so this is no EINTR.  (It is one for a thread that has not yet gone to sleep.)
 */
static void leaves_no_status(int by_id)
{
	pid_t pid;

	handle(SIGCHLD, counts, SA_NOCLDWAIT);
	for (int i = 0; i < 3; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			await_asleep_in(getppid());
			_exit(1);
		}
		CHECK_ERR(wait_for(by_id, pid), ECHILD);
		/* Only this thread is there to handle it, which it does before the call returns. */
		CHECK_INT(handled, i + 1);
	}
	handle(SIGCHLD, SIG_DFL, 0);
}

static void *waits(void *arg)
{
	const struct waiter *w = arg;
	pid_t ret;

	event_post(&will_sleep);
	errno = 0;
	ret = wait_for(w->by_id, w->child);
	if (forked == 0)
		_exit(ret == -1 && errno == w->forked_want ? 0 : 1);
	CHECK(!w->want || errno == w->want);
	CHECK_INT(ret, w->want ? -1 : w->child);
	return NULL;
}

/* Changes what the kernel keeps for each thread, where a real-time policy is forbidden by what anybody may do. */
static void changes_thread(int sig)
{
	const int saved_errno = errno;
	struct sched_param param = { .sched_priority = 1 };

	(void)sig;
	if (sched_setscheduler(0, SCHED_FIFO, &param) == 0) {
		param.sched_priority = 0;
		CHECK_OK(sched_setscheduler(0, SCHED_OTHER, &param));
	} else {
		setfsuid(geteuid());
	}
	errno = saved_errno;
	handled++;
}

static void forks(int sig)
{
	const int saved_errno = errno;

	(void)sig;
	forked = fork();
	CHECK(forked >= 0);
	errno = saved_errno;
	handled++;
}

/* The handler runs in the wait.  Without SA_RESTART it ends it, and the child still runs then. */
static void handled_in_wait(void (*handler)(int), int by_id, int flags)
{
	struct waiter w = { .by_id = by_id, .child = make_child() };
	pthread_t t;
	int status;

	w.want = flags & SA_RESTART ? 0 : EINTR;
	w.forked_want = flags & SA_RESTART ? ECHILD : EINTR;
	forked = -1;
	handle(SIGUSR1, handler, flags);
	t = start_asleep(waits, &w);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	await_handled(1);
	if (handler == forks) {
		CHECK_INT(waitpid(forked, &status, 0), forked);
		CHECK_INT(status, 0);
	}
	if (w.want) {
		finish(t);
		CHECK_OK(kill(w.child, SIGKILL));
		CHECK_INT(waitpid(w.child, NULL, 0), w.child);
	} else {
		await_others();
		CHECK_INT(pthread_tryjoin_np(t, NULL), EBUSY);
		CHECK_OK(kill(w.child, SIGKILL));
		finish(t);
	}
	CHECK_INT(handled, 1);
}

static void reaps_all(int sig)
{
	const int saved_errno = errno;

	(void)sig;
	while (waitid(P_ALL, 0, &shared, WEXITED | WNOHANG) == 0 && shared.si_pid)
		reaped = shared.si_pid;
	errno = saved_errno;
	handled++;
}

/* First lets the handler reap another child, then ends. */
static pid_t ends_after(pid_t other)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		await_asleep_in(getppid());
		CHECK_OK(kill(other, SIGKILL));
		while (kill(other, 0) == 0)
			usleep(1000);
		await_asleep_in(getppid());
		_exit(7);
	}
	return pid;
}

/*
 * The handler writes into the information that the thread waits for, before the thread's child ends and when it ends:
 * then that no child has ended, for one is left.  The thread has got its child all the same.
 */
static void *shares(void *arg)
{
	const pid_t left = make_child(), other = make_child();
	pid_t own;

	mask_signal(SIG_UNBLOCK, SIGCHLD);
	reaped = 0;
	handle(SIGCHLD, reaps_all, SA_RESTART);
	own = ends_after(other);
	CHECK_OK(waitid(P_PID, (id_t)own, &shared, WEXITED));
	await_handled(2);
	CHECK_INT(reaped, other);
	CHECK_ERR(waitpid(own, NULL, 0), ECHILD);
	handle(SIGCHLD, SIG_DFL, 0);
	CHECK_OK(kill(left, SIGKILL));
	CHECK_INT(waitpid(left, NULL, 0), left);
	return arg;
}

static int later_by_id;

static void *waits_for_child(void *arg)
{
	event_post(&will_sleep);
	wait_for(later_by_id, *(pid_t *)arg);
	return arg;
}

static void *pauses(void *arg)
{
	event_post(&will_sleep);
	CHECK_ERR(pause(), EINTR);
	return arg;
}

/* A cancelled wait leaves nothing that keeps handlers from running in a later thread. */
static void cancelled_before_another(int by_id)
{
	pid_t child = make_child();
	pthread_t t;

	later_by_id = by_id;
	t = start_asleep(waits_for_child, &child);
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_OK(kill(child, SIGKILL));
	CHECK_INT(waitpid(child, NULL, 0), child);
	handle(SIGUSR1, counts, SA_RESTART);
	t = start_asleep(pauses, NULL);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
}

int main(void)
{
	CHECK_OK(pipe2(lifeline, O_CLOEXEC));
	for (int by_id = 0; by_id < 2; by_id++) {
		cancelled(by_id, 0);
		cancelled(by_id, 1);
		cancelled_before_another(by_id);
		leaves_no_status(by_id);
		handled_in_wait(changes_thread, by_id, 0);
		handled_in_wait(changes_thread, by_id, SA_RESTART);
		handled_in_wait(forks, by_id, 0);
		handled_in_wait(forks, by_id, SA_RESTART);
	}
	shares(NULL);
	/* So that the other thread gets it. */
	mask_signal(SIG_BLOCK, SIGCHLD);
	finish(start(shares, NULL));
	return success();
}
