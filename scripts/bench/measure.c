/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/measure.c - one round of "fiberize bench": start the server, load it, stop it.
 *
 *	measure [-n name] [-p port] [-w seconds] [-e environment] [-r record]
 *		-s serverlog -l loadlog LOAD -- SERVER [ARGS]
 *	measure --keep <record	(keep.h)
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
 *	descriptors_left	how many descriptors more SERVER has after LOAD than before
 *
 * With -r it writes the directory, program and command line of the process that listens to a file
 * (scripts/machine/measured.h).
 *
 * Sources of the figures, chosen so that threads which have ended still count:
 * the CPU time of a process from its CPU clock, to the nanosecond, plus the time of
 * children that it has waited for (/proc/PID/stat); context switches from wait4's rusage at
 * the end, less those that SERVER's live threads had made before LOAD began.
 *
 * No process is left behind: measure becomes the parent of SERVER's orphans, and kills each
 * process that does not end within 5 seconds of SIGTERM.  Signals are always blocked and
 * taken by sigtimedwait, so there are no handlers.
 *
 * Exit status: 0, 2 bad command line, 110 SERVER ended too early, 111 it never
 * listened, or on several ports without -p, 112 LOAD failed, 114 the port is taken or measure itself failed,
 * 128 + signal if interrupted.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scripts/bench/children.h"
#include "scripts/bench/keep.h"
#include "scripts/bench/number.h"
#include "scripts/bench/proc.h"
#include "scripts/machine/measured.h"

enum {
	EXIT_USAGE = 2,
	EXIT_ENDED = 110,
	EXIT_SILENT = 111,
	EXIT_LOAD = 112,
	EXIT_OURS = 114,

	LEAK = 8,		/* fewer than 8 more descriptors are not taken for a leak */
	LEAK_MS = 1000,		/* if none is closed for 1000 ms, those still open have leaked */
};

static void check_interrupt(void)
{
	if (!children.interrupted)
		return;
	stop_load();
	stop_server();
	exit(128 + children.interrupted);
}

/* Fail if the server listens on several ports: each round could measure another one. */
static void refuse_several(struct fz_listener *ret_l)
{
	if (fz_tree_listens(children.load, 0, ret_l) > 1)
		fail(EXIT_SILENT, "listens on several ports (the lowest is %u); choose one with --port",
		     ret_l->port);
}

