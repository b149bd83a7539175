/* SPDX-License-Identifier: MIT */
/*
 * preload/stub/stub.c - libfiberize-preload.so: what the loader calls first in every process.
 *
 * In most processes the stub makes a few system calls and changes nothing. If a profile names the program, or
 * if LD_PRELOAD names this library, the process executes its program once more, with libfiberize.so. No code of
 * the program has run before that: this constructor is the first one of the process (-z initfirst).
 */
#include <asm/unistd.h>
#include <elf.h>
#include <linux/auxvec.h>
#include <stddef.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/stub/again.h"
#include "preload/stub/host.h"
#include "preload/stub/proper.h"
#include "preload/stub/rules.h"
#include "preload/stub/text.h"

enum {
	PATH = 1024,
	ARGUMENTS = 4096,	/* characters of the arguments that a pattern sees */
	VARIABLES = 4096,
};

static char path[PATH], arguments[ARGUMENTS], variables[VARIABLES];

/* Does the list, with the separators of LD_PRELOAD, have a file of this name? */
static bool lists_file(const char *list, const char *name)
{
	while (*list) {
		const char *rest = fz_text_after(list, name);

		if (rest && (!*rest || *rest == ':' || *rest == ' '))
			return true;
		list += strcspn(list, "/: ");
		list += *list != '\0';
	}
	return false;
}

/*
 * Does LD_PRELOAD name this library, for this program and those that it starts? By .../${LIB}/libfiberize.so, too,
 * loaders find this library, if their $LIB is not the one of this machine's glibc (Makefile, LOADER_LINKS). Then it
 * was loaded by that name; otherwise the name is of another file, or of one that has gone.
 */
static bool is_asked_for(char **envp)
{
	static const char proper[] = "libfiberize.so";
	const char *list = fz_stub_variable(envp, "LD_PRELOAD");
	const char *own_path = fz_stub_own_path();

	if (!list)
		return false;
	return lists_file(list, "libfiberize-preload.so") ||
	       (own_path && strcmp(fz_text_base(own_path), proper) == 0 && lists_file(list, proper));
}

/* Is this the init process? Not even a profile switches fibers on there: all other processes depend on it. */
static bool is_init(const char *name)
{
	return (strcmp(name, "init") == 0 || strcmp(name, "systemd") == 0) &&
	       fz_syscall0(__NR_getpid) == 1;
}

/* Returns why this process must be left alone, whatever the profiles say; NULL if there is no reason. */
static const char *why_native(const char *name, char **envp)
{
	const char *disable = fz_stub_variable(envp, "FIBERIZE_DISABLE");
	const char *preload = fz_stub_variable(envp, "LD_PRELOAD");

	if (disable && strcmp(disable, "1") == 0)
		return "FIBERIZE_DISABLE is 1";
	/* Without AT_BASE the loader was started as a program, and the arguments are the loader's. */
	if (!fz_stub_auxiliary(AT_BASE))
		return "the loader was started as a program";
	if (preload && fz_text_contains(preload, "/vgpreload_"))
		return "valgrind runs it";
	if (is_init(fz_text_base(name)))
		return "it is the first process";
	if (fz_rules_all_off())
		return "/etc/fiberize/disable is there";
	return NULL;
}

static void put_arguments(int argc, char **argv)
{
	struct fz_text_buffer b = { arguments, arguments + sizeof(arguments), false };

	for (int i = 1; i < argc; i++) {
		if (i > 1)
			fz_text_put(&b, " ");
		fz_text_put(&b, argv[i]);
	}
}

static void consider(const char *name, int argc, char **argv, char **envp)
{
	struct fz_rules r = {
		.path = name,
		.arguments = arguments,
		.text = { variables, variables + sizeof(variables), false },
	};
	const char *why;

	put_arguments(argc, argv);
	fz_rules_read(&r);
	if (r.variables[FZ_OPTION_ID_disable] &&
	    strcmp(r.variables[FZ_OPTION_ID_disable], "FIBERIZE_DISABLE=1") == 0)
		r.verdict = FZ_VERDICT_OFF;
	if (r.verdict == FZ_VERDICT_NONE && is_asked_for(envp))
		r.verdict = FZ_VERDICT_ON;
	if (r.verdict != FZ_VERDICT_ON) {
		fz_stub_say(envp, name, r.verdict == FZ_VERDICT_OFF ? "a profile says so" : "no profile names it");
		return;
	}
	why = fz_proper_find(fz_stub_own_path(), path, sizeof(path));
	if (!why)
		why = fz_again(&r, path, argv, envp);
	fz_stub_say(envp, name, why);
}

__attribute__((constructor)) static void stub_loaded(int argc, char **argv, char **envp)
{
	const char *name, *why;
	bool again;

	/* Other libcs pass no arguments to a constructor. */
	if (!fz_stub_on_glibc())
		return;
	if (fz_stub_sanitized()) {
		fz_stub_step_back();
		return;
	}
	if (fz_stub_auxiliary(AT_SECURE))
		return;
	name = (const char *)fz_stub_auxiliary(AT_EXECFN);
	if (!name || !argv || argc < 1)
		return;
	again = fz_again_arrived(envp);
	/*
	 * libfiberize.so is loaded, too. The loader runs one constructor before all others, and that may be this
	 * one, so start the library from here.
	 */
	if (fiberize_start) {
		fiberize_start(argc, argv, envp);
		return;
	}
	why = again ? "the loader could not load libfiberize.so" : why_native(name, envp);
	if (why)
		fz_stub_say(envp, name, why);
	else
		consider(name, argc, argv, envp);
}
