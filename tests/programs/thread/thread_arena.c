/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_arena.c - malloc reserves no arena if no thread but the first has allocated: 64 MB of address
 * space at a multiple of 64 MB, the first part of which can be used.
 */
#include "check.h"

static const unsigned long arena = (unsigned long)64 << 20;

static void *sleeps(void *arg)
{
	usleep(1000);
	return arg;
}

int main(void)
{
	unsigned long begin, end, begin_before = 0, end_before = 0;
	char line[512], access[5];
	pthread_t t[20];
	FILE *maps;

	for (int i = 0; i < 20; i++)
		t[i] = start(sleeps, NULL);
	for (int i = 0; i < 20; i++)
		finish(t[i]);
	maps = fopen("/proc/self/maps", "r");
	CHECK(maps);
	while (fgets(line, sizeof(line), maps)) {
		CHECK_INT(sscanf(line, "%lx-%lx %4s", &begin, &end, access), 3);
		if (strcmp(access, "---p") == 0 && begin == end_before && begin_before % arena == 0)
			CHECK(end != begin_before + arena);
		begin_before = begin;
		end_before = end;
	}
	CHECK_OK(fclose(maps));
	return success();
}
