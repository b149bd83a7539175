/* SPDX-License-Identifier: MIT */
#include "preload/config.h"

#include <string.h>

#include "runtime/base/die.h"

enum type { TYPE_int, TYPE_bool, TYPE_size, TYPE_choice, TYPE_set, TYPE_launcher };

struct fz_config fz_config;

static const struct option {
	const char *env;
	enum type type;
	uint64_t min, max;
	size_t offset;
	const char *words;
} options[] = {
#define FZ_OPTION(name, env_, type_, default_, min_, max_, help) \
	{ #env_, TYPE_##type_, min_, max_, offsetof(struct fz_config, name), NULL },
#define FZ_LAUNCHER_OPTION(name, env_, type_, default_, min_, max_, help) \
	{ #env_, TYPE_launcher, 0, 0, 0, NULL },
#define FZ_WORDS_OPTION(name, env_, type_, words_, help) \
	{ #env_, TYPE_##type_, 0, 0, offsetof(struct fz_config, name), words_ },
#include "runtime/base/options.def"
#undef FZ_OPTION
};

/* The place of a word among the option's, or -1. */
static int place_of(const struct option *o, const char *word, size_t length)
{
	const char *next = o->words;

	for (int place = 0; next; place++) {
		const char *this = next;
		size_t size = strcspn(this, ",");

		if (size == length && memcmp(this, word, length) == 0)
			return place;
		next = this[size] ? this + size + 1 : NULL;
	}
	return -1;
}

static bool parse_words(const struct option *o, const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (;;) {
		size_t length = strcspn(text, ",");
		int place = place_of(o, text, length);

		if (place < 0)
			return false;
		value = o->type == TYPE_choice ? (uint64_t)place : value | (uint64_t)1 << place;
		text += length;
		if (!*text)
			break;
		if (o->type == TYPE_choice)
			return false;
		text++;
	}
	*ret_value = value;
	return true;
}

static bool parse(const struct option *o, const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;
	unsigned shift = 0;

	if (o->words)
		return parse_words(o, text, ret_value);
	if (!*text)
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > (uint64_t)1 << 40)
			return false;
	}
	if (o->type == TYPE_size && *text) {
		switch (*text++ | 0x20) {
		case 'k': shift = 10; break;
		case 'm': shift = 20; break;
		case 'g': shift = 30; break;
		default: return false;
		}
	}
	value <<= shift;
	if (*text || value < o->min || value > o->max)
		return false;
	*ret_value = value;
	return true;
}

static void report(const struct option *o, const char *value)
{
	switch (o->type) {
	case TYPE_bool:
		fz_say("%s=%s: 0 or 1 is allowed; ignored", o->env, value);
		break;
	case TYPE_size:
		fz_say("%s=%s: a size in bytes, or with k, m or g, from %lu to %lu is allowed; ignored",
		       o->env, value, (unsigned long)o->min, (unsigned long)o->max);
		break;
	case TYPE_choice:
	case TYPE_set:
		fz_say("%s=%s: %s %s is allowed; ignored", o->env, value,
		       o->type == TYPE_set ? "a list of" : "one of", o->words);
		break;
	default:
		fz_say("%s=%s: a number from %lu to %lu is allowed; ignored", o->env, value,
		       (unsigned long)o->min, (unsigned long)o->max);
		break;
	}
}

static void read_one(const char *entry)
{
	const char *equals = strchr(entry, '=');
	size_t length = equals ? (size_t)(equals - entry) : strlen(entry);

	if (!equals)
		return;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const struct option *o = &options[i];
		uint64_t value;

		if (strlen(o->env) != length || memcmp(o->env, entry, length) != 0)
			continue;
		if (o->type == TYPE_launcher)
			return;
		if (parse(o, equals + 1, &value))
			memcpy((char *)&fz_config + o->offset, &value, sizeof(value));
		else
			report(o, equals + 1);
		return;
	}
	fz_say("%s: there is no such option; ignored", entry);
}

void fz_config_read(char *const *envp)
{
#define FZ_OPTION(name, env, type, default_, min, max, help) fz_config.name = default_;
#define FZ_WORDS_OPTION(name, env, type, words, help) fz_config.name = 0;
#include "runtime/base/options.def"
#undef FZ_OPTION
	for (; envp && *envp; envp++)
		/* The launcher marks the process that it becomes: preload/init.c. */
		if (strncmp(*envp, "FIBERIZE_", 9) == 0 &&
		    strncmp(*envp, "FIBERIZE_LAUNCHED=", 18) != 0)
			read_one(*envp);
}

const char *fz_variable(char *const *envp, const char *name)
{
	size_t length = strlen(name);

	for (; envp && *envp; envp++)
		if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
			return *envp + length + 1;
	return NULL;
}
