/* SPDX-License-Identifier: MIT */
#include "program_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "misc.h"
#include "scripts/elf/file.h"
#include "secure.h"

/* ---- PATH --------------------------------------------------------------- */

static bool is_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/*
 * A hint for the message if the interpreter's name ends in a carriage return: editors on Windows end
 * lines by it.
 */
static const char *strange_end(const char *name)
{
	size_t length = strlen(name);

	return length && name[length - 1] == '\r' ? " (the name ends in a carriage return)" : "";
}

/* The path of the file that name means. PATH is not searched for a name with a slash. */
static char *find_file(struct search *s, const char *name)
{
	struct stat status;

	if (stat(name, &status) != 0 && (errno == ENOENT || errno == ENOTDIR))
		program_refuse(s, CODE_NOTFOUND, "missing", "%s: no such program%s", name,
		       strange_end(name));
	else if (stat(name, &status) != 0)
		program_refuse(s, CODE_NOEXEC, "not executable", "%s: %s", name, strerror(errno));
	else if (S_ISDIR(status.st_mode))
		program_refuse(s, CODE_NOEXEC, "not executable", "%s: is a directory", name);
	else if (!S_ISREG(status.st_mode))
		program_refuse(s, CODE_NOEXEC, "not executable", "%s: not a regular file", name);
	else if (access(name, X_OK) != 0)
		program_refuse(s, CODE_NOEXEC, "not executable", "%s: not executable", name);
	else
		return strdup(name);
	return NULL;
}

char *program_in_path(const char *name, char **ret_refused)
{
	/* Where shells search if PATH is not set. */
	const char *list = getenv("PATH") ?: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *copy = strdup(list), *rest = copy, *directory, *path = NULL;

	*ret_refused = NULL;
	while (!path && rest && (directory = strsep(&rest, ":"))) {
		if (asprintf(&path, "%s/%s", *directory ? directory : ".", name) < 0)
			path = NULL;
		if (!path || !is_file(path) || access(path, X_OK) != 0) {
			if (path && !*ret_refused && is_file(path)) {
				*ret_refused = path;
				path = NULL;
			}
			free(path);
			path = NULL;
		}
	}
	free(copy);
	return path;
}

static char *find_in_path(struct search *s, const char *name)
{
	char *refused, *path;

	if (!*name) {
		program_refuse(s, CODE_NOTFOUND, "missing", "the name of the program is empty");
		return NULL;
	}
	path = program_in_path(name, &refused);
	if (!path && refused)
		program_refuse(s, CODE_NOEXEC, "not executable", "%s: not executable", refused);
	else if (!path)
		program_refuse(s, CODE_NOTFOUND, "missing", "%s: no such program in PATH%s", name,
		       strange_end(name));
	free(refused);
	return path;
}

static char *find_program(struct search *s, const char *name)
{
	return strchr(name, '/') ? find_file(s, name) : find_in_path(s, name);
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

const char *program_behind_env(char **word)
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
		/* These options change PATH or the directory. */
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

/* Go on with the interpreter of path. The kernel does not search PATH, so "x" means "./x". */
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
 * line is the text after #!; the function cuts it into words. If it names no interpreter, execve(2)
 * fails with ENOEXEC, and shells and execvp(3) run the file by /bin/sh.
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
	name = (char *)program_behind_env(words + 1);
	if (name) {
		object_close(s->program->object);
		s->program->object = NULL;
		free(s->program->dormant);
		s->program->dormant = NULL;
		follow(s, name);
	}
}

/* Is the file an ELF file for another machine? Such a file is refused, even if an emulator is registered. */
static bool is_foreign(const char *path, const char *start)
{
	struct object *o = memcmp(start, ELFMAG, SELFMAG) == 0 ? object_open(path) : NULL;
	bool foreign = o && (o->elf_class == ELFCLASS32 || o->header.e_machine != MACHINE);

	object_close(o);
	return foreign;
}

/*
 * If the file has a format that is registered with the kernel (misc.h), examine its interpreter and
 * return true. start is NULL if the file cannot be read.
 */
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
		program_refuse(s, CODE_NOEXEC, "damaged script", "%s: too many interpreters", path);
	} else {
		s->program->scripts[s->program->script_count++] = strdup(path);
		/*
		 * The kernel opened this interpreter at registration, so a file of this name
		 * need not exist in this mount namespace.
		 */
		if (misc.fixed && access(misc.interpreter, X_OK) != 0)
			s->program->kind = "unreadable";
		else
			follow_interpreter(s, path, misc.interpreter);
	}
	free(misc.interpreter);
	return true;
}

/*
 * Cut start (the first START_SIZE bytes) after its first line. If the interpreter's name is longer
 * than START_SIZE allows, nothing stays after #!, because the kernel refuses the script.
 */
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
	int fd = file_open(path);
	ssize_t size = fd < 0 ? -1 : read(fd, start, START_SIZE);

	if (fd >= 0)
		close(fd);
	if (examine_misc(s, path, size < 0 ? NULL : start))
		return;
	/* A program that may be executed but not read cannot be judged; only its rights are checked. */
	if (size < 0) {
		s->program->kind = "unreadable";
		program_refuse_secure(s, path);
		return;
	}
	if (size >= 4 && memcmp(start, "\177ELF", 4) == 0) {
		s->program->object = object_open(path);
		if (s->program->object)
			program_judge(s, s->program->object);
		else
			program_refuse(s, CODE_NOEXEC, "unreadable", "%s: %s", path, strerror(errno));
		return;
	}
	if (s->program->script_count == SCRIPTS_MAX) {
		program_refuse(s, CODE_NOEXEC, "damaged script", "%s: too many interpreters", path);
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
		program_refuse(s, CODE_NOEXEC, "not a program", "%s: neither a program nor a script", path);
		return;
	}
	/* If the kernel does not know a file's format, a shell runs the file as a shell script. */
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
