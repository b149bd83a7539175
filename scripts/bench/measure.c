/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/measure.c - one round of "fiberize bench": start the server, load it, stop it.
 *
 *	measure [-n name] [-p port] [-w seconds] [-e environment]
 *		-s serverlog -l loadlog LOAD -- SERVER [ARGS]
 *
 * Starts SERVER, waits until SERVER (or a descendant) listens on TCP, runs LOAD by
 * sh -c with {port} and {host} replaced, stops SERVER, and prints what the load
 * cost SERVER, one "name value" per line:
 *
 *	port, host		where SERVER listened
 *	load_seconds		how long LOAD ran
 *	cpu_us			CPU time of all SERVER's processes during LOAD
 *	switches_voluntary	from the beginning of LOAD to the end of SERVER
 *	switches_involuntary
 *	peak_kb			sum of the largest resident sets of SERVER's processes
 *
 * Sources of the figures, chosen so that threads which have ended still count:
 * the CPU time of a process from its CPU clock, to the nanosecond, plus the time of
 * children that it has waited for (/proc/PID/stat); context switches from wait4's rusage,
 * less those of the threads alive when LOAD began.
 *
 * No process is left behind: measure is the reaper of SERVER's orphans, and kills what
 * does not end within 5 seconds of SIGTERM.  Signals are blocked all the
 * time and taken by sigtimedwait, so there are no handlers.
 *
 * Exit status: 0, 2 bad command line, 110 SERVER ended too early, 111 it never
 * listened, 112 LOAD failed, 114 the port is taken or measure itself failed,
 * 128 + signal if interrupted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
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

enum {
	EXIT_USAGE = 2,
	EXIT_ENDED = 110,
	EXIT_SILENT = 111,
	EXIT_LOAD = 112,
	EXIT_OURS = 114,

	STOP_MS = 5000,		/* between SIGTERM and SIGKILL */
};

static const char *name = "the program";
static pid_t server, load;
static bool server_gone, load_gone;
static int server_status, load_status;
static double dead_voluntary, dead_involuntary;
static sigset_t taken, original_mask;
static int interrupted;

static void note(const char *fmt, va_list ap)
{
	fprintf(stderr, "fiberize bench: %s: ", name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

__attribute__((format(printf, 1, 2)))
static void warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
}

/* Only before the server is started; afterwards fail() stops the server first. */
__attribute__((format(printf, 2, 3), noreturn))
static void die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
	exit(status);
}

/* Collect all children that have ended, orphans of the server included. */
static void reap(void)
{
	struct rusage ru;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &ru)) > 0) {
		if (pid == load) {
			load_gone = true;
			load_status = status;
			continue;
		}
		if (pid == server) {
			server_gone = true;
			server_status = status;
		}
		dead_voluntary += (double)ru.ru_nvcsw;
		dead_involuntary += (double)ru.ru_nivcsw;
	}
}

/* Wait at most ms for a signal, and act on it. */
static void nap(double ms)
{
	struct timespec ts = { (time_t)(ms / 1e3), (long)((long long)(ms * 1e6) % 1000000000) };
	int sig = sigtimedwait(&taken, NULL, &ts);

	if (sig > 0 && sig != SIGCHLD && !interrupted)
		interrupted = sig;
	reap();
}

static pid_t spawn(char **argv, const char *log)
{
	pid_t parent = getpid();
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	if (out < 0 || null < 0)
		die(EXIT_OURS, "%s: %s", log, strerror(errno));
	pid = fork();
	if (pid < 0)
		die(EXIT_OURS, "fork: %s", strerror(errno));
	if (pid) {
		close(out);
		close(null);
		return pid;
	}
	/* Own group: Ctrl-C reaches measure only, which stops all processes in order. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_OURS);
	/* A shell without job control ignores these signals in background processes. */
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
	struct fz_tree t = fz_tree_find(load);

	for (size_t i = 0; i < t.n; i++)
		kill(t.pid[i], sig);
	free(t.pid);
}

