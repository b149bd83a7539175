/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/watch.c - runs a command in a session of its own, and ends it if it hangs.
 *
 *	watch [-l SECONDS] [-q SECONDS] [-t FILE] COMMAND...
 *
 * A busy machine makes everything slow, so time that passes proves nothing.  All descendants of the
 * command are watched.  They hang when they
 *
 *	used less than QUIET_CPU_MS of CPU time in SECONDS (-q, default 60) in which none of their
 *	threads waited for a CPU,
 *	used more than SECONDS (-l, default 120) of CPU time together, or
 *	ran for longer than SECONDS (-l) would be on an idle machine: with N runnable threads per
 *	CPU, each second counts as 1/N.
 *
 * Then it says why on stderr, writes the backtraces of all their threads to FILE, kills them
 * all and exits with 124.  Otherwise the exit status is the command's, or 128 and the number
 * of the signal that killed it.  What the command leaves behind is killed, too.
 * SIGTERM, SIGINT and SIGHUP end the command and all it has started, and so does the death of
 * watch's own parent.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 2, QUIET_CPU_MS = 100, MOST = 4096 };

struct process {
	pid_t pid, parent;
	long ticks;	/* of CPU time, with those of its children that have ended */
	bool ours;
};

static struct process all[MOST];
static int count;
static pid_t child;

static void look_at(pid_t pid)
{
	struct process *p = &all[count];
	unsigned long t[4];
	char path[32], line[1024], *rest;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0)
		return;
	line[n] = 0;
	/* The name before it may have anything in it. */
	rest = strrchr(line, ')');
	if (!rest || sscanf(rest, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
			    &p->parent, &t[0], &t[1], &t[2], &t[3]) != 5)
		return;
	p->pid = pid;
	p->ticks = (long)(t[0] + t[1] + t[2] + t[3]);
	/* Those whose parent has ended come to us: PR_SET_CHILD_SUBREAPER. */
	p->ours = p->parent == getpid();
	count++;
}

/* Finds all that is ours; its CPU time so far, in milliseconds. */
static long look(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	long ticks = 0;
	bool more = true;

	count = 0;
	while (proc && count < MOST && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0)
			look_at(pid);
	}
	if (proc)
		closedir(proc);
	while (more) {
		more = false;
		for (int i = 0; i < count; i++)
			for (int j = 0; j < count && !all[i].ours; j++)
				if (all[j].ours && all[j].pid == all[i].parent)
					more = all[i].ours = true;
	}
	for (int i = 0; i < count; i++)
		if (all[i].ours)
			ticks += all[i].ticks;
	return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

/* The first line of a file of a thread of process pid; empty if the thread has ended. */
static const char *line_of(pid_t pid, const char *tid, const char *name)
{
	static char line[1024];
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/%s", (int)pid, tid, name);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		*line = 0;
	if (file)
		fclose(file);
	return line;
}

/* How long the thread has waited for a CPU, in seconds; without bound if it waits for one now. */
static double delay_of(pid_t pid, const char *tid)
{
	const char *rest = strrchr(line_of(pid, tid, "stat"), ')');
	unsigned long long ns = 0;

	/* The kernel adds a wait to the rest when it is over. */
	if (rest && strncmp(rest, ") R", 3) == 0)
		return INFINITY;
	sscanf(line_of(pid, tid, "schedstat"), "%*u %llu", &ns);
	return (double)ns / 1e9;
}

/* The delays of all threads that look() has found. */
static double delays(void)
{
	double sum = 0;

	for (int i = 0; i < count; i++) {
		char path[32];
		struct dirent *entry;
		DIR *tasks;

		snprintf(path, sizeof(path), "/proc/%d/task", (int)all[i].pid);
		tasks = all[i].ours ? opendir(path) : NULL;
		while (tasks && (entry = readdir(tasks)))
			if (*entry->d_name != '.')
				sum += delay_of(all[i].pid, entry->d_name);
		if (tasks)
			closedir(tasks);
	}
	return sum;
}

/* How many runnable threads there are per CPU, at least 1. */
static double load(void)
{
	FILE *f = fopen("/proc/loadavg", "re");
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double runnable = 1;

	if (f) {
		if (fscanf(f, "%*f %*f %*f %lf", &runnable) != 1)
			runnable = 1;
		fclose(f);
	}
	return runnable > (double)cpus ? runnable / (double)cpus : 1;
}

