/* SPDX-License-Identifier: MIT */
/*
 * scripts/check/main.c - "fiberize check", and what the launcher asks before it
 * starts a program.
 *
 *	check [--json] [--library FILE] [PROFILES] [--] PROGRAM
 *	check --launch [--environment] [--library FILE] [--] PROGRAM
 *	check --exec|--try FILE PROGRAM [ARGS]
 *	check --help
 *
 * The first prints a report; its exit status is the code with which the launcher
 * would refuse, or 0.  PROFILES is what the launcher found in profiles for PROGRAM
 * (profiles.h).  The second prints for the launcher
 *
 *	CODE MESSAGE
 *	ASSIGNMENTS
 *	PATH.
 *
 * where CODE is that code, or "native": to be run without the library, or "dormant":
 * with the library, which shall be dormant in this one process.  PATH has a dot
 * behind it because a shell drops newlines at the end.  ASSIGNMENTS are for the third,
 * which becomes FILE, in the environment that standard input holds, as the kernel
 * shows that which a process was started with (environment.h).  Its exit status is 0, so that a tool that could not run at all can
 * be told apart.
 */
#include <stdlib.h>
#include <string.h>

#include "environment.h"
#include "report.h"

static int launch(const char *name, const struct object *library, bool environment)
{
	struct program p;
	const char *message;

	program_find(name, library, &p);
	message = p.message;
	if (p.code != CODE_OK) {
		printf("%d", p.code);
	} else if (p.native || p.dormant) {
		fputs(p.native ? "native" : "dormant", stdout);
		message = p.native ? p.native : p.dormant;
	} else {
		fputc('0', stdout);
	}
	fputc(' ', stdout);
	if (message)
		put_line(message, stdout);
	fputc('\n', stdout);
	if (environment)
		environment_compare(stdin, stdout);
	printf("\n%s.", p.path ? p.path : "");
	program_free(&p);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* What is on standard output, if it is there. */
static int printed(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fputs("fiberize: standard output: cannot be written\n", stderr);
	return 1;
}

static int check(const char *name, const struct object *library,
		 const struct profiles *profiles, bool json)
{
	struct report r;
	int code;

	report_make(name, library, &r);
	r.profiles = profiles;
	(json ? report_json : report_text)(&r, stdout);
	code = r.program.code;
	report_free(&r);
	return printed(code);
}

static int help(void)
{
	fputs("usage: fiberize check [--json] [--] PROGRAM\n\n"
	      "Tells what kind of program it is, whether fiberize will do it good, and what\n"
	      "becomes of its calls that may wait.  Starts nothing.\n\n"
	      "  --json     the same as one JSON object\n\n"
	      "Exit code: 0, or that with which fiberize would refuse PROGRAM.\n", stdout);
	return printed(0);
}

static int usage(const char *wrong, const char *why)
{
	fputs("fiberize: check: ", stderr);
	put_line(wrong, stderr);
	fprintf(stderr, "%s; fiberize check [--json] [--] PROGRAM\n", why);
	return 2;
}

int main(int argc, char **argv)
{
	bool json = false, launching = false, environment = false;
	struct profiles profiles = { .count = 0 };
	struct object *library = NULL;
	const char *path = NULL;
	int i, code;

	if (argc > 3 && (strcmp(argv[1], "--exec") == 0 || strcmp(argv[1], "--try") == 0))
		return environment_exec(argv[2], argv + 3, strcmp(argv[1], "--exec") == 0);
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--help") == 0)
			return help();
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else if (strcmp(argv[i], "--launch") == 0)
			launching = true;
		else if (strcmp(argv[i], "--environment") == 0)
			environment = true;
		else if (strcmp(argv[i], "--library") == 0 && i + 1 < argc)
			path = argv[++i];
		else if (strcmp(argv[i], "--profile") == 0 && i + 2 < argc)
			profiles_add(&profiles, argv[i + 1], argv[i + 2]), i += 2;
		else if (strcmp(argv[i], "--setting") == 0 && i + 3 < argc && profiles.count)
			profiles_set(&profiles, argv + i + 1), i += 3;
		else
			return usage(argv[i], ": no such option");
	}
	if (i == argc)
		return usage("", "no program");
	if (i != argc - 1)
		return usage(argv[i + 1], ": there can be one program only");
	if (path) {
		library = object_open(path);
		if (!library || library->elf_class != ELFCLASS64 ||
		    library->header.e_type != ET_DYN || !object_read_dynamic(library)) {
			object_close(library);
			if (launching)
				printf("%d %s: not a shared library\n\n.", CODE_LIBRARY, path);
			else
				fprintf(stderr, "fiberize: %s: not a shared library\n", path);
			return launching ? 0 : CODE_LIBRARY;
		}
	}
	code = launching ? launch(argv[i], library, environment) : check(argv[i], library, &profiles, json);
	object_close(library);
	profiles_free(&profiles);
	return code;
}
