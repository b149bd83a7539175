/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/named_threads.c - prints, for each thread that names itself, that
 * its creator names before it starts, or that has its creator's name, whether there
 * is a kernel thread of that name while it waits.
 */
#include "check.h"

#include <dirent.h>
#include <semaphore.h>
#include <stdbool.h>

static bool kernel_has(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	bool found = false;

	CHECK(tasks);
	while (!found && (task = readdir(tasks))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f))
			comm[strcspn(comm, "\n")] = '\0';
		fclose(f);
		found = strcmp(comm, name) == 0;
	}
	closedir(tasks);
	return found;
}

static sem_t named, seen;

static void *run(void *arg)
{
	if (arg)
		CHECK_OK(pthread_setname_np(pthread_self(), arg));
	sem_post(&named);
	sem_wait(&seen);
	/* Whatever it is now, it goes on as a thread does. */
	usleep(1000);
	sem_post(&named);
	return arg;
}

static void look(const char *name)
{
	pthread_t thread;
	void *result;

	CHECK_OK(pthread_create(&thread, NULL, run, (void *)name));
	sem_wait(&named);
	printf("%s: %s\n", name, kernel_has(name) ? "kernel thread" : "fiber");
	sem_post(&seen);
	sem_wait(&named);
	CHECK_OK(pthread_join(thread, &result));
	CHECK(result == name);
}

int main(void)
{
	sem_init(&named, 0, 0);
	sem_init(&seen, 0, 0);
	look("one");
	look("two-a");
	look("two-b");
	look("three");
	puts("EXIT-SUCCESS");
	return 0;
}
