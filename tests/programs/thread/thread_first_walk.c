/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_first_walk.c - the first thread of a process is made with locks of
 * the loader held: by a callback of dl_iterate_phdr.
 */
#include "check.h"

#include <link.h>

static pthread_t thread;

static void *returns(void *arg)
{
	return arg;
}

static int makes_thread(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	thread = start(returns, arg);
	return 1;
}

int main(void)
{
	int word;

	CHECK_INT(dl_iterate_phdr(makes_thread, &word), 1);
	CHECK(finish(thread) == &word);
	return success();
}
