/* SPDX-License-Identifier: MIT */
#include "usage.h"

#include <string.h>

#include "bench.h"
#include "runtime/base/options.h"
#include "say.h"

/* What --help has before the long flag: the short one, or blanks. */
static const char *short_flag(const struct fz_option *o)
{
	static char text[] = "-?, ";

#define FZ_SHORT_FLAG(name, letter)                    \
	if (o == &fz_options[FZ_OPTION_ID_##name]) {   \
		text[1] = letter;                      \
		return text;                           \
	}
#include "runtime/base/options.def"
	return "    ";
}

const char *usage_flag(const char *name)
{
	static char flag[64];

	snprintf(flag, sizeof(flag), "--%s", name);
	for (char *c = flag; *c; c++)
		if (*c == '_')
			*c = '-';
	return flag;
}

static void put_option(const struct fz_option *o, FILE *out)
{
	const char *argument = fz_option_argument(o);
	char allowed[FZ_OPTION_TEXT];

	fprintf(out, "  %s", short_flag(o));
	fputs(usage_flag(o->name), out);
	if (fz_option_is_switch(o))
		fprintf(out, ", --no-%s", usage_flag(o->name) + strlen("--"));
	fprintf(out, "%s%s\n        %s\n", *argument ? " " : "", argument, o->help);
	if (o->type == FZ_OPTION_bool || o->type == FZ_OPTION_path || o->type == FZ_OPTION_list)
		return;
	fz_option_allowed(o, allowed, sizeof(allowed));
	fprintf(out, "        (%s)\n", allowed);
}

static const char run_text[] =
	"usage: fiberize [run] [options] [--] PROGRAM [ARGS]\n"
	"       fiberize [options] check [--json] {[--root DIR] [--] PROGRAM | --running [SECONDS]}\n"
	"       fiberize [options] bench [bench options] -- PROGRAM [ARGS]\n"
#define FZ_COMMAND(name, operands, text) \
	"       fiberize " #name " [" #name " options] " operands "\n"
#define FZ_OPTION(command, name, argument, help)
#include "scripts/inspect/commands.def"
	"       fiberize [options] enable [--root DIR] SERVICE\n"
	"       fiberize disable [--root DIR] SERVICE\n"
	"       fiberize kubernetes --image IMAGE [kubernetes options]\n"
	"\n"
	"Runs PROGRAM with its threads as fibers; or reports whether that works, and what\n"
	"PROGRAM gains by it (check); or measures the gain (bench); or looks at a process;\n"
	"or sets up a service of systemd, or the pods of Kubernetes.\n"
	"\"fiberize COMMAND --help\" lists the options of a command.\n"
	"\n";

void usage_run(FILE *out)
{
	fputs(run_text, out);
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		put_option(&fz_options[i], out);
#define FZ_LAUNCHER_FLAG(name, help) fprintf(out, "      %s\n        %s\n", usage_flag(#name), help);
#include "runtime/base/options.def"
	fputs("  -h, --help\n"
	      "  -V, --version\n"
	      "\n"
	      "The environment variables FIBERIZE_PROCESSORS and so on set the same options.\n"
	      "Exit codes: PROGRAM's own, or 1 another failure, 2 bad option, variable or\n"
	      "profile, 115 no usable library, 116 static, 117 32-bit, 118 other machine, 119\n"
	      "not glibc, or too old, 120 set-user-ID, set-group-ID or file capabilities, 126\n"
	      "not executable, 127 not found.\n", out);
}

void usage_check(FILE *out)
{
	fputs("usage: fiberize check [--json] [--root DIR] [--] PROGRAM\n"
	      "       fiberize check [--json] --running [SECONDS]\n"
	      "\n"
	      "Reports what kind of program PROGRAM is, whether it gains by fiberize, and what\n"
	      "becomes of its calls that may wait.  Starts nothing.\n"
	      "\n"
	      "  --running\n"
	      "        look at all processes that run now, for SECONDS (default 3), and print\n"
	      "        which would gain, how much at most, and what to type\n"
	      "  --root DIR\n"
	      "        PROGRAM is of the system below DIR, with its libc, library and profiles\n"
	      "  --json\n"
	      "        print the report as one JSON object\n"
	      "  --help\n"
	      "\n"
	      "Exit code: 0, or the code with which fiberize would refuse PROGRAM.  --running: 0.\n", out);
}

void usage_bench(FILE *out)
{
	fputs("usage: fiberize [options] bench [options] -- PROGRAM [ARGS]\n"
	      "\n"
	      "Starts PROGRAM natively and under fiberize, alternately, drives it with a load\n"
	      "over TCP, and prints the throughput, latency and cost of each side.\n"
	      "\n"
	      "  --http\n"
	      "        the load is wrk, GET over HTTP/1.1 keep-alive (default)\n"
	      "  --echo\n"
	      "        the load is the bundled client for raw TCP echo\n", out);
	for (size_t i = 0; i < BENCH_COUNT; i++) {
		const struct fz_option *o = &bench_options[i];

		fprintf(out, "  %s %s\n        %s", usage_flag(o->name), bench_arguments[i], o->help);
		if (o->initial)
			fprintf(out, " (default %lu)", (unsigned long)o->initial);
		fputc('\n', out);
	}
	fputs("\n"
	      "The options of fiberize itself, except --dry-run, may be given here, too; they\n"
	      "apply to the fiberized side.\n"
	      "\n"
	      "Exit codes: as for fiberize, and 103 PROGRAM leaks descriptors, 110 it ended too\n"
	      "early, 111 it never listened, or on several ports, 112 the load or one request in\n"
	      "100 failed, 113 the load gave no figures, 114 bench cannot do its work (a tool is\n"
	      "missing, the port is taken, a file cannot be written).\n", out);
}

void usage_if_wanted(const char *word, void (*usage)(FILE *out))
{
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		usage(stdout);
	else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		puts("fiberize " FZ_VERSION);
	else
		return;
	end_of_output(0);
}
