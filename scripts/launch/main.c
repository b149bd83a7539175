/* SPDX-License-Identifier: MIT */
/*
 * scripts/launch/main.c - fiberize: run a program with its threads as fibers.
 *
 *	fiberize [run] [options] [--] PROGRAM [ARGS]
 *	fiberize [options] check [--json] [--] PROGRAM
 *	fiberize [options] check --running [--json] [SECONDS]
 *	fiberize [options] bench [bench options] -- PROGRAM [ARGS]
 *	fiberize ps|bt|stat|top|trace [options] {PID|--core FILE}
 *	fiberize status [--json]
 *	fiberize [options] enable|disable|status [--root DIR] SERVICE
 *	fiberize kubernetes --image IMAGE [kubernetes options]
 *
 * It sets LD_PRELOAD and the FIBERIZE_ variables and executes PROGRAM in its place.  So process id,
 * signals, exit status and standard streams are PROGRAM's own.  A program into which no library can
 * be preloaded is refused; each reason has a message and an exit code.
 *
 *	settings	flags, variables and profiles; runtime/base/options.def has the list
 *	installed	the library and the other parts
 *	run		finds, judges (scripts/check/) and starts the program
 *	bench		the options of "fiberize bench"; scripts/bench/bench.sh does the work
 *	service		enable, disable and status of a service; scripts/service/service.sh does the work
 *	kubernetes	manifests for Kubernetes; scripts/kubernetes/kubernetes.sh does the work
 *	usage		what --help prints
 *	inspect		ps, bt, stat, top, trace and status: another program looks at processes
 *	say		messages, exit codes
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "installed.h"
#include "kubernetes.h"
#include "run.h"
#include "say.h"
#include "scripts/check/report.h"
#include "scripts/machine/running.h"
#include "service.h"
#include "settings.h"
#include "usage.h"

static bool is(const char *word, const char *other)
{
	return strcmp(word, other) == 0;
}

/* ---- check -------------------------------------------------------------- */

static _Noreturn void wrong_check(const char *what, const char *why)
{
	die(EXIT_USAGE, "check: %s%s; fiberize check [--json] {[--root DIR] [--] PROGRAM | --running [SECONDS]}",
	    what, why);
}

struct check {
	const char *program, *root;
	double seconds;			/* --running */
	bool json, running;
};

static double seconds_of(const char *word)
{
	char *end;
	const double seconds = strtod(word, &end);

	if (end == word || *end || !(seconds >= 0.1 && seconds <= 3600))
		wrong_check(word, ": not a number of seconds, 0.1 to 3600");
	return seconds;
}

static void check_options(char **words, struct check *ret)
{
	*ret = (struct check){ .seconds = 3 };
	for (; *words && **words == '-'; words++) {
		if (is(*words, "--")) {
			words++;
			break;
		}
		usage_if_wanted(*words, usage_check);
		if (is(*words, "--json"))
			ret->json = true;
		else if (is(*words, "--running"))
			ret->running = true;
		else if (strncmp(*words, "--root=", 7) == 0)
			ret->root = *words + 7;
		else if (is(*words, "--root") && words[1])
			ret->root = *++words;
		else if (is(*words, "--root"))
			wrong_check("--root", ": needs a value");
		else
			wrong_check(*words, ": no such option");
	}
	if (words[0] && words[1])
		wrong_check(words[1], ret->running ? ": there is one number of seconds" :
			    ": there can be one program only");
	if (ret->running && words[0])
		ret->seconds = seconds_of(words[0]);
	else if (!ret->running && !words[0])
		wrong_check("no program", "");
	if (ret->running && ret->root)
		wrong_check("--root", ": cannot be used with --running");
	ret->program = words[0];
}

/* From here on all files are those of the system below root. Nothing of it is executed. */
static void enter_root(const char *root)
{
	int err;

	/* This asks for the launcher's file, which may not be there. */
	installed_self();
	err = chroot(root) == 0 ? 0 : errno;
	/* Who is not root may do it in a user namespace, if the kernel allows these; why it does not is no matter. */
	if (err == EPERM && unshare(CLONE_NEWUSER) == 0)
		err = chroot(root) == 0 ? 0 : errno;
	if (err)
		die(err == EPERM ? EXIT_OTHER : EXIT_USAGE, "check: --root %s: %s%s", root, strerror(err),
		    err == EPERM ? "; only root may do that here" : "");
	if (chdir("/") != 0)
		die(EXIT_OTHER, "check: --root %s: %s", root, strerror(errno));
}

