/* SPDX-License-Identifier: MIT */
#include "installed.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"
#include "scripts/check/program.h"

static char *print(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *print(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		die(EXIT_OTHER, "no memory");
	va_end(args);
	return text;
}

const char *installed_self(void)
{
	static char *self;

	if (!self)
		/* Take the path from the auxiliary vector, because /proc may be missing. */
		self = realpath((const char *)getauxval(AT_EXECFN), NULL);
	if (!self)
		die(EXIT_OTHER, "cannot find the directory that fiberize is in");
	return self;
}

/* The path of a file whose name is relative to the launcher's directory. */
static char *beside(const char *name)
{
	const char *self = installed_self();

	return print("%.*s%s", (int)(strrchr(self, '/') + 1 - self), self, name);
}

const char *installed_libexec(void)
{
	char *installed = beside("../libexec/fiberize"), *path;

	path = access(installed, X_OK) == 0 ? realpath(installed, NULL) : NULL;
	free(installed);
	return path ? path : beside("libexec");
}

static char *own_library(void)
{
	static const char *const places[] = { "../lib/fiberize/libfiberize.so", "libfiberize.so" };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *path = beside(places[i]);

		if (access(path, F_OK) == 0)
			return path;
		free(path);
	}
	die(CODE_LIBRARY,
	    "libfiberize.so is neither installed nor built; see --library and FIBERIZE_LIBRARY");
}

struct object *installed_library(const char *named)
{
	char *found = named ? strdup(named) : own_library(), *path;
	struct object *library;
	struct stat status;

	if (access(found, F_OK) != 0)
		die(CODE_LIBRARY, "%s: %s; --library, FIBERIZE_LIBRARY or a profile names it", found,
		    errno == ENOENT ? "no such library" : strerror(errno));
	/*
	 * Make the path absolute, because the program may change its directory and then exec
	 * other programs.
	 */
	path = realpath(found, NULL);
	if (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
	    access(path, R_OK) != 0)
		die(CODE_LIBRARY, "%s: not a readable file", path ? path : found);
	if (strpbrk(path, ": "))
		die(CODE_LIBRARY, "%s: LD_PRELOAD cannot hold a path with a colon or a space; move the library",
		    path);
	library = object_open(path);
	if (!library || library->elf_class != ELFCLASS64 || library->header.e_type != ET_DYN ||
	    !object_read_dynamic(library) || library->flags_1 & DF_1_PIE)
		die(CODE_LIBRARY, "%s: not a shared library", path);
	free(found);
	free(path);
	return library;
}

/* ---- the name for LD_PRELOAD -------------------------------------------- */

/* The last parts of a path, as many as there are slashes in front of them. NULL: it has not so many. */
static const char *last_parts(const char *path, int slashes)
{
	const char *at = path + strlen(path);

	while (at > path)
		if (*--at == '/' && --slashes == 0)
			return at + 1;
	return NULL;
}

static bool is_same_file(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

const char *installed_loader_directory(const char *library)
{
	const char *name = strrchr(library, '/') + 1;
	char *directory, *link;
	const char *tail;
	Dl_info libc;

	/* glibc's $LIB is the end of the directory that libc is installed in: lib64, or lib/x86_64-linux-gnu. */
	if (!dladdr(gnu_get_libc_version(), &libc) || !strrchr(libc.dli_fname, '/'))
		return NULL;
	directory = print("%.*s", (int)(strrchr(libc.dli_fname, '/') - libc.dli_fname), libc.dli_fname);
	for (int parts = 2; parts > 0; parts--) {
		tail = last_parts(directory, parts);
		if (!tail)
			continue;
		link = print("%.*s%s/%s", (int)(name - library), library, tail, name);
		if (is_same_file(link, library))
			return tail;
		free(link);
	}
	free(directory);
	return NULL;
}

const char *installed_preload_name(const char *library)
{
	const char *name = strrchr(library, '/') + 1;

	if (!installed_loader_directory(library))
		return library;
	return print("%.*s${LIB}/%s", (int)(name - library), library, name);
}
