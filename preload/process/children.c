/* SPDX-License-Identifier: MIT */
#include "preload/process/children.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/gate.h"

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Would the dynamic loader load this library by `word`, or the stub, which loads this library? The name of the file
 * decides, because only the loader knows what ${LIB} in `word` stands for. The file decides if its name is another one.
 */
static bool is_ours(const char *word, const char *ours)
{
	const char *base = base_of(word);
	struct stat a, b;

	if (strcmp(base, base_of(ours)) == 0 || strcmp(base, "libfiberize.so") == 0 ||
	    strcmp(base, "libfiberize-preload.so") == 0)
		return true;
	return strchr(word, '/') && stat(word, &a) == 0 && stat(ours, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Remove this library and the stub from the list, in place. Returns true if nothing is left. */
static bool strip(char *list, const char *ours)
{
	char *to = list, *from = list;

	while (*from) {
		size_t length = strcspn(from, ": ");
		char word[4096];

		if (length && length < sizeof(word)) {
			memcpy(word, from, length);
			word[length] = '\0';
			if (!is_ours(word, ours)) {
				if (to != list)
					*to++ = ':';
				memmove(to, from, length);
				to += length;
			}
		}
		from += length;
		from += strspn(from, ": ");
	}
	*to = '\0';
	return to == list;
}

void fz_children_without_us(char **envp)
{
	static const char name[] = "LD_PRELOAD=";
	Dl_info info;

	if (!envp || !dladdr((void *)&fz_real, &info) || !info.dli_fname)
		return;
	while (*envp) {
		if (strncmp(*envp, name, sizeof(name) - 1) == 0 &&
		    strip(*envp + sizeof(name) - 1, info.dli_fname)) {
			for (char **e = envp; (e[0] = e[1]); e++)
				continue;
			continue;
		}
		envp++;
	}
}