static _Noreturn void check(struct settings *s, char **words)
{
	struct object *library;
	struct running running;
	struct check wanted;
	struct report r;

	settings_refuse(s, "check", false);
	check_options(words, &wanted);
	if (wanted.root)
		enter_root(wanted.root);
	settings_from_environment(s);
	if (!s->no_profiles && !wanted.running)
		settings_from_profiles(s, (char *[]){ (char *)wanted.program, NULL });
	library = installed_library(s->value[FZ_OPTION_ID_library]);
	/* check reports what a run would do, and some parts of the report depend on the environment. */
	settings_export(s);
	if (wanted.running) {
		running_look(wanted.seconds, library, &running);
		(wanted.json ? running_json : running_text)(&running, stdout);
		end_of_output(0);
	}
	report_make(wanted.program, library, &r);
	r.profiles = &s->profiles;
	(wanted.json ? report_json : report_text)(&r, stdout);
	end_of_output(r.program.code);
}

/* ---- run ---------------------------------------------------------------- */

static _Noreturn void run(struct settings *s, char **words)
{
	struct object *library;
	struct program p;

	settings_from_environment(s);
	if (!*words) {
		die(EXIT_USAGE, "no program; fiberize [options] PROGRAM [ARGS], or fiberize --help");
	}
	if (!s->no_profiles)
		settings_from_profiles(s, words);
	library = installed_library(s->value[FZ_OPTION_ID_library]);
	run_find(*words, library, s->force, &p);
	if (s->dry_run) {
		run_show(s, &p, library->path, words);
		end_of_output(0);
	}
	run_exec(s, &p, library->path, words);
}

/* ---- looking at a process ------------------------------------------------- */

static bool is_inspection(const char *word)
{
#define FZ_COMMAND(name, operands, text)		\
	if (is(word, #name))				\
		return true;
#define FZ_OPTION(command, name, argument, help)
#include "scripts/inspect/commands.def"
	return false;
}

/* Refuse "fiberize OPTION ps": does the user mean the command ps, or a program named ps? */
static _Noreturn void wrong_inspection(const char *option, const char *word)
{
	die(EXIT_USAGE, "%s: fiberize %s takes no option before its name; for a program of that name: "
	    "fiberize run [options] %s", option, word, word);
}

/* Execute the program that looks at processes (scripts/inspect/) in place of this one. */
static _Noreturn void inspect(char **words)
{
	char *path;

	if (asprintf(&path, "%s/inspect", installed_libexec()) < 0)
		die(EXIT_OTHER, "no memory");
	/* inspect needs the path of this launcher: "fiberize trace -- PROGRAM" starts PROGRAM by it. */
	words[-1] = (char *)installed_self();
	execv(path, words - 1);
	die(EXIT_OTHER, "cannot start %s, a part of fiberize: %s; is it installed completely?", path,
	    strerror(errno));
}

/* ---- the command line --------------------------------------------------- */

int main(int argc, char **argv)
{
	struct settings s = { .dry_run = false };
	char **words = argv + (argc > 0);
	bool runs = false;

	while (*words) {
		int count = settings_from_flag(&s, words);

		if (count) {
			words += count;
		} else if (is(*words, "--")) {
			words++;
			break;
		} else if (!runs && is(*words, "run")) {
			words++;
			runs = true;
		} else if (runs && **words != '-') {
			break;
		} else if (is(*words, "check")) {
			check(&s, words + 1);
		} else if (is(*words, "bench")) {
			bench(&s, words + 1, argv);
		} else if (service_is_meant(words)) {
			settings_refuse(&s, *words, false);
			service(&s, words);
		} else if (is(*words, "kubernetes")) {
			settings_refuse(&s, *words, false);
			kubernetes(&s, words + 1);
		} else if (is_inspection(*words)) {
			if (words != argv + 1)
				wrong_inspection(argv[1], *words);
			inspect(words);
		} else if (**words == '-') {
			usage_if_wanted(*words, usage_run);
			die(EXIT_USAGE, "%s: no such option; see fiberize --help", *words);
		} else {
			break;
		}
	}
	run(&s, words);
}