static void backtraces(const char *file)
{
	static const char script[] =
		"echo \"==== process $1: $(tr '\\0' ' ' <\"/proc/$1/cmdline\")\";"
		"grep -E '^(State|Threads|SigBlk|SigPnd|ShdPnd)' \"/proc/$1/status\";"
		"timeout -k 2 60 gdb -batch -nx -p \"$1\" -ex 'set pagination off'"
		" -ex 'info threads' -ex 'thread apply all bt 40' 2>/dev/null";
	char pid[16];

	for (int i = 0; i < count; i++) {
		pid_t shell;

		if (!all[i].ours)
			continue;
		snprintf(pid, sizeof(pid), "%d", (int)all[i].pid);
		shell = fork();
		if (!shell) {
			int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);

			dup2(fd, 1);
			dup2(open("/dev/null", O_WRONLY), 2);
			execlp("sh", "sh", "-c", script, "sh", pid, NULL);
			_exit(127);
		}
		waitpid(shell, NULL, 0);
	}
}

static void kill_all(void)
{
	look();
	for (int i = 0; i < count; i++)
		if (all[i].ours)
			kill(all[i].pid, SIGKILL);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Collects what has ended; true: the command has, with *ret_status. */
static bool has_ended(int *ret_status)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == child) {
			*ret_status = status;
			return true;
		}
	return false;
}

/* Looks every now and then; returns why it hangs, or NULL when it has ended. */
static const char *wait_or_hang(const sigset_t *signals, double limit, double most_quiet, int *ret_status)
{
	static char why[100];
	const double step = most_quiet < STEP ? most_quiet / 2 : STEP;
	double last = now(), quiet = 0, fair = 0, delay_then = 0;
	long cpu_then = 0;

	while (!has_ended(ret_status)) {
		const struct timespec wait = { (time_t)step, (long)((step - (double)(time_t)step) * 1e9) };
		int sig = sigtimedwait(signals, NULL, &wait);
		double passed = now() - last, delay;
		long cpu;

		if (sig == SIGCHLD)
			continue;
		if (sig > 0) {
			kill_all();
			exit(128 + sig);
		}
		last += passed;
		/* If watch waits for a CPU, so do others. */
		passed = passed < 2 * step ? passed : step;
		fair += passed / load();
		cpu = look();
		delay = delays();
		/* Both are less than before where a process or a thread has ended. */
		if (cpu < cpu_then || cpu - cpu_then >= QUIET_CPU_MS) {
			cpu_then = cpu;
			quiet = 0;
		} else if (delay >= delay_then && delay - delay_then < passed) {
			quiet += passed - (delay - delay_then);
		}
		delay_then = delay;
		if (quiet >= most_quiet)
			snprintf(why, sizeof(why), "less than %d ms of CPU time in %.0f s, and wanted no more",
				 QUIET_CPU_MS, most_quiet);
		else if ((double)cpu / 1000 > limit)
			snprintf(why, sizeof(why), "more than %.0f s of CPU time", limit);
		else if (fair > limit)
			snprintf(why, sizeof(why), "more than %.0f s, as on an idle machine",
				 limit);
		else
			continue;
		return why;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *why, *traces = NULL;
	double limit = 120, quiet = 60;
	sigset_t signals, old;
	int option, status;
	pid_t parent = getppid(), left;

	while ((option = getopt(argc, argv, "+l:q:t:")) > 0) {
		if (option == 'l')
			limit = atof(optarg);
		else if (option == 'q')
			quiet = atof(optarg);
		else if (option == 't')
			traces = optarg;
		else
			return 2;
	}
	if (optind >= argc || limit <= 0 || quiet <= 0) {
		fputs("usage: watch [-l SECONDS] [-q SECONDS] [-t FILE] COMMAND...\n", stderr);
		return 2;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &old);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (getppid() != parent)
		return 143;
	child = fork();
	if (child < 0) {
		perror("watch: fork");
		return 125;
	}
	if (!child) {
		setsid();
		sigprocmask(SIG_SETMASK, &old, NULL);
		execvp(argv[optind], argv + optind);
		fprintf(stderr, "watch: %s: %s\n", argv[optind], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	why = wait_or_hang(&signals, limit, quiet, &status);
	if (why) {
		fprintf(stderr, "watch: it hangs: %s\n", why);
		if (traces)
			backtraces(traces);
		kill_all();
		waitpid(child, &status, 0);
		return 124;
	}
	/* Whatever it has left behind goes, as well. */
	while ((left = waitpid(-1, NULL, WNOHANG)) > 0)
		continue;
	if (left == 0)
		kill_all();
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
