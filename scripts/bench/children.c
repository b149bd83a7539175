/* SPDX-License-Identifier: MIT */
#include "scripts/bench/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scripts/bench/number.h"
#include "scripts/bench/proc.h"

enum { STOP_MS = 5000 };	/* time from SIGTERM to SIGKILL */

struct children children = { .name = "the program" };

static sigset_t taken, original_mask;

static void note(const char *fmt, va_list ap)
{
	fprintf(stderr, "fiberize bench: %s: ", children.name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
}

void die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
	exit(status);
}

void take_signals(void)
{
	static const int wanted[] = { SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM };

	sigemptyset(&taken);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		sigaddset(&taken, wanted[i]);
	sigprocmask(SIG_BLOCK, &taken, &original_mask);
	/*
	 * A background process may inherit these signals as ignored. Then nap() may not see them, though they
	 * are blocked; and if SIGCHLD is ignored, the kernel keeps no status of a child that has ended.
	 */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
}

/* Collect all children that have ended, orphans of the server included. */
static void reap(void)
{
	struct rusage ru;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &ru)) > 0) {
		if (pid == children.load) {
			children.load_gone = true;
			children.load_status = status;
			continue;
		}
		if (pid == children.server) {
			children.server_gone = true;
			children.server_status = status;
		}
		children.dead_voluntary += (double)ru.ru_nvcsw;
		children.dead_involuntary += (double)ru.ru_nivcsw;
	}
}

void nap(double ms)
{
	struct timespec ts = { (time_t)(ms / 1e3), (long)((long long)(ms * 1e6) % 1000000000) };
	int sig = sigtimedwait(&taken, NULL, &ts);

	if (sig > 0 && sig != SIGCHLD && !children.interrupted)
		children.interrupted = sig;
	reap();
}

pid_t spawn(char **argv, const char *log, int failed_status)
{
	pid_t parent = getpid();
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	if (out < 0 || null < 0)
		die(failed_status, "%s: %s", log, strerror(errno));
	pid = fork();
	if (pid < 0)
		die(failed_status, "fork: %s", strerror(errno));
	if (pid) {
		close(out);
		close(null);
		return pid;
	}
	/* In its own process group the child gets no Ctrl-C. Only measure gets it, and stops all in order. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(failed_status);
	/* The child may have inherited these signals as ignored, from a shell without job control. */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	sigprocmask(SIG_SETMASK, &original_mask, NULL);
	dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void kill_tree(int sig)
{
	struct fz_tree t = fz_tree_find(children.load);

	for (size_t i = 0; i < t.n; i++)
		kill(t.pid[i], sig);
	free(t.pid);
}

static bool tree_empty(void)
{
	struct fz_tree t = fz_tree_find(children.load);

	free(t.pid);
	return !t.n;
}

void stop_load(void)
{
	if (!children.load)
		return;
	/* sh may have started more processes in its process group: signal the whole group. */
	kill(-children.load, SIGTERM);
	for (double until = now_ns() / 1e6 + 1000; !children.load_gone && now_ns() / 1e6 < until;)
		nap(20);
	kill(-children.load, SIGKILL);
	while (!children.load_gone)
		nap(20);
}

void stop_server(void)
{
	double until = now_ns() / 1e6 + STOP_MS;

	if (!children.server_gone)
		kill(children.server, SIGTERM);
	else
		kill_tree(SIGTERM);
	while (now_ns() / 1e6 < until && !(children.server_gone && tree_empty())) {
		bool was_gone = children.server_gone;

		nap(20);
		if (children.server_gone && !was_gone)
			kill_tree(SIGTERM);
	}
	if (!children.server_gone || !tree_empty()) {
		warn("still there %d seconds after SIGTERM: killed", STOP_MS / 1000);
		while (!children.server_gone || !tree_empty()) {
			kill_tree(SIGKILL);
			nap(20);
		}
	}
	reap();
}

void describe(int status, char *buf, size_t len)
{
	if (WIFSIGNALED(status))
		snprintf(buf, len, "signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(buf, len, "exit status %d", WEXITSTATUS(status));
}

void fail(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
	stop_load();
	stop_server();
	exit(status);
}

bool server_ended(void)
{
	return children.server_gone && tree_empty();
}

bool server_ends(void)
{
	bool empty = false, ended = server_ended();

	while (!ended && !empty && !children.interrupted) {
		/*
		 * tree_empty() leaves out zombies. A process whose first thread has ended looks like
		 * a zombie while its other threads go on, so an empty tree is waited for only once.
		 */
		empty = tree_empty();
		if (!empty && !fz_tree_ends(children.load))
			break;
		nap(10);
		ended = server_ended();
	}
	return ended;
}
