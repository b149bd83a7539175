/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/vfork_waits.c - a child of vfork waits for a thread of its parent before it
 * executes or exits: only the thread that has called vfork is suspended, until then.
 */
#include "check.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { ROUNDS = 20, CALLERS = 3 };

struct pair {
	int to_thread[2], to_child[2];
	atomic_int *leaves;		/* shared: the child is about to execute or to end */
	atomic_int signals;
};

static _Thread_local atomic_int *handled;

static void handle(int sig)
{
	(void)sig;
	if (handled)
		(*handled)++;
}

static atomic_int *shared(void)
{
	void *page = mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	return page;
}

/* It reads when the child is made, or only then begins to. */
static void *answers(void *arg)
{
	struct pair *p = arg;
	char c;

	CHECK_INT(read(p->to_thread[0], &c, 1), 1);
	CHECK_INT(write(p->to_child[1], &c, 1), 1);
	return NULL;
}

static void child(const struct pair *p, int how)
{
	char *argv[] = { "sh", "-c", "exit 5", NULL };
	char c = 'x';

	if (write(p->to_thread[1], &c, 1) != 1 || read(p->to_child[0], &c, 1) != 1 || c != 'x')
		_exit(99);
	if (how)
		usleep(1000);
	*p->leaves = 1;
	if (how == 1)
		execv("/bin/sh", argv);
	if (how == 2)
		kill(getpid(), SIGKILL);
	_exit(5);
}

static pid_t make_child(const struct pair *p, int how, int by)
{
	pid_t pid = by ? (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) : vfork();

	CHECK(pid >= 0);
	if (!pid)
		child(p, how);
	return pid;
}

static void once(struct pair *p, int how, int by)
{
	pthread_t t;
	int status;
	pid_t pid;

	CHECK_OK(pipe2(p->to_thread, O_CLOEXEC));
	CHECK_OK(pipe2(p->to_child, O_CLOEXEC));
	*p->leaves = 0;
	t = start(answers, p);
	if (how % 2)
		settle();
	pid = make_child(p, how, by);
	CHECK_INT(*p->leaves, 1);
	while (waitpid(pid, &status, 0) != pid)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, how == 2 ? SIGKILL : 5 << 8);
	CHECK(!finish(t));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(close(p->to_thread[i]));
		CHECK_OK(close(p->to_child[i]));
	}
}

static void *calls(void *arg)
{
	struct pair p = { .leaves = shared() };

	for (int i = 0; i < ROUNDS; i++)
		once(&p, i % 3, i % 2);
	return arg;
}

/* A signal for the caller is handled when vfork has returned, and not before. */
static void *is_signalled(void *arg)
{
	struct pair *p = arg;
	int status;
	pid_t pid;

	handled = &p->signals;
	pid = vfork();
	CHECK(pid >= 0);
	if (!pid)
		child(p, 0);
	CHECK_INT(p->signals, 1);
	while (waitpid(pid, &status, 0) != pid)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, 5 << 8);
	return NULL;
}

static void signals(void)
{
	struct pair p = { .leaves = shared() };
	pthread_t t;
	char c;

	CHECK_OK(pipe(p.to_thread));
	CHECK_OK(pipe(p.to_child));
	t = start(is_signalled, &p);
	CHECK_INT(read(p.to_thread[0], &c, 1), 1);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	usleep(20000);
	CHECK_INT(p.signals, 0);
	CHECK_INT(write(p.to_child[1], &c, 1), 1);
	CHECK(!finish(t));
}

int main(void)
{
	const struct sigaction action = { .sa_handler = handle };
	pthread_t t[CALLERS];

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	calls(NULL);
	puts("the main thread");
	signals();
	puts("a signal meanwhile");
	for (int i = 0; i < CALLERS; i++)
		t[i] = start(calls, NULL);
	for (int i = 0; i < CALLERS; i++)
		CHECK(!finish(t[i]));
	return success();
}
