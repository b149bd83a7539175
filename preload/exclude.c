/* SPDX-License-Identifier: MIT */
#include "preload/exclude.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "runtime/die.h"

/*
 * Their threads wait for each other by spinning and by futexes without libc, and
 * expect a CPU each.
 */
static const char built_in[] = "@libgomp.so*,@libomp.so*,@libiomp5.so*";

/* A copy: programs write over their environment (setproctitle). */
static char patterns[256];

void fz_exclude_init(char *const *envp)
{
	static const char name[] = "FIBERIZE_NATIVE_THREADS=";

	for (; envp && *envp; envp++) {
		const char *value = *envp + sizeof(name) - 1;

		if (strncmp(*envp, name, sizeof(name) - 1) != 0)
			continue;
		if (strlen(value) < sizeof(patterns))
			strcpy(patterns, value);
		else
			fz_say("FIBERIZE_NATIVE_THREADS: longer than %u characters; ignored",
			       (unsigned)sizeof(patterns) - 1);
	}
}

/* The pattern ends at a comma or at the end. */
static bool matches(const char *pattern, const char *text)
{
	for (; *pattern && *pattern != ','; pattern++, text++) {
		if (*pattern == '*') {
			do
				if (matches(pattern + 1, text))
					return true;
			while (*text++);
			return false;
		}
		if (!*text || (*pattern != '?' && *pattern != *text))
			return false;
	}
	return !*text;
}

static bool in_list(const char *list, bool of_files, const char *text)
{
	while (list && *list) {
		bool of_file = *list == '@';

		if (of_file == of_files && matches(list + of_file, text))
			return true;
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	return false;
}

bool fz_excluded_name(const char *name)
{
	return *patterns && in_list(patterns, false, name);
}

static bool look_up(const void *caller)
{
	const char *slash;
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	slash = slash ? slash + 1 : info.dli_fname;
	return in_list(built_in, true, slash) || in_list(patterns, true, slash);
}

bool fz_excluded_caller(const void *caller)
{
	/* address << 1 | answer: a program calls pthread_create in few places. */
	static _Atomic uintptr_t known[16];
	_Atomic uintptr_t *slot = &known[(uintptr_t)caller / 16 % 16];
	/* relaxed: the word is all there is. */
	uintptr_t word = atomic_load_explicit(slot, memory_order_relaxed);
	bool excluded;

	if (word >> 1 == (uintptr_t)caller)
		return word & 1;
	excluded = look_up(caller);
	atomic_store_explicit(slot, (uintptr_t)caller << 1 | excluded, memory_order_relaxed);
	return excluded;
}
