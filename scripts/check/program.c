/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libraries.h"
#include "misc.h"
#include "secure.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

struct search {
	struct program *program;
	const struct object *library;
	char *whose;			/* "SCRIPT: its interpreter ", or "" */
	char *credentials;		/* whose the process will have, if not its program's */
};

static void refuse(struct search *s, enum code code, const char *kind, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void refuse(struct search *s, enum code code, const char *kind, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	s->program->code = code;
	s->program->kind = kind;
	free(s->program->message);
	if (asprintf(&s->program->message, "%s%s", s->whose, text ? text : kind) < 0)
		s->program->message = NULL;
	free(text);
}

/* ---- PATH --------------------------------------------------------------- */

static bool is_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* An editor of another system wrote the script that names its interpreter so. */
static const char *strange_end(const char *name)
{
	size_t length = strlen(name);

	return length && name[length - 1] == '\r' ? " (the name ends in a carriage return)" : "";
}

/* A name with a slash: it is that file or none. */
static char *find_file(struct search *s, const char *name)
{
	struct stat status;

	if (stat(name, &status) != 0 && (errno == ENOENT || errno == ENOTDIR))
		refuse(s, CODE_NOTFOUND, "missing", "%s: no such program%s", name,
		       strange_end(name));
	else if (stat(name, &status) != 0)
		refuse(s, CODE_NOEXEC, "not executable", "%s: %s", name, strerror(errno));
	else if (S_ISDIR(status.st_mode))
		refuse(s, CODE_NOEXEC, "not executable", "%s: is a directory", name);
	else if (!S_ISREG(status.st_mode))
		refuse(s, CODE_NOEXEC, "not executable", "%s: not a regular file", name);
	else if (access(name, X_OK) != 0)
		refuse(s, CODE_NOEXEC, "not executable", "%s: not executable", name);
	else
		return strdup(name);
	return NULL;
}

static char *find_in_path(struct search *s, const char *name)
{
	const char *list = getenv("PATH");
	char *copy = list && *list ? strdup(list) : NULL, *rest = copy, *directory;
	char *refused = NULL, *path = NULL;

	if (!*name) {
		refuse(s, CODE_NOTFOUND, "missing", "the name of the program is empty");
		free(copy);
		return NULL;
	}
	while (!path && rest && (directory = strsep(&rest, ":"))) {
		if (asprintf(&path, "%s/%s", *directory ? directory : ".", name) < 0)
			path = NULL;
		if (!path || !is_file(path) || access(path, X_OK) != 0) {
			if (path && !refused && is_file(path)) {
				refused = path;
				path = NULL;
			}
			free(path);
			path = NULL;
		}
	}
	if (!path && refused)
		refuse(s, CODE_NOEXEC, "not executable", "%s: not executable", refused);
	else if (!path)
		refuse(s, CODE_NOTFOUND, "missing", "%s: no such program in PATH%s", name,
		       strange_end(name));
	free(refused);
	free(copy);
	return path;
}

static char *find_program(struct search *s, const char *name)
{
	return strchr(name, '/') ? find_file(s, name) : find_in_path(s, name);
}

/* ---- ELF files ---------------------------------------------------------- */

/* Sanitizers put their run-time below everything, and know each thread by itself. */
static const char *sanitizer(const struct object *o)
{
	static const struct {
		const char *library, *symbol, *name;
	} all[] = {
		{ "libasan.so", "__asan_init", "AddressSanitizer" },
		{ "libtsan.so", "__tsan_init", "ThreadSanitizer" },
		{ "libhwasan.so", "__hwasan_init", "HWAddressSanitizer" },
		{ "liblsan.so", "__lsan_init", "LeakSanitizer" },
		{ "libclang_rt.asan", "__msan_init", "MemorySanitizer" },
		{ "libclang_rt.tsan", "__dfsan_init", "DataFlowSanitizer" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (size_t n = 0; n < o->needed_count; n++)
			if (strncmp(o->needed[n], all[i].library, strlen(all[i].library)) == 0)
				return strncmp(all[i].library, "libclang", 8) == 0 ?
					       "a sanitizer of clang's" : all[i].name;
		if (object_exports(o, all[i].symbol))
			return all[i].name;
	}
	return NULL;
}

static bool static_kind(struct search *s, const struct object *o)
{
	static const char why[] = "so that no library can be preloaded into it";

	if (o->has_interpreter && o->interpreter)
		return false;
	if (o->has_interpreter)
		refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (no readable name of a loader)",
		       o->path);
	else if (o->go)
		refuse(s, CODE_STATIC, "Go, static",
		       "%s: statically linked, by Go, %s", o->path, why);
	else if (o->header.e_type == ET_DYN && o->flags_1 & DF_1_PIE)
		refuse(s, CODE_STATIC, "static-pie", "%s: statically linked, %s", o->path, why);
	else if (o->header.e_type == ET_DYN && o->soname && strncmp(o->soname, "ld-", 3) == 0)
		refuse(s, CODE_STATIC, "loader", "%s: is itself a loader, and what it will start is unknown",
		       o->path);
	else if (o->header.e_type == ET_DYN)
		refuse(s, CODE_STATIC, "static or library",
		       "%s: statically linked or a library, %s", o->path, why);
	else
		refuse(s, CODE_STATIC, "static", "%s: statically linked, %s", o->path, why);
	return true;
}

static bool other_libc(struct search *s, const struct object *o)
{
	static const char *const others[] = { "linker", "linker64", "ld-uClibc", "ld64-uClibc" };
	const char *name = strrchr(o->interpreter, '/');

	name = name ? name + 1 : o->interpreter;
	if (strncmp(name, "ld-musl-", 8) == 0) {
		refuse(s, CODE_LIBC, "musl", "%s: uses musl (%s); fiberize needs glibc", o->path,
		       o->interpreter);
		return true;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		size_t length = strlen(others[i]);

		if (i < 2 ? strcmp(name, others[i]) != 0 : strncmp(name, others[i], length) != 0)
			continue;
		refuse(s, CODE_LIBC, "another libc", "%s: needs %s, which is not glibc's", o->path,
		       o->interpreter);
		return true;
	}
	return false;
}

/* The kernel tells the loader not to trust the environment. */
static bool secure(struct search *s, const char *path)
{
	const char *why = secure_why(path);

	if (why)
		refuse(s, CODE_SECURE, why, "%s: %s%s, so that the loader preloads nothing into it",
		       path, strncmp(why, "set", 3) == 0 ? "" : "has ", why);
	return why != NULL;
}

struct versions {
	const struct object *libc;
	const char *missing;
};

static void look_for_version(const char *version, void *arg)
{
	struct versions *v = arg;

	if (!v->missing && !object_defines_version(v->libc, version))
		v->missing = version;
}

/* The loader ends a program whose libc is too old for what is preloaded. */
static bool old_libc(struct search *s, struct object *o)
{
	struct object *libc = s->library ? library_open(o, "libc.so.6") : NULL;
	struct versions v = { libc, NULL };

	if (!libc)
		return false;
	object_each_version_needed(s->library, "libc.so.6", look_for_version, &v);
	if (v.missing)
		refuse(s, CODE_LIBC, "old glibc", "%s: its libc, %s, has no %s, which fiberize needs",
		       o->path, libc->path, v.missing);
	object_close(libc);
	return v.missing != NULL;
}

static void look_for_ptrace(const char *name, void *arg)
{
	if (strcmp(name, "ptrace") == 0)
		*(bool *)arg = true;
}

static void dormant(struct search *s, const char *why)
{
	free(s->program->dormant);
	if (asprintf(&s->program->dormant,
		     "%s%s: %s; it runs natively, and what it starts with fibers", s->whose,
		     s->program->object->path, why) < 0)
		s->program->dormant = NULL;
}

static void judge_elf(struct search *s, struct object *o)
{
	unsigned machine = s->library ? s->library->header.e_machine : MACHINE;
	const char *what;
	bool traces = false;

	if (o->elf_class == ELFCLASSNONE) {
		refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (no readable ELF header)",
		       o->path);
		return;
	}
	if (o->elf_class == ELFCLASS32) {
		refuse(s, CODE_32BIT, "32-bit",
		       "%s: a 32-bit program; fiberize is for 64-bit ones", o->path);
		return;
	}
	if (o->header.e_machine != machine || o->header.e_ident[EI_DATA] != ELFDATA2LSB) {
		refuse(s, CODE_MACHINE, "other machine", "%s: made for %s, and %s for %s", o->path,
		       o->header.e_machine == machine ? "another byte order" :
							machine_name(o->header.e_machine),
		       s->library ? s->library->path : "fiberize", machine_name(machine));
		return;
	}
	if (o->header.e_type != ET_EXEC && o->header.e_type != ET_DYN) {
		refuse(s, CODE_NOEXEC, "not a program", "%s: not a program (ELF type %u)", o->path,
		       o->header.e_type);
		return;
	}
	/* What is cut there looks static. */
	if (!o->has_headers) {
		refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (no readable program headers)",
		       o->path);
		return;
	}
	object_read_dynamic(o);
	if (static_kind(s, o) || other_libc(s, o))
		return;
	if (access(o->interpreter, F_OK) != 0) {
		refuse(s, CODE_NOTFOUND, "missing loader", "%s: its loader %s does not exist",
		       o->path, o->interpreter);
		return;
	}
	if (o->damage) {
		refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (%s)", o->path, o->damage);
		return;
	}
	if (secure(s, s->credentials ? s->credentials : o->path))
		return;
	if (old_libc(s, o))
		return;
	s->program->kind = o->go ? "Go, dynamic" : "dynamic";
	object_each_import(o, look_for_ptrace, &traces);
	if (o->go)
		dormant(s, "made by Go, which has its own threads below libc");
	/* What the kernel ties to the kernel thread that does it. */
	else if (traces)
		dormant(s, "traces other processes");
	what = sanitizer(o);
	if (what && asprintf(&s->program->native,
			     "%s%s: has %s in it, which must know each thread; it runs natively",
			     s->whose, o->path, what) < 0)
		s->program->native = NULL;
}

