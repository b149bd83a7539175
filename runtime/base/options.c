/* SPDX-License-Identifier: MIT */
#include "runtime/base/options.h"

#include <string.h>

const struct fz_option fz_options[FZ_OPTION_COUNT] = {
#define FZ_OPTION(name, variable, type, default_, min, max, help) \
	{ #name, #variable, FZ_OPTION_##type, default_, min, max, NULL, help },
#define FZ_WORDS_OPTION(name, variable, type, words, help) \
	{ #name, #variable, FZ_OPTION_##type, 0, 0, 0, words, help },
#include "runtime/base/options.def"
};

const struct fz_option *fz_option_of_variable(const char *variable, size_t length)
{
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		if (strlen(fz_options[i].variable) == length &&
		    memcmp(fz_options[i].variable, variable, length) == 0)
			return &fz_options[i];
	return NULL;
}

bool fz_option_is_flag(const char *name, const char *flag, size_t length)
{
	for (; length; name++, flag++, length--)
		if (*flag != (*name == '_' ? '-' : *name))
			return false;
	return !*name;
}

const struct fz_option *fz_option_of_flag(const char *flag, size_t length)
{
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		if (fz_option_is_flag(fz_options[i].name, flag, length))
			return &fz_options[i];
	return NULL;
}

/* ---- values ------------------------------------------------------------- */

/* Length of the first word of list; *ret_next is set to the next word, or NULL after the last. */
static size_t word_length(const char *list, const char **ret_next)
{
	size_t length = strcspn(list, ",");

	*ret_next = list[length] ? list + length + 1 : NULL;
	return length;
}

/* The place of the word among the words of the option, from 0; or -1. */
static int place_of(const struct fz_option *o, const char *word, size_t length)
{
	const char *this = o->words, *next;

	for (int place = 0; this; place++, this = next)
		if (word_length(this, &next) == length && memcmp(this, word, length) == 0)
			return place;
	return -1;
}

static bool parse_words(const struct fz_option *o, const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	while (text) {
		const char *next;
		size_t length = word_length(text, &next);
		int place = place_of(o, text, length);

		if (place < 0 || (next && o->type == FZ_OPTION_choice))
			return false;
		value = o->type == FZ_OPTION_choice ? (uint64_t)place : value | (uint64_t)1 << place;
		text = next;
	}
	*ret_value = value;
	return true;
}

/* The bits by which the unit k, m or g shifts a number; -1 for any other unit. */
static int shift_of(char unit)
{
	switch (unit | 0x20) {
	case 'k': return 10;
	case 'm': return 20;
	case 'g': return 30;
	default: return -1;
	}
}

static bool parse_number(const struct fz_option *o, const char *text, uint64_t *ret_value)
{
	const uint64_t largest = (uint64_t)1 << 40;
	const char *digits = text;
	uint64_t value = 0;
	int shift = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > largest)
			return false;
	}
	if (text == digits || (o->type == FZ_OPTION_bool && text > digits + 1))
		return false;
	if (o->type == FZ_OPTION_size && *text)
		shift = shift_of(*text++);
	if (shift < 0 || *text || value > o->max >> shift || value << shift < o->min)
		return false;
	*ret_value = value << shift;
	return true;
}

/* The name of a file: see options.def. */
static bool is_file_name(const struct fz_option *o, const char *text)
{
	if (!strchr(text, '/') || strlen(text) > o->max)
		return false;
	for (; (text = strchr(text, '%')); text += 2)
		if (!text[1] || !strchr("pn%", text[1]))
			return false;
	return true;
}

bool fz_option_parse(const struct fz_option *o, const char *text, uint64_t *ret_value)
{
	size_t length = strlen(text);

	switch (o->type) {
	case FZ_OPTION_choice:
	case FZ_OPTION_set:
		return parse_words(o, text, ret_value);
	case FZ_OPTION_file:
		if ((*text == '0' || *text == '1') && !text[1])
			*ret_value = (uint64_t)(*text - '0');
		else
			*ret_value = (uintptr_t)text;
		return *ret_value <= 1 || is_file_name(o, text);
	case FZ_OPTION_path:
	case FZ_OPTION_list:
		if (o->type == FZ_OPTION_path ? !length : length < o->min || length > o->max)
			return false;
		*ret_value = (uintptr_t)text;
		return true;
	default:
		return parse_number(o, text, ret_value);
	}
}

