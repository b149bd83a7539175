/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scripts/process/say.h"
#include "scripts/process/tasks.h"

static sigset_t waited_for(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return set;
}

void child_wait(long ns)
{
	const sigset_t set = waited_for();

	sigtimedwait(&set, NULL, &(struct timespec){ .tv_nsec = ns });
}

void child_trace(struct child *c)
{
	/*
	 * Never trace again while is_traced: another thread of the child may be in execve, which waits
	 * for the end of the first thread, and that waits for this tool. PTRACE_SEIZE would wait for the
	 * execve, so nothing would go on.
	 */
	if (c->is_traced)
		return;
	/* PTRACE_SEIZE fails with EPERM if another debugger traces the child, or the child has ended. */
	if (ptrace(PTRACE_SEIZE, c->pid, NULL, (void *)PTRACE_O_TRACEEXIT) == 0)
		c->is_traced = true;
}

/* In the child: wait at the gate, a pipe, until this tool traces the child; then execute words. */
static _Noreturn void become(char **words, const sigset_t *mask, int gate)
{
	char byte;

	while (read(gate, &byte, 1) < 0 && errno == EINTR)
		continue;
	close(gate);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execv(words[0], words);
	die(EXIT_OTHER, "%s: %s", words[0], strerror(errno));
}

void child_start(struct child *c, char **words)
{
	const sigset_t set = waited_for();
	sigset_t mask;
	int gate[2];

	if (pipe(gate) != 0)
		die(EXIT_OTHER, "pipe: %s", strerror(errno));
	sigprocmask(SIG_BLOCK, &set, &mask);
	*c = (struct child){ .pid = fork() };
	if (c->pid < 0)
		die(EXIT_OTHER, "fork: %s", strerror(errno));
	if (c->pid == 0) {
		close(gate[1]);
		become(words, &mask, gate[0]);
	}
	child_trace(c);
	close(gate[0]);
	close(gate[1]);
}

/* ---- what the child's first thread does ------------------------------------------------ */

/* The number of the system call that the thread is in; -1: none. */
static long call_of(pid_t pid, pid_t tid)
{
	char line[128];

	task_line(pid, tid, "syscall", line, sizeof(line));
	return *line >= '0' && *line <= '9' ? strtol(line, NULL, 10) : -1;
}

struct others {
	pid_t pid;
	size_t count;
	bool execs;			/* one of the other threads is in execve() */
};

static bool count_other(void *arg, int tid)
{
	struct others *o = arg;

	if (tid != o->pid) {
		const long call = call_of(o->pid, tid);

		o->count++;
		o->execs |= call == SYS_execve || call == SYS_execveat;
	}
	return true;
}

static struct others others(pid_t pid)
{
	struct others o = { .pid = pid };

	task_each(pid, count_other, &o);
	return o;
}

static void go_on(struct child *c, int signal)
{
	ptrace(PTRACE_CONT, c->pid, NULL, (void *)(intptr_t)signal);
}

static void stopped(struct child *c, int status)
{
	const int event = status >> 16, signal = WSTOPSIG(status);

	if (event == PTRACE_EVENT_EXIT) {
		/* If only this thread ends, and others go on, the process has not reached its end. */
		if (call_of(c->pid, c->pid) == SYS_exit && others(c->pid).count > 0) {
			c->is_traced = false;
			go_on(c, 0);
		} else {
			c->is_leaving = true;
		}
	} else if (event == PTRACE_EVENT_STOP &&
		   (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU)) {
		/* A job-control stop: leave the process stopped until it gets SIGCONT. */
		ptrace(PTRACE_LISTEN, c->pid, NULL, NULL);
	} else {
		go_on(c, event ? 0 : signal);
	}
}

bool child_ended(struct child *c)
{
	int status;

	while (c->pid && !c->is_leaving && waitpid(c->pid, &status, WNOHANG | __WALL) == c->pid) {
		if (WIFSTOPPED(status)) {
			stopped(c, status);
			continue;
		}
		c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		c->pid = 0;
		return true;
	}
	return false;
}

/* Another thread in execve() counts as still: it waits until all others have ended, and so for this tool. */
bool child_is_still(const struct child *c)
{
	struct others o;

	if (!c->is_leaving)
		return false;
	o = others(c->pid);
	return o.count == 0 || o.execs;
}

void child_let_go(struct child *c)
{
	if (!c->is_leaving)
		return;
	c->is_ending = !others(c->pid).execs;
	c->is_leaving = c->is_traced = false;
	ptrace(PTRACE_DETACH, c->pid, NULL, NULL);
}

void child_detach(struct child *c)
{
	int status;

	child_let_go(c);
	if (!c->pid || !c->is_traced || ptrace(PTRACE_INTERRUPT, c->pid, NULL, NULL) != 0)
		return;
	if (waitpid(c->pid, &status, __WALL) != c->pid)
		return;
	c->is_traced = false;
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_DETACH, c->pid, NULL,
		       (void *)(intptr_t)(status >> 16 ? 0 : WSTOPSIG(status)));
		return;
	}
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	c->pid = 0;
}