/* ---- scripts ------------------------------------------------------------ */

static void examine(struct search *s, const char *path);

static void follow(struct search *s, const char *name)
{
	char *path = find_program(s, name);

	if (path)
		examine(s, path);
	free(path);
}

/* What env(1) would run: words behind its own options and variables; NULL if it looks
 * elsewhere than we would. */
static const char *behind_env(char **word)
{
	static const char split[] = "--split-string=";

	for (; *word; word++) {
		if (strncmp(*word, "-S", 2) == 0 && (*word)[2])
			*word += 2;
		else if (strncmp(*word, split, strlen(split)) == 0)
			*word += strlen(split);
		if (strncmp(*word, "PATH=", 5) == 0 || strpbrk(*word, "\"'\\$"))
			return NULL;
		if (strcmp(*word, "-u") == 0 && word[1] && strcmp(word[1], "PATH") != 0)
			word++;
		/* Another PATH, or another directory. */
		else if (strcmp(*word, "-") == 0 || strncmp(*word, "-i", 2) == 0 ||
			 strncmp(*word, "-C", 2) == 0 || strncmp(*word, "-u", 2) == 0 ||
			 strncmp(*word, "--c", 3) == 0 || strncmp(*word, "--i", 3) == 0 ||
			 strncmp(*word, "--u", 3) == 0)
			return NULL;
		else if (**word != '-' && !strchr(*word, '='))
			return *word;
	}
	return NULL;
}

