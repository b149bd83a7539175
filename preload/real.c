/* SPDX-License-Identifier: MIT */
#include "preload/real.h"

#include <dlfcn.h>

#include "preload/gate.h"

enum rung {
#define FZ_RUNG(rung, ...) RUNG_##rung,
#include "preload/rungs.def"
};

static const char *const words[] = {
#define FZ_RUNG(rung, word, text) [RUNG_##rung] = word,
#include "preload/rungs.def"
};

/* symbols.def's mark for a function that a libc may lack; no real version is empty. */
#define OPTIONAL ""

static const struct {
	const char *name;
	const char *version;	/* of the symbol; NULL: the default version, which every libc has */
	enum rung rung;
} wanted[FZ_SYM_COUNT] = {
#define FZ_SYMBOL(name_, rung_, cancel, family, topic, version_, ...) \
	[FZ_SYM_##name_] = { #name_, version_, RUNG_##rung_ },
#include "preload/symbols.def"
};

static bool is_optional(enum fz_symbol symbol)
{
	return wanted[symbol].version && !*wanted[symbol].version;
}

struct fz_real fz_real;
bool fz_real_bound;
const char *fz_real_missing;

static long not_there(void)
{
	return fz_leave(-ENOSYS);
}

/*
 * dlsym() calls malloc for its message when a name or version is missing. The program's
 * allocator may start at that moment and call us, so the first loop binds every function that
 * every libc has, and only the second one looks up names and versions that may be missing.
 */
void fz_real_bind(void)
{
	void **slot = (void **)&fz_real;

	if (fz_real_bound)
		return;
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		if (is_optional(i))
			continue;
		slot[i] = dlsym(RTLD_NEXT, wanted[i].name);
		if (slot[i])
			continue;
		slot[i] = (void *)not_there;
		if (!fz_real_missing)
			fz_real_missing = wanted[i].name;
	}
	fz_real_bound = true;
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		void *fn;

		if (!wanted[i].version)
			continue;
		/* Other architectures lack old versions (aarch64 starts at 2.17): the default one stays. */
		fn = is_optional(i) ? dlsym(RTLD_NEXT, wanted[i].name) :
			dlvsym(RTLD_NEXT, wanted[i].name, wanted[i].version);
		if (fn)
			slot[i] = fn;
	}
}

const char *fz_symbol_name(enum fz_symbol symbol)
{
	return wanted[symbol].name;
}

const char *fz_symbol_rung(enum fz_symbol symbol)
{
	return words[wanted[symbol].rung];
}
