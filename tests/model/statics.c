/* SPDX-License-Identifier: MIT */
/*
 * tests/model/statics.c - is everything as it was before the run?  If a static variable of the explored files is not,
 * it was written without a hook: then no other kthread could come in between, and runs depend on each other.
 */
#include "tests/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the explored files alone: build.mk renames their sections. */
extern char __start_model_data[], __stop_model_data[], __start_model_bss[], __stop_model_bss[];

enum { EVERY = 256 };		/* runs; comparing takes about as long as one */

static struct part {
	char *start, *stop, *before;
} parts[2];

void statics_keep(void)
{
	parts[0] = (struct part){ .start = __start_model_data, .stop = __stop_model_data };
	parts[1] = (struct part){ .start = __start_model_bss, .stop = __stop_model_bss };
	for (int i = 0; i < 2; i++) {
		const size_t size = (size_t)(parts[i].stop - parts[i].start);

		parts[i].before = malloc(size);
		if (!parts[i].before)
			model_outside("no memory for a copy of the static variables");
		memcpy(parts[i].before, parts[i].start, size);
	}
}

void statics_check(void)
{
	static uint32_t runs;

	if (runs++ % EVERY)
		return;
	for (int i = 0; i < 2; i++) {
		size_t at = 0, size = (size_t)(parts[i].stop - parts[i].start);

		if (!memcmp(parts[i].start, parts[i].before, size))
			continue;
		while (parts[i].start[at] == parts[i].before[at])
			at++;
		fprintf(stderr, "model: the variable at %p is not what it was before the run: a store has no hook "
			"(nm -n names it)\n", (void *)(parts[i].start + at));
		_exit(3);
	}
}