/* An interpreter is never looked up in PATH, but may be a relative name. */
static void follow_interpreter(struct search *s, const char *path, const char *interpreter)
{
	char *name;

	free(s->whose);
	if (asprintf(&s->whose, "%s: its interpreter ", path) < 0)
		s->whose = strdup("");
	if (asprintf(&name, "%s%s", strchr(interpreter, '/') ? "" : "./", interpreter) < 0)
		return;
	follow(s, name);
	free(name);
}

/*
 * line is what stands behind the #!; it is cut into words.  One that names no
 * interpreter is no script for the kernel, and hence one for the shell.
 */
static void examine_script(struct search *s, const char *path, char *line)
{
	char *words[256] = { NULL }, *rest = line, *word, *name;
	const char *slash;
	size_t count = 0;

	while ((word = strsep(&rest, " \t")) && count < 255)
		if (*word)
			words[count++] = word;
	if (count == 0) {
		follow(s, "/bin/sh");
		return;
	}
	follow_interpreter(s, path, words[0]);
	slash = strrchr(words[0], '/');
	if (s->program->code != CODE_OK || !slash || strcmp(slash, "/env") != 0)
		return;
	name = (char *)behind_env(words + 1);
	if (name) {
		object_close(s->program->object);
		s->program->object = NULL;
		free(s->program->dormant);
		s->program->dormant = NULL;
		follow(s, name);
	}
}