static bool tree_empty(void)
{
	struct fz_tree t = fz_tree_find(load);

	free(t.pid);
	return !t.n;
}

static void stop_load(void)
{
	if (!load)
		return;
	/* sh may have started others in its group. */
	kill(-load, SIGTERM);
	for (double until = now_ns() / 1e6 + 1000; !load_gone && now_ns() / 1e6 < until;)
		nap(20);
	kill(-load, SIGKILL);
	while (!load_gone)
		nap(20);
}

/*
 * SIGTERM goes to the process that was started, as from an init system; that process has to
 * stop its children, until it has ended or the time is up.
 */
static void stop_server(void)
{
	double until = now_ns() / 1e6 + STOP_MS;

	if (!server_gone)
		kill(server, SIGTERM);
	else
		kill_tree(SIGTERM);
	while (now_ns() / 1e6 < until && !(server_gone && tree_empty())) {
		bool was_gone = server_gone;

		nap(20);
		if (server_gone && !was_gone)
			kill_tree(SIGTERM);
	}
	if (!server_gone || !tree_empty()) {
		warn("still there %d seconds after SIGTERM: killed", STOP_MS / 1000);
		while (!server_gone || !tree_empty()) {
			kill_tree(SIGKILL);
			nap(20);
		}
	}
	reap();
}

