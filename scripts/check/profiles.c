/* SPDX-License-Identifier: MIT */
#include "profiles.h"

#include <stdlib.h>
#include <string.h>

static void *grow(void *array, size_t count, size_t size)
{
	array = reallocarray(array, count + 1, size);
	if (!array)
		abort();
	return array;
}

void profiles_add(struct profiles *p, const char *file, const char *pattern)
{
	p->all = grow(p->all, p->count, sizeof(*p->all));
	p->all[p->count++] = (struct profile){ .file = file, .pattern = pattern };
}

void profiles_set(struct profiles *p, char **words)
{
	struct profile *last = &p->all[p->count - 1];

	last->settings = grow(last->settings, last->count, sizeof(*last->settings));
	last->settings[last->count++] =
		(struct setting){ words[0], words[1], strcmp(words[2], "1") == 0 };
}

void profiles_free(struct profiles *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->all[i].settings);
	free(p->all);
}