static void wait_listening(unsigned port, double seconds, struct fz_listener *ret_l)
{
	double until = now_ns() / 1e6 + seconds * 1e3;
	char how[96];

	while (!fz_tree_listens(children.load, port, ret_l)) {
		check_interrupt();
		if (server_ended()) {
			describe(children.server_status, how, sizeof(how));
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
	 * The server may open several ports one after the other. Wait for the others, so that each
	 * round sees all ports.
	 */
	nap(50);
	refuse_several(ret_l);
}

/* Returns a copy of text in which each key is replaced by value; the caller frees it. */
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

/* If the program has ended, fail with its status: LOAD's failure is only a consequence. */
static void check_end(bool ended)
{
	char how[96];

	if (!ended)
		return;
	describe(children.server_status, how, sizeof(how));
	fail(EXIT_ENDED, "the program ended with %s under load", how);
}

static void run_load(const char *command, const struct fz_listener *l, const char *log)
{
	char port[16], how[96];
	char *with_port, *argv[4] = { "sh", "-c", NULL, NULL };

	snprintf(port, sizeof(port), "%u", l->port);
	with_port = substitute(command, "{port}", port);
	argv[2] = substitute(with_port, "{host}", l->host);
	children.load = spawn(argv, log, EXIT_OURS);
	while (!children.load_gone) {
		nap(200);
		check_interrupt();
		check_end(server_ended());
	}
	if (children.load_status) {
		check_end(server_ends());
		describe(children.load_status, how, sizeof(how));
		fail(EXIT_LOAD, "the load command ended with %s: %s", how, argv[2]);
	}
	free(with_port);
	free(argv[2]);
}

/*
 * Wait, at most 200 ms, until the server uses little CPU time, and return its figures. After the
 * load the server still closes connections, and that counts as its work.
 */
static struct fz_figures settle(void)
{
	struct fz_figures last = fz_tree_measure(children.load);

	for (int i = 0; i < 10; i++) {
		struct fz_figures f;

		nap(20);
		check_interrupt();
		f = fz_tree_measure(children.load);
		if (f.cpu_us - last.cpu_us < 200)
			return f;
		last = f;
	}
	return last;
}

/* Wait while the program still closes descriptors. Returns how many more are open than before. */
static long leaked(size_t before)
{
	double until = now_ns() / 1e6 + LEAK_MS;
	long left, last = (long)fz_tree_descriptors(children.load) - (long)before;

	while (last >= LEAK && now_ns() / 1e6 < until) {
		nap(20);
		check_interrupt();
		left = (long)fz_tree_descriptors(children.load) - (long)before;
		if (left < last)
			until = now_ns() / 1e6 + LEAK_MS;
		last = left;
	}
	return last > 0 ? last : 0;
}

static void print_figures(const struct fz_listener *l, const struct fz_figures *before,
			  const struct fz_figures *after, double load_ms)
{
	printf("port %u\n", l->port);
	printf("host %s\n", l->host);
	printf("load_seconds %.3f\n", load_ms / 1e3);
	printf("cpu_us %.0f\n", after->cpu_us - before->cpu_us);
	printf("switches_voluntary %.0f\n", children.dead_voluntary - before->voluntary);
	printf("switches_involuntary %.0f\n", children.dead_involuntary - before->involuntary);
	printf("peak_kb %.0f\n", after->peak_kb);
}

struct options {
	const char *serverlog, *loadlog, *record;
	unsigned port;
	double seconds;
};

/* What is not written here is not recorded: the figures do not depend on it. */
static void write_record(const char *file, pid_t pid)
{
	char *key = measured_key(pid, getpid());
	FILE *out = key ? fopen(file, "we") : NULL;

	if (out) {
		fprintf(out, "%s\n", key);
		fclose(out);
	}
	free(key);
}

static struct options parse(int argc, char **argv)
{
	struct options o = { .seconds = 10 };
	int opt;

	while ((opt = getopt(argc, argv, "+n:p:w:e:r:s:l:")) != -1) {
		switch (opt) {
		case 'n': children.name = optarg; break;
		case 'p': o.port = (unsigned)to_number(optarg, "-p", 1, 65535); break;
		case 'w': o.seconds = to_number(optarg, "-w", 0, 86400); break;
		case 'e': fz_environment_become(optarg); break;
		case 'r': o.record = optarg; break;
		case 's': o.serverlog = optarg; break;
		case 'l': o.loadlog = optarg; break;
		default:
			optind = argc;
		}
	}
	if (argc - optind < 3 || strcmp(argv[optind + 1], "--") || !o.serverlog || !o.loadlog) {
		fputs("usage: measure [-n name] [-p port] [-w seconds] [-e environment] [-r record]"
		      " -s serverlog -l loadlog LOAD -- SERVER [ARGS]\n", stderr);
		exit(EXIT_USAGE);
	}
	return o;
}

static int measure(int argc, char **argv)
{
	const struct options o = parse(argc, argv);
	struct fz_figures before, after;
	size_t descriptors;
	struct fz_listener l;
	double begun, ended;
	long left;
	pid_t parent = getppid();

	take_signals();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return EXIT_OURS;

	if (o.port && fz_listener_find(getpid(), false, o.port, &l))
		die(EXIT_OURS, "port %u is in use by another process", o.port);

	children.server = spawn(argv + optind + 2, o.serverlog, EXIT_OURS);
	wait_listening(o.port, o.seconds, &l);
	if (o.record)
		write_record(o.record, l.pid);
	descriptors = fz_tree_descriptors(children.load);
	before = fz_tree_measure(children.load);
	before.voluntary += children.dead_voluntary;
	before.involuntary += children.dead_involuntary;
	begun = now_ns() / 1e6;
	run_load(argv[optind], &l, o.loadlog);
	ended = now_ns() / 1e6;
	after = settle();
	left = leaked(descriptors);
	if (server_ended())
		fail(EXIT_ENDED, "the program ended under load");
	if (!o.port)
		refuse_several(&l);
	stop_server();
	if (WIFSIGNALED(children.server_status) && WTERMSIG(children.server_status) != SIGTERM &&
	    WTERMSIG(children.server_status) != SIGKILL)
		warn("ended with signal %d (%s) when it was stopped", WTERMSIG(children.server_status),
		     strsignal(WTERMSIG(children.server_status)));

	print_figures(&l, &before, &after, ended - begun);
	printf("descriptors_left %ld\n", left);
	return children.interrupted ? 128 + children.interrupted : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--keep") == 0)
		return keep(STDIN_FILENO) ? 0 : EXIT_OURS;
	return measure(argc, argv);
}