static void describe(int status, char *buf, size_t len)
{
	if (WIFSIGNALED(status))
		snprintf(buf, len, "signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(buf, len, "exit status %d", WEXITSTATUS(status));
}

__attribute__((format(printf, 2, 3), noreturn))
static void fail(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
	stop_load();
	stop_server();
	exit(status);
}

static void check_interrupt(void)
{
	if (!interrupted)
		return;
	stop_load();
	stop_server();
	exit(128 + interrupted);
}

/* A daemon's first process ends at once, its descendants go on. */
static bool server_ended(void)
{
	return server_gone && tree_empty();
}

static void wait_listening(unsigned port, double seconds, struct fz_listener *ret_l)
{
	double until = now_ns() / 1e6 + seconds * 1e3;
	char how[96];

	while (!fz_tree_listens(load, port, ret_l)) {
		check_interrupt();
		if (server_ended()) {
			describe(server_status, how, sizeof(how));
			fail(EXIT_ENDED, "the program ended with %s before it listened", how);
		}
		if (now_ns() / 1e6 >= until) {
			if (port)
				fail(EXIT_SILENT, "does not listen on port %u after %g seconds",
				     port, seconds);
			fail(EXIT_SILENT, "does not listen on any TCP port after %g seconds",
			     seconds);
		}
		nap(10);
	}
	if (port)
		return;
	/*
	 * The server may open several ports one after the other; choose the same port in each
	 * round.
	 */
	nap(50);
	if (fz_tree_listens(load, 0, ret_l) > 1)
		warn("listens on several ports; %u is taken (see --port)", ret_l->port);
}

/* A copy of text with each key replaced by value; from malloc. */
static char *substitute(const char *text, const char *key, const char *value)
{
	size_t len = strlen(text) + 1;
	char *out, *o;

	for (const char *p = text; (p = strstr(p, key)); p += strlen(key))
		len += strlen(value);
	out = o = malloc(len);
	if (!out)
		die(EXIT_OURS, "out of memory");
	while (*text) {
		if (!strncmp(text, key, strlen(key))) {
			o = stpcpy(o, value);
			text += strlen(key);
		} else {
			*o++ = *text++;
		}
	}
	*o = '\0';
	return out;
}

static void run_load(const char *command, const struct fz_listener *l, const char *log)
{
	char port[16], how[96];
	char *with_port, *argv[4] = { "sh", "-c", NULL, NULL };

	snprintf(port, sizeof(port), "%u", l->port);
	with_port = substitute(command, "{port}", port);
	argv[2] = substitute(with_port, "{host}", l->host);
	load = spawn(argv, log);
	while (!load_gone) {
		nap(200);
		check_interrupt();
		/* Report the program's end, not LOAD's failure. */
		if (server_ended()) {
			describe(server_status, how, sizeof(how));
			fail(EXIT_ENDED, "the program ended with %s under load", how);
		}
	}
	if (load_status) {
		describe(load_status, how, sizeof(how));
		fail(EXIT_LOAD, "the load command ended with %s: %s", how, argv[2]);
	}
	free(with_port);
	free(argv[2]);
}

/* Closing the connections is part of the server's work: wait for it. */
static struct fz_figures settle(void)
{
	struct fz_figures last = fz_tree_measure(load);

	for (int i = 0; i < 10; i++) {
		struct fz_figures f;

		nap(20);
		check_interrupt();
		f = fz_tree_measure(load);
		if (f.cpu_us - last.cpu_us < 200)
			return f;
		last = f;
	}
	return last;
}

static void take_signals(void)
{
	static const int wanted[] = { SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM };

	sigemptyset(&taken);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		sigaddset(&taken, wanted[i]);
	sigprocmask(SIG_BLOCK, &taken, &original_mask);
	/* Ignored signals are not queued, and a background process may inherit them ignored. */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
}

static void print_figures(const struct fz_listener *l, const struct fz_figures *before,
			  const struct fz_figures *after, double load_ms)
{
	printf("port %u\n", l->port);
	printf("host %s\n", l->host);
	printf("load_seconds %.3f\n", load_ms / 1e3);
	printf("cpu_us %.0f\n", after->cpu_us - before->cpu_us);
	printf("switches_voluntary %.0f\n", dead_voluntary - before->voluntary);
	printf("switches_involuntary %.0f\n", dead_involuntary - before->involuntary);
	printf("peak_kb %.0f\n", after->peak_kb);
}

struct options {
	const char *serverlog, *loadlog;
	unsigned port;
	double seconds;
};

static struct options parse(int argc, char **argv)
{
	struct options o = { .seconds = 10 };
	int opt;

	while ((opt = getopt(argc, argv, "+n:p:w:e:s:l:")) != -1) {
		switch (opt) {
		case 'n': name = optarg; break;
		case 'p': o.port = (unsigned)to_number(optarg, "-p", 1, 65535); break;
		case 'w': o.seconds = to_number(optarg, "-w", 0, 86400); break;
		case 'e': fz_environment_become(optarg); break;
		case 's': o.serverlog = optarg; break;
		case 'l': o.loadlog = optarg; break;
		default:
			optind = argc;
		}
	}
	if (argc - optind < 3 || strcmp(argv[optind + 1], "--") || !o.serverlog || !o.loadlog) {
		fputs("usage: measure [-n name] [-p port] [-w seconds] [-e environment]"
		      " -s serverlog -l loadlog LOAD -- SERVER [ARGS]\n", stderr);
		exit(EXIT_USAGE);
	}
	return o;
}

int main(int argc, char **argv)
{
	const struct options o = parse(argc, argv);
	struct fz_figures before, after;
	struct fz_listener l;
	double begun, ended;
	pid_t parent = getppid();

	take_signals();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return EXIT_OURS;

	if (o.port && fz_listener_find(getpid(), false, o.port, &l))
		die(EXIT_OURS, "port %u is in use by another process", o.port);

	server = spawn(argv + optind + 2, o.serverlog);
	wait_listening(o.port, o.seconds, &l);
	before = fz_tree_measure(load);
	before.voluntary += dead_voluntary;
	before.involuntary += dead_involuntary;
	begun = now_ns() / 1e6;
	run_load(argv[optind], &l, o.loadlog);
	ended = now_ns() / 1e6;
	after = settle();
	if (server_ended())
		fail(EXIT_ENDED, "the program ended under load");
	stop_server();
	if (WIFSIGNALED(server_status) && WTERMSIG(server_status) != SIGTERM &&
	    WTERMSIG(server_status) != SIGKILL)
		warn("ended with signal %d (%s) when it was stopped", WTERMSIG(server_status),
		     strsignal(WTERMSIG(server_status)));

	print_figures(&l, &before, &after, ended - begun);
	return interrupted ? 128 + interrupted : 0;
}