/* ---- text for messages and --help ---------------------------------------- */

struct text {
	char *at, *end;		/* next byte to write; *end is the zero at the end */
};

static struct text begin(char *text, size_t size)
{
	memset(text, 0, size);
	return (struct text){ text, text + size - 1 };
}

static void put(struct text *t, const char *string, size_t length)
{
	if (length > (size_t)(t->end - t->at))
		length = (size_t)(t->end - t->at);
	memcpy(t->at, string, length);
	t->at += length;
}

static void put_string(struct text *t, const char *string)
{
	put(t, string, strlen(string));
}

/* Write a number; a size is written with the largest unit that leaves no remainder. */
static void put_number(struct text *t, const struct fz_option *o, uint64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);
	unsigned unit = 0;

	while (o->type == FZ_OPTION_size && unit < 3 && value && value % 1024 == 0) {
		value /= 1024;
		unit++;
	}
	if (unit)
		digits[--at] = " kmg"[unit];
	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	put(t, digits + at, sizeof(digits) - at);
}

static void put_range(struct text *t, const struct fz_option *o)
{
	put_number(t, o, o->min);
	put_string(t, " to ");
	put_number(t, o, o->max);
}

static void put_words(struct text *t, const struct fz_option *o)
{
	const char *this = o->words, *next;

	for (; this; this = next) {
		put(t, this, word_length(this, &next));
		if (next)
			put_string(t, o->type == FZ_OPTION_choice && !strchr(next, ',') ? " or " : ", ");
	}
}

void fz_option_allowed(const struct fz_option *o, char *ret_text, size_t size)
{
	struct text t = begin(ret_text, size);

	switch (o->type) {
	case FZ_OPTION_int:
		put_string(&t, "an integer from ");
		put_range(&t, o);
		break;
	case FZ_OPTION_bool:
		put_string(&t, "0 or 1");
		break;
	case FZ_OPTION_size:
		put_string(&t, "a size from ");
		put_range(&t, o);
		put_string(&t, ", in bytes or with k, m or g");
		break;
	case FZ_OPTION_file:
		put_string(&t, "0, 1, or the name of a file, with a slash; in it only %p, %n and %%");
		break;
	case FZ_OPTION_path:
		put_string(&t, "the name of a file");
		break;
	case FZ_OPTION_list:
		put_string(&t, "a list of ");
		put_range(&t, o);
		put_string(&t, " characters");
		break;
	case FZ_OPTION_set:
		put_string(&t, "any of ");
		put_words(&t, o);
		break;
	case FZ_OPTION_choice:
		put_words(&t, o);
		break;
	}
}

void fz_option_default(const struct fz_option *o, char *ret_text, size_t size)
{
	struct text t = begin(ret_text, size);
	const char *next;

	if (o->type == FZ_OPTION_list || o->type == FZ_OPTION_set)
		put_string(&t, "none");
	else if (o->type == FZ_OPTION_choice)
		put(&t, o->words, word_length(o->words, &next));
	else if (o->type == FZ_OPTION_path || o->initial < o->min)
		put_string(&t, "automatic");
	else
		put_number(&t, o, o->initial);
}

const char *fz_option_argument(const struct fz_option *o)
{
	static const char *const arguments[] = {
		[FZ_OPTION_int] = "N",		[FZ_OPTION_bool] = "",
		[FZ_OPTION_size] = "SIZE",	[FZ_OPTION_path] = "FILE",
		[FZ_OPTION_list] = "LIST",	[FZ_OPTION_choice] = "WORD",
		[FZ_OPTION_set] = "WORD,...",	[FZ_OPTION_file] = "",
	};

	return arguments[o->type];
}
