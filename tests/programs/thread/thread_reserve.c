/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_reserve.c - what a few threads cost the process is what they may
 * use: in its count of data, with all memory locked (mlockall, before and after the first
 * thread), and in a core file, which has the stacks of all threads.
 */
#include "check.h"
#include "status.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define THREADS 4
#define MOST_KB (400 * 1024)

static pthread_barrier_t all_run, done;

static void *runs(void *arg)
{
	volatile char marker[32];

	/* Written so that it is in no other place than a stack. */
	for (int i = 0; i < 24; i++)
		marker[i] = (char)("MARK-OF-THREAD-NUMBER--*"[i] + 1);
	marker[23] = (char)('a' + (intptr_t)arg);
	pthread_barrier_wait(&all_run);
	pthread_barrier_wait(&done);
	CHECK_INT(marker[23], 'a' + (intptr_t)arg);
	return NULL;
}

static void start_threads(pthread_t *t)
{
	CHECK_OK(pthread_barrier_init(&all_run, NULL, THREADS + 1));
	CHECK_OK(pthread_barrier_init(&done, NULL, THREADS + 1));
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(runs, (void *)i);
	pthread_barrier_wait(&all_run);
}

static void finish_threads(pthread_t *t)
{
	pthread_barrier_wait(&done);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
}

static void data(void)
{
	pthread_t t[THREADS];

	start_threads(t);
	CHECK(status_kb("VmData:") < MOST_KB);
	finish_threads(t);
}

/* Without the right to lock memory there is nothing to see. */
static bool lock_all(int flags, bool by_number)
{
	if (!by_number)
		return mlockall(flags) == 0;
	return syscall(SYS_mlockall, flags) == 0;
}

static void locked_before(bool by_number)
{
	pthread_t t[THREADS];

	if (!lock_all(MCL_CURRENT | MCL_FUTURE, by_number))
		return;
	start_threads(t);
	CHECK(status_kb("VmLck:") < MOST_KB);
	CHECK(status_kb("VmRSS:") < MOST_KB);
	CHECK(status_kb("VmLck:") > THREADS * 1024);
	finish_threads(t);
	CHECK_OK(munlockall());
	CHECK_INT(status_kb("VmLck:"), 0);
}

static void locked_after(int flags)
{
	pthread_t t[THREADS], more[THREADS];

	start_threads(t);
	if (lock_all(flags, false)) {
		CHECK(status_kb("VmLck:") < MOST_KB);
		CHECK(status_kb("VmRSS:") < MOST_KB);
	}
	finish_threads(t);
	for (int i = 0; i < 3; i++) {
		start_threads(more);
		CHECK(status_kb("VmLck:") < MOST_KB);
		finish_threads(more);
	}
}

static void dump(const char *directory)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	pthread_t t[THREADS];

	CHECK_OK(chdir(directory));
	CHECK_OK(setrlimit(RLIMIT_CORE, &all));
	start_threads(t);
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void examine(const char *path)
{
	static char buffer[(1 << 20) + 32];
	char want[] = "NBSL.PG.UISFBE.OVNCFS..";
	bool found[THREADS] = { false };
	int fd = open(path, O_RDONLY);
	struct stat st;
	ssize_t n;

	CHECK(fd >= 0);
	CHECK_OK(fstat(fd, &st));
	CHECK(st.st_size < (off_t)MOST_KB * 1024);
	for (off_t at = 0; (n = pread(fd, buffer, sizeof(buffer), at)) > 32; at += 1 << 20)
		for (char *p = buffer; (p = memmem(p, (size_t)(buffer + n - p), want, 23)); p++)
			if (p + 23 < buffer + n && p[23] >= 'a' && p[23] < 'a' + THREADS)
				found[p[23] - 'a'] = true;
	for (int i = 0; i < THREADS; i++)
		CHECK(found[i]);
	close(fd);
}

/* Only where the kernel writes core files into the working directory. */
static void core_file(void)
{
	char pattern[256] = "|", directory[] = "/tmp/thread_reserve.XXXXXX", path[512];
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");
	struct rlimit limit;
	struct dirent *entry;
	int status;
	pid_t child;
	DIR *dir;

	if (f) {
		CHECK(fgets(pattern, sizeof(pattern), f));
		fclose(f);
	}
	CHECK_OK(getrlimit(RLIMIT_CORE, &limit));
	if (pattern[0] == '|' || strchr(pattern, '/') || limit.rlim_max != RLIM_INFINITY)
		return;
	CHECK(mkdtemp(directory));
	child = fork();
	if (child == 0)
		dump(directory);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	CHECK(dir = opendir(directory));
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
			if (WCOREDUMP(status))
				examine(path);
			unlink(path);
		}
	closedir(dir);
	CHECK_OK(rmdir(directory));
}

static void count_data(int unused)
{
	(void)unused;
	data();
}

static void lock_before(int by_number)
{
	locked_before(by_number);
}

int main(void)
{
	run_in_child(count_data, 0);
	run_in_child(lock_before, 0);
	run_in_child(lock_before, 1);
	run_in_child(locked_after, MCL_CURRENT);
	run_in_child(locked_after, MCL_CURRENT | MCL_FUTURE);
	run_in_child(locked_after, MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	core_file();
	/* A parent's reserve is the child's, too. */
	data();
	run_in_child(lock_before, 0);
	run_in_child(locked_after, MCL_CURRENT | MCL_FUTURE);
	return success();
}
