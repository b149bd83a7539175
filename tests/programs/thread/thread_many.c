/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_many.c - N threads blocked in read at once.
 *
 *	thread_many [N [mem]]
 *
 * With "mem" the resident size per thread goes to stderr.  Threads share
 * socketpairs as far as the limit on descriptors asks for it; each reads one
 * byte.
 */
#include "check.h"

#include <sys/resource.h>
#include <sys/socket.h>

static struct event arrived = EVENT_INIT;

static void *body(void *arg)
{
	int fd = (int)(intptr_t)arg;
	unsigned char c;

	event_post(&arrived);
	CHECK_INT(read(fd, &c, 1), 1);
	return (void *)(intptr_t)c;
}

static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = 0;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2000;
	struct rlimit limit;
	long long sum = 0, want = 0;
	long before;
	int pairs, (*fd)[2];
	pthread_t *t;

	CHECK(n > 0);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	pairs = limit.rlim_cur / 2 - 100 < (unsigned long)n ?
		(int)(limit.rlim_cur / 2 - 100) : n;
	CHECK(pairs > 0);

	fd = calloc((size_t)pairs, sizeof(*fd));
	t = calloc((size_t)n, sizeof(*t));
	CHECK(fd && t);
	for (int i = 0; i < pairs; i++)
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]));

	before = resident_kb();
	for (int i = 0; i < n; i++)
		t[i] = start(body, (void *)(intptr_t)fd[i % pairs][0]);
	event_wait(&arrived, n);
	settle();
	if (argc > 2)
		fprintf(stderr, "%d threads: %.1f KB resident each\n", n,
			(double)(resident_kb() - before) / n);

	for (int i = 0; i < n; i++) {
		unsigned char c = (unsigned char)(i * 7);

		want += c;
		CHECK_INT(write(fd[i % pairs][1], &c, 1), 1);
	}
	for (int i = 0; i < n; i++)
		sum += (intptr_t)finish(t[i]);
	CHECK_INT(sum, want);
	printf("%d threads\n", n);
	return success();
}