/* For an emulator; what is made for another machine stays that. */
static bool is_foreign(const char *path, const char *start)
{
	struct object *o = memcmp(start, ELFMAG, SELFMAG) == 0 ? object_open(path) : NULL;
	bool foreign = o && (o->elf_class == ELFCLASS32 || o->header.e_machine != MACHINE);

	object_close(o);
	return foreign;
}

/* Is it something that the kernel has been told how to start?  start may be NULL. */
static bool examine_misc(struct search *s, const char *path, const char *start)
{
	struct misc misc;

	if (!misc_find(path, start, &misc))
		return false;
	if (start && is_foreign(path, start)) {
		free(misc.interpreter);
		return false;
	}
	if (misc.credentials && !s->credentials)
		s->credentials = strdup(path);
	if (s->program->script_count == SCRIPTS_MAX) {
		refuse(s, CODE_NOEXEC, "damaged script", "%s: too many interpreters", path);
	} else {
		s->program->scripts[s->program->script_count++] = strdup(path);
		/* What was opened when it was registered need not have that name here. */
		if (misc.fixed && access(misc.interpreter, X_OK) != 0)
			s->program->kind = "unreadable";
		else
			follow_interpreter(s, path, misc.interpreter);
	}
	free(misc.interpreter);
	return true;
}

/* What of the first line the kernel takes: nothing if the name of the interpreter is cut. */
static void cut_line(char *start, size_t size)
{
	size_t end = strcspn(start, "\n"), name = 2 + strspn(start + 2, " \t");

	if (end == START_SIZE && size == START_SIZE && !strpbrk(start + name, " \t"))
		end = 2;
	start[end] = '\0';
}

static void examine(struct search *s, const char *path)
{
	char start[START_SIZE + 1] = "";
	const char *line_end;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t size = fd < 0 ? -1 : read(fd, start, START_SIZE);

	if (fd >= 0)
		close(fd);
	if (examine_misc(s, path, size < 0 ? NULL : start))
		return;
	/* What may be run but not read is left to the loader. */
	if (size < 0) {
		s->program->kind = "unreadable";
		secure(s, path);
		return;
	}
	if (size >= 4 && memcmp(start, "\177ELF", 4) == 0) {
		s->program->object = object_open(path);
		if (s->program->object)
			judge_elf(s, s->program->object);
		else
			refuse(s, CODE_NOEXEC, "unreadable", "%s: %s", path, strerror(errno));
		return;
	}
	if (s->program->script_count == SCRIPTS_MAX) {
		refuse(s, CODE_NOEXEC, "damaged script", "%s: too many interpreters", path);
		return;
	}
	if (size >= 2 && memcmp(start, "#!", 2) == 0) {
		s->program->scripts[s->program->script_count++] = strdup(path);
		cut_line(start, (size_t)size);
		examine_script(s, path, start + 2);
		return;
	}
	line_end = memchr(start, '\n', (size_t)size);
	if (memchr(start, '\0', line_end ? (size_t)(line_end - start) : (size_t)size)) {
		refuse(s, CODE_NOEXEC, "not a program", "%s: neither a program nor a script", path);
		return;
	}
	/* The shell runs what the kernel does not know as its own script. */
	s->program->scripts[s->program->script_count++] = strdup(path);
	follow(s, "/bin/sh");
}

void program_find(const char *name, const struct object *library, struct program *ret)
{
	struct search s = { ret, library, strdup(""), NULL };

	*ret = (struct program){ .kind = "unknown" };
	ret->path = find_program(&s, name);
	if (ret->path)
		examine(&s, ret->path);
	free(s.credentials);
	free(s.whose);
}

void program_free(struct program *p)
{
	for (unsigned i = 0; i < p->script_count; i++)
		free(p->scripts[i]);
	object_close(p->object);
	free(p->path);
	free(p->message);
	free(p->native);
	free(p->dormant);
}
