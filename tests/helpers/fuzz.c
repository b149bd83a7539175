/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/fuzz.c - scripts/check/ on damaged files: fuzz FILE...
 *
 * Each file is looked at as a program, as a library of one, as the library to
 * be preloaded and as a profile.  Built with the sanitizers.  Fails on a crash, on more than ten
 * seconds for one file, and on an answer that is none.  Prints how many files got
 * which code.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/options.h"
#include "scripts/check/report.h"

static const char *current = "";

static void hangs(int signal)
{
	(void)signal;
	write(2, "fuzz: hangs: ", 13);
	write(2, current, strlen(current));
	write(2, "\n", 1);
	_exit(1);
}

/* The sanitizers' run-time calls it before it ends the process. */
extern void __sanitizer_set_death_callback(void (*callback)(void));

static void dies(void)
{
	write(2, "fuzz: crashes: ", 15);
	write(2, current, strlen(current));
	write(2, "\n", 1);
}

static void wrong(const char *why)
{
	fprintf(stderr, "fuzz: %s: %s\n", current, why);
	exit(1);
}

static bool code_exists(int code)
{
	return code == CODE_OK || (code >= CODE_LIBRARY && code <= CODE_SECURE) ||
	       code == CODE_NOEXEC || code == CODE_NOTFOUND;
}

static void judge(const struct report *r)
{
	const struct program *p = &r->program;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!code_exists(p->code))
		wrong("no such code");
	if (p->code != CODE_OK && (!p->message || !*p->message))
		wrong("refused without a message");
	if (p->code == CODE_OK && p->message)
		wrong("a message, but not refused");
	if (!r->verdict || !r->advice || (p->code != CODE_OK) != (strcmp(r->verdict, "cannot") == 0 &&
								  !p->native))
		wrong("the verdict is another than the code");
	report_text(r, out);
	report_json(r, out);
	fclose(out);
	if (size == 0 || !strstr(text, "verdict") || memchr(text, '\0', size))
		wrong("no text");
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < ' ' && text[i] != '\n')
			wrong("control characters in the text");
	free(text);
}

/* As a profile: what it sets must be what the options may have. */
static void read_as_profile(const char *file)
{
	const char *values[FZ_OPTION_COUNT] = { NULL };
	struct profiles p = { .count = 0 };
	bool ignored;
	const struct fz_profile_program program = {
		.name = "some/program", .path = "/some/program", .file = "/some/program", .arguments = "some arguments",
	};
	char *why = profiles_read(&p, values, file, &program, &ignored);
	uint64_t value;

	if (why && strncmp(why, file, strlen(file)) != 0)
		wrong("a message that does not begin with the name of the file");
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		if (values[i] && !fz_option_parse(&fz_options[i], values[i], &value))
			wrong("a profile sets what cannot be");
	for (size_t i = 0; i < p.count; i++)
		for (size_t n = 0; n < p.all[i].count; n++)
			if (!fz_option_of_flag(p.all[i].settings[n].option,
					       strlen(p.all[i].settings[n].option)))
				wrong("a profile sets an option that is none");
	free(why);
	profiles_free(&p);
}

static void visit(const char *name, void *arg)
{
	*(size_t *)arg += strlen(name);
}

static int look_at(const char *file)
{
	struct report r;
	struct object *o;
	size_t length = 0;
	int code;

	report_make(file, NULL, &r);
	judge(&r);
	code = r.program.code;
	report_free(&r);
	o = object_open(file);
	if (!o)
		wrong("cannot be opened");
	if (o->elf_class == ELFCLASS64) {
		object_read_dynamic(o);
		object_each_import(o, visit, &length);
		object_each_version_needed(o, "libc.so.6", visit, &length);
		object_defines_version(o, "GLIBC_2.34");
		object_each_export(o, visit, &length);
		report_make("/bin/sh", o, &r);
		judge(&r);
		report_free(&r);
	}
	object_close(o);
	return code;
}

int main(int argc, char **argv)
{
	size_t codes[128] = { 0 };

	__sanitizer_set_death_callback(dies);
	signal(SIGALRM, hangs);
	for (int i = 1; i < argc; i++) {
		current = argv[i];
		chmod(current, 0755);
		alarm(10);
		read_as_profile(current);
		codes[look_at(current) & 127]++;
		alarm(0);
	}
	for (int code = 0; code < 128; code++)
		if (codes[code])
			printf("%d %zu\n", code, codes[code]);
	return 0;
}
