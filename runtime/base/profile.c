/* SPDX-License-Identifier: MIT */
#include "runtime/base/profile.h"

#include <string.h>

#include "runtime/base/pattern.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Cut the blanks at both ends of the text, which ends before end. */
static char *trim(char *text, char *end)
{
	while (end > text && is_blank(end[-1]))
		end--;
	*end = '\0';
	while (is_blank(*text))
		text++;
	return text;
}

static bool matches(const char *pattern, const char *text)
{
	return text && fz_pattern_matches(pattern, pattern + strlen(pattern), text, fz_pattern_takes_shell);
}

/* Does the pattern match the program?  A pattern with a slash must match the whole path, any other the last part. */
static bool is_for(const char *pattern, const struct fz_profile_program *p)
{
	const char *base = p->name, *slash;

	if (strchr(pattern, '/'))
		return matches(pattern, p->path) || matches(pattern, p->find_file ? p->find_file() : p->file);
	while ((slash = strchr(base, '/')))
		base = slash + 1;
	return matches(pattern, base);
}

static enum fz_profile_found read_section(struct fz_profile *p, char *line)
{
	char *bracket = line + strlen(line) - 1;

	/* Even if this line is wrong, the lines after it do not belong to the section before. */
	p->applies = false;
	if (*bracket != ']')
		return FZ_PROFILE_NEITHER;
	p->value = trim(line + 1, bracket);
	p->in_section = true;
	p->has_settings = false;
	if (!*p->value)
		return FZ_PROFILE_NO_PROGRAM;
	p->has_name = !fz_pattern_is_wild(p->value);
	p->applies = is_for(p->value, p->program);
	return FZ_PROFILE_SECTION;
}

static enum fz_profile_found read_setting(struct fz_profile *p)
{
	uint64_t number;

	if (!p->in_section)
		return FZ_PROFILE_NO_SECTION;
	if (strcmp(p->name, "arguments") == 0) {
		p->applies = p->applies && matches(p->value, p->program->arguments);
		return p->has_settings ? FZ_PROFILE_LATE : FZ_PROFILE_ARGUMENTS;
	}
	p->has_settings = true;
	if (strcmp(p->name, "everywhere") == 0) {
		if (strcmp(p->value, "0") != 0 && strcmp(p->value, "1") != 0)
			return FZ_PROFILE_NOT_0_OR_1;
		return *p->value == '1' && !p->has_name ? FZ_PROFILE_FOR_ALL : FZ_PROFILE_EVERYWHERE;
	}
	p->option = fz_option_of_flag(p->name, strlen(p->name));
	if (!p->option)
		return FZ_PROFILE_NO_OPTION;
	return fz_option_parse(p->option, p->value, &number) ? FZ_PROFILE_OPTION : FZ_PROFILE_BAD_VALUE;
}

static enum fz_profile_found read_line(struct fz_profile *p, char *line, char *end)
{
	char *equals;

	/* Editors on Windows end lines with \r\n. */
	if (end > line && end[-1] == '\r')
		end--;
	line = trim(line, end);
	if (!*line || *line == '#' || *line == ';')
		return FZ_PROFILE_NOTHING;
	if (*line == '[')
		return read_section(p, line);
	equals = strchr(line, '=');
	if (!equals)
		return FZ_PROFILE_NEITHER;
	p->value = trim(equals + 1, equals + strlen(equals));
	p->name = trim(line, equals);
	return read_setting(p);
}

struct fz_profile fz_profile_begin(char *text, size_t length, const struct fz_profile_program *program)
{
	static const char byte_order_mark[] = { '\357', '\273', '\277' };
	struct fz_profile p = { .program = program, .rest = text, .end = text + length };

	/* Editors on Windows put a byte order mark at the beginning of a file. */
	if (length >= sizeof(byte_order_mark) && memcmp(text, byte_order_mark, sizeof(byte_order_mark)) == 0)
		p.rest += sizeof(byte_order_mark);
	return p;
}

enum fz_profile_found fz_profile_next(struct fz_profile *p)
{
	enum fz_profile_found found = FZ_PROFILE_NOTHING;

	/* The last line ends at p->end, which need not be a newline. */
	while (found == FZ_PROFILE_NOTHING && p->rest <= p->end) {
		char *line = p->rest, *end = line;
		bool has_zero = false;

		for (; end < p->end && *end != '\n'; end++)
			has_zero |= !*end;
		p->rest = end + 1;
		p->line++;
		/* A line with a zero byte is not read; it may have begun another section. */
		if (has_zero)
			p->applies = false;
		found = has_zero ? FZ_PROFILE_ZERO_BYTE : read_line(p, line, end);
	}
	return found == FZ_PROFILE_NOTHING ? FZ_PROFILE_END : found;
}
