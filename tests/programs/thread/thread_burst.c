/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_burst.c - many threads live at a time, and end: soon after, their
 * memory is the process's again, address space included, and the next burst works as the first,
 * also if the program has mapped memory of its own in between. Where address space is limited
 * and threads have used all of it, there is memory as soon as they have been joined.
 *
 *	thread_burst left		says what is resident, and mapped, in kB, after 2,000 threads
 *	thread_burst left RSS SIZE	waits until less than that is
 */
#include "check.h"
#include "status.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MOST 20000
#define THREADS 1200
#define STACK (128 * 1024)

static pthread_t threads[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_end;
static int alive;
static __thread int own = 1;
static pthread_key_t key;

static void *lives(void *arg)
{
	volatile char used[32768];

	CHECK_INT(own, 1);
	CHECK(!pthread_getspecific(key));
	CHECK_OK(pthread_setspecific(key, arg));
	own = 2;
	for (size_t i = 0; i < sizeof(used); i += 1024)
		used[i] = 1;
	pthread_mutex_lock(&lock);
	alive++;
	pthread_cond_broadcast(&changed);
	while (!may_end)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	CHECK_INT(used[1024], 1);
	CHECK(pthread_getspecific(key) == arg);
	return arg;
}

/* Make up to `most` threads of this stack size, and end them.  Returns how many there were. */
static int burst(int most, size_t stack)
{
	pthread_attr_t attr;
	void *result;
	int n = 0;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, stack));
	may_end = false;
	alive = 0;
	while (n < most && pthread_create(&threads[n], &attr, lives, (void *)(intptr_t)(n + 1)) == 0)
		n++;
	pthread_mutex_lock(&lock);
	while (alive < n)
		pthread_cond_wait(&changed, &lock);
	may_end = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < n; i++) {
		CHECK_OK(pthread_join(threads[i], &result));
		CHECK_INT((intptr_t)result, i + 1);
	}
	CHECK_OK(pthread_attr_destroy(&attr));
	return n;
}

/* It takes some seconds, or longer on a busy machine. */
static void wait_until_below(const char *name, long kb)
{
	for (int tenths = 0; status_kb(name) >= kb; tenths++) {
		CHECK(tenths < 600);
		usleep(100000);
	}
}

static void bursts(int rounds)
{
	long rss, size;

	/* Before the first thread: what threads need as such is counted, too. */
	size = status_kb("VmSize:") + 120 * 1024;
	CHECK_INT(burst(10, STACK), 10);
	rss = status_kb("VmRSS:") + 20 * 1024;
	while (rounds--) {
		CHECK_INT(burst(THREADS, STACK), THREADS);
		wait_until_below("VmRSS:", rss);
		wait_until_below("VmSize:", size);
		/* Wherever the kernel puts them: where stacks were, too. */
		for (int i = 0; i < 100; i++) {
			char *map = mmap(NULL, 16384, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			CHECK(map != MAP_FAILED);
			memset(map, 7, 16384);
			CHECK_OK(mprotect(map, 4096, PROT_READ));
		}
	}
}

static void limited(int most)
{
	struct rlimit limit;
	int n, again;
	void *p;

	CHECK_INT(burst(10, STACK), 10);
	limit.rlim_cur = limit.rlim_max = ((rlim_t)status_kb("VmSize:") << 10) + ((rlim_t)200 << 20);
	CHECK_OK(setrlimit(RLIMIT_AS, &limit));
	n = burst(most, 65536);
	CHECK(n > 1000 && n < most);
	CHECK(p = malloc((size_t)64 << 20));
	free(p);
	again = burst(most, 65536);
	CHECK(again > n / 2);
	CHECK(p = malloc((size_t)64 << 20));
	free(p);
}

static void left(const char *rss, const char *size)
{
	CHECK_INT(burst(2000, STACK), 2000);
	if (rss) {
		wait_until_below("VmRSS:", atol(rss));
		wait_until_below("VmSize:", atol(size));
	} else {
		printf("%ld %ld\n", status_kb("VmRSS:"), status_kb("VmSize:"));
	}
}

int main(int argc, char **argv)
{
	CHECK_OK(pthread_key_create(&key, NULL));
	if (argc > 1) {
		left(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
		return 0;
	}
	run_in_child(limited, MOST);
	bursts(2);
	/* A child has none of the threads that its parent has ended. */
	run_in_child(bursts, 1);
	return success();
}
