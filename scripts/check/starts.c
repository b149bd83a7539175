/* SPDX-License-Identifier: MIT */
#include "starts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program_internal.h"
#include "scripts/elf/file.h"

struct visitor {
	void (*visit)(const char *name, void *arg);
	void *arg;
	const char *self;
	bool unknown;	/* an "exec" runs a program whose name only the run shows */
};

bool starts_is_shell(const char *path)
{
	size_t length = strlen(path);

	return length > 2 && strcmp(path + length - 2, "sh") == 0;
}

/* ---- scripts ------------------------------------------------------------ */

/* Remove semicolons at the end of the word, and then the quotes if they enclose the whole word. */
static char *unquote(char *word)
{
	size_t length = strlen(word);

	while (length && word[length - 1] == ';')
		word[--length] = '\0';
	if (length >= 2 && (*word == '"' || *word == '\'') && word[length - 1] == *word) {
		word[length - 1] = '\0';
		word++;
	}
	return word;
}

/* The word without its quotes; NULL if the shell would expand it or treat it specially. */
static const char *constant(char *word)
{
	word = unquote(word);
	return *word && *word != '-' && !strpbrk(word, "$`*?[]<>&|;()'\"\\{}~#=") ? word : NULL;
}

/* Is name a command like nice, which execs the program named after its own options? */
static bool is_prefix(const char *name)
{
	static const char *const prefixes[] = {
		"chrt", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "timeout"
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strcmp(name, prefixes[i]) == 0)
			return true;
	return false;
}

/* Is the word after "exec" a redirection (>file, 3<&0)? Then the shell itself goes on. */
static bool is_redirection(const char *word)
{
	word += *word == '&' ? 1 : strspn(word, "0123456789");
	return *word == '<' || *word == '>' || *word == '{' || *word == '#';
}

/* Find the program that a command like nice names after its options and their values, or NULL. */
static char **behind_prefix(char **word)
{
	for (; *word; word++) {
		const char *name;
		char *refused = NULL, *path;

		if (**word == '-' || isdigit((unsigned char)(*word)[**word == '.']))
			continue;
		name = constant(*word);
		if (!name)
			return NULL;
		*word = (char *)name;
		if (strchr(name, '/'))
			return word;
		path = program_in_path(name, &refused);
		free(refused);
		free(path);
		if (path)
			return word;
	}
	return NULL;
}

/* The program that "exec" runs, given the words after "exec"; NULL if the words do not tell. */
static const char *behind_exec(char **word)
{
	const char *name, *slash;

	while (*word && **word == '-')
		word += strcmp(*word, "-a") == 0 && word[1] ? 2 : 1;
	name = *word ? constant(*word) : NULL;
	slash = name ? strrchr(name, '/') : NULL;
	if (name && is_prefix(slash ? slash + 1 : name)) {
		word = behind_prefix(word + 1);
		return word ? behind_exec(word) : NULL;
	}
	if (name && strcmp(slash ? slash + 1 : name, "env") == 0) {
		for (char **w = word + 1; *w; w++)
			*w = unquote(*w);
		name = program_behind_env(word + 1);
		while (name && *word && *word != name)
			word++;
		return name && *word ? behind_exec(word) : NULL;
	}
	return name;
}

/* Does a quoted text begin in the word and not end in it? */
static bool leaves_quote(const char *word)
{
	char open = '\0';

	for (; *word; word++)
		if (open ? *word == open : *word == '"' || *word == '\'')
			open = open ? '\0' : *word;
	return open;
}

/* The word stands where a command may begin. May a command begin after it, as after "then"? */
static bool leads_on(const char *word)
{
	static const char *const leads[] = { "then", "else", "do", "if", "{", "(", "!" };

	for (size_t i = 0; i < sizeof(leads) / sizeof(*leads); i++)
		if (strcmp(word, leads[i]) == 0)
			return true;
	return strchr(word, '=') && !leaves_quote(word);
}

static bool ends_command(const char *word)
{
	size_t length = strlen(word);

	return length && (word[length - 1] == ';' || strcmp(word, "&&") == 0 ||
			  strcmp(word, "||") == 0 || word[length - 1] == ')');
}

static void look_at_line(char *line, struct visitor *v)
{
	char *words[256] = { NULL }, *rest = line, *word;
	bool command = true;
	size_t count = 0;

	while ((word = strsep(&rest, " \t\r\n")) && count < 255)
		if (*word)
			words[count++] = word;
	for (size_t i = 0; i < count && *words[i] != '#'; i++) {
		bool next = ends_command(words[i]) || (command && leads_on(words[i]));
		const char *name = NULL;

		if (command && strcmp(words[i], "exec") == 0 && words[i + 1]) {
			name = behind_exec(words + i + 1);
			v->unknown |= !name && !is_redirection(words[i + 1]);
		} else if (command && (*words[i] == '/' || strncmp(words[i], "\"/", 2) == 0)) {
			name = constant(words[i]);
		}
		if (name)
			v->visit(name, v->arg);
		command = next;
	}
}

static void look_at_script(const char *path, struct visitor *v)
{
	const int fd = file_open(path);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	size_t size = 0, left = 10000;
	char *line = NULL;

	while (in && left-- && getline(&line, &size, in) >= 0)
		look_at_line(line, v);
	free(line);
	if (in)
		fclose(in);
}

/* ---- strings ------------------------------------------------------------ */

static void look_at_string(const char *text, void *arg)
{
	const struct visitor *v = arg;
	struct stat status;

	if (*text == '/' && !strchr(text, ' ') && !starts_is_shell(text) && strcmp(text, v->self) != 0 &&
	    !strstr(text, ".so") && stat(text, &status) == 0 && S_ISREG(status.st_mode) &&
	    access(text, X_OK) == 0)
		v->visit(text, v->arg);
}

bool starts_find(const struct program *p, void (*visit)(const char *name, void *arg), void *arg)
{
	struct visitor v = { visit, arg, p->path, false };

	if (p->script_count == 0)
		object_each_string(p->object, look_at_string, &v);
	else if (starts_is_shell(p->object->path))
		look_at_script(p->scripts[p->script_count - 1], &v);
	return v.unknown;
}
