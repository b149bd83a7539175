/* SPDX-License-Identifier: MIT */
#include "preload/real.h"

#include <dlfcn.h>
#include <errno.h>

enum kind { PARK = 1, TRACK = 2, SELF = 4, ANNOUNCE = 8, OPT = 16 };

#define FZ_ALIAS(alias, name)
static const struct {
	const char *name;
	const char *version;
	unsigned kind;
} wanted[FZ_SYM_COUNT] = {
#define FZ_SYMBOL(name_, version_, kind_) [FZ_SYM_##name_] = { #name_, version_, kind_ },
#include "preload/symbols.def"
#undef FZ_SYMBOL
};
#undef FZ_ALIAS

struct fz_real fz_real;
bool fz_real_bound;
const char *fz_real_missing;

static long not_there(void)
{
	errno = ENOSYS;
	return -1;
}

/*
 * A name or version that is missing makes dlsym() ask malloc for room for its message.  The
 * program's allocator may only begin then, and call us: by that time all that every libc has
 * must be bound.
 */
void fz_real_bind(void)
{
	void **slot = (void **)&fz_real;

	if (fz_real_bound)
		return;
	for (unsigned i = 0; i < FZ_SYM_COUNT; i++) {
		if (wanted[i].kind & OPT)
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

		if (!wanted[i].version && !(wanted[i].kind & OPT))
			continue;
		/* Other ABIs have one version only (aarch64 starts at 2.17). */
		fn = wanted[i].version ? dlvsym(RTLD_NEXT, wanted[i].name, wanted[i].version) :
			dlsym(RTLD_NEXT, wanted[i].name);
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
	switch (wanted[symbol].kind & ~(unsigned)OPT) {
	case PARK: return "park";
	case TRACK: return "track";
	case SELF: return "self";
	default: return "announce";
	}
}
