/* SPDX-License-Identifier: MIT */
#ifndef CHECK_H
#define CHECK_H

/*
 * tests/programs/check.h - what the programs here share.
 *
 * Plain POSIX, header only, so that each program stays one file to compile.
 * Must be the first include.  A failed check says where on stderr and aborts,
 * so that a core or a debugger finds the threads as they were.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS 1000000LL	/* nanoseconds */

UNUSED static void fail(const char *file, int line, const char *fmt, ...)
{
	char text[512];
	int len = snprintf(text, sizeof(text), "%s:%d: ", file, line);
	va_list ap;

	va_start(ap, fmt);
	len += vsnprintf(text + len, sizeof(text) - (size_t)len, fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof(text))
		len = (int)sizeof(text) - 1;
	if (write(2, text, (size_t)len) < 0)
		abort();
	abort();
}

#define CHECK(e)							\
	do {								\
		if (!(e))						\
			fail(__FILE__, __LINE__, "%s (errno %d)\n",	\
			     #e, errno);				\
	} while (0)

/* The value of e is want.  Both are evaluated once, as long long. */
#define CHECK_INT(e, want)						\
	do {								\
		long long got_ = (long long)(e);			\
		long long want_ = (long long)(want);			\
		if (got_ != want_)					\
			fail(__FILE__, __LINE__,			\
			     "%s is %lld, not %s = %lld (errno %d)\n",	\
			     #e, got_, #want, want_, errno);		\
	} while (0)

#define CHECK_OK(e) CHECK_INT(e, 0)

/* e answers -1 and this errno. */
#define CHECK_ERR(e, want)						\
	do {								\
		errno = 0;						\
		long long got_ = (long long)(e);			\
		int err_ = errno;					\
		if (got_ != -1 || err_ != (want))			\
			fail(__FILE__, __LINE__,			\
			     "%s is %lld, errno %d, not -1, %s = %d\n",	\
			     #e, got_, err_, #want, want);		\
	} while (0)

/* e answers want and leaves errno alone. */
#define CHECK_KEEPS(e, want)						\
	do {								\
		errno = 12345;						\
		long long got_ = (long long)(e);			\
		int err_ = errno;					\
		if (got_ != (long long)(want) || err_ != 12345)		\
			fail(__FILE__, __LINE__,			\
			     "%s is %lld, errno %d, not %s = %lld\n",	\
			     #e, got_, err_, #want, (long long)(want));	\
	} while (0)

UNUSED static long long now(clockid_t clock)
{
	struct timespec ts;

	CHECK_OK(clock_gettime(clock, &ts));
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

UNUSED static struct timespec to_timespec(long long ns)
{
	struct timespec ts;

	ts.tv_sec = (time_t)(ns / 1000000000LL);
	ts.tv_nsec = (long)(ns % 1000000000LL);
	return ts;
}

/* The moment ns nanoseconds from now, on that clock. */
UNUSED static struct timespec in(clockid_t clock, long long ns)
{
	return to_timespec(now(clock) + ns);
}

/*
 * Let others get to where they block.  Makes the interesting case likely;
 * nothing may depend on it having happened.
 */
UNUSED static void settle(void)
{
	usleep(3000);
}

/*
 * Wait until the thread whose gettid() that is sleeps, in the call that it was about to make.  Where the kernel does not know
 * it, or no more, all that can be done is to wait some time.
 */
UNUSED static void await_sleep(pid_t tid)
{
	const long long end = now(CLOCK_MONOTONIC) + 20000 * MS;
	char path[64], line[256] = "", *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	do {
		FILE *file = fopen(path, "r");

		state = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
		if (file)
			CHECK_OK(fclose(file));
		if (!state) {
			usleep(50 * 1000);
			return;
		}
		CHECK(now(CLOCK_MONOTONIC) < end);
		usleep(1000);
	} while (state[2] != 'S');
}

/* Each thread of the process that the kernel knows, but the caller's, is found asleep, or has ended. */
UNUSED static void find_asleep_in(pid_t process)
{
	char tasks_path[64];
	const struct dirent *entry;
	DIR *tasks;

	snprintf(tasks_path, sizeof(tasks_path), "/proc/%d/task", (int)process);
	tasks = opendir(tasks_path);
	CHECK(tasks != NULL);
	while ((entry = readdir(tasks)) != NULL) {
		char path[400], line[512], self[64], *state;
		FILE *file = NULL;
		ssize_t n;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/stat", tasks_path, entry->d_name);
		while ((n = readlink("/proc/thread-self", self, sizeof(self) - 1)) > 0) {
			self[n] = '\0';
			if (strcmp(strrchr(self, '/') + 1, entry->d_name) == 0)
				break;
			file = fopen(path, "r");
			state = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
			if (file)
				CHECK_OK(fclose(file));
			if (!state || state[2] == 'S')
				break;
			usleep(1000);
		}
		CHECK(n > 0);
	}
	CHECK_OK(closedir(tasks));
}

/*
 * Wait until all threads of the process but the caller sleep: each that has said that it is about to make a call which
 * waits is in that call, also where the kernel knows other threads than the program.  Who gets no CPU does not sleep.
 * Several times, since who waits behind the caller goes on while the caller sleeps, and since a thread that has looked for
 * what it will wait for, and is about to sleep, may look like one that sleeps already.
 */
UNUSED static void await_asleep_in(pid_t process)
{
	for (int i = 0; i < 10; i++) {
		find_asleep_in(process);
		usleep(1000);
	}
}

UNUSED static void await_others(void)
{
	await_asleep_in(getpid());
}

UNUSED static pthread_t start(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	CHECK_OK(pthread_create(&t, NULL, fn, arg));
	return t;
}

/* One with an affinity of its own, if only that of all. */
UNUSED static pthread_t start_affine(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	pthread_t t;

	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus));
	CHECK_OK(pthread_create(&t, &attr, fn, arg));
	CHECK_OK(pthread_attr_destroy(&attr));
	return t;
}

UNUSED static pthread_t start_as(int affine, void *(*fn)(void *), void *arg)
{
	return affine ? start_affine(fn, arg) : start(fn, arg);
}

UNUSED static void *finish(pthread_t t)
{
	void *value = NULL;

	CHECK_OK(pthread_join(t, &value));
	return value;
}

/* What a thread can wait for until it has happened n times. */
struct event {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int count;
};

#define EVENT_INIT { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

UNUSED static void event_post(struct event *e)
{
	CHECK_OK(pthread_mutex_lock(&e->lock));
	e->count++;
	CHECK_OK(pthread_cond_broadcast(&e->cond));
	CHECK_OK(pthread_mutex_unlock(&e->lock));
}

UNUSED static void event_wait(struct event *e, int count)
{
	CHECK_OK(pthread_mutex_lock(&e->lock));
	while (e->count < count)
		CHECK_OK(pthread_cond_wait(&e->cond, &e->lock));
	CHECK_OK(pthread_mutex_unlock(&e->lock));
}

/* Start a thread that posts this event before it waits, and let it get there: a new thread may sleep before it begins. */
UNUSED static struct event will_sleep = EVENT_INIT;

UNUSED static pthread_t start_asleep(void *(*fn)(void *), void *arg)
{
	const int before = will_sleep.count;
	pthread_t t = start(fn, arg);

	event_wait(&will_sleep, before + 1);
	await_others();
	return t;
}

/* Block a signal in the calling thread (SIG_BLOCK), or let it in (SIG_UNBLOCK). */
UNUSED static void mask_signal(int how, int sig)
{
	sigset_t set;

	CHECK_OK(sigemptyset(&set));
	CHECK_OK(sigaddset(&set, sig));
	CHECK_OK(pthread_sigmask(how, &set, NULL));
}

/* Do part(arg) in a process of its own. */
UNUSED static void run_in_child(void (*part)(int), int arg)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		part(arg);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
}

/* What nice(by) leads to: the tests themselves may run with the highest value. */
UNUSED static int nice_after(int value, int by)
{
	return value + by > 19 ? 19 : value + by;
}

/* The first of the CPUs that the calling thread may run on, in *ret_cpu; returns its number. */
UNUSED static int first_cpu(cpu_set_t *ret_cpu)
{
	cpu_set_t all;
	int cpu = 0;

	CHECK_OK(sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(ret_cpu);
	CPU_SET(cpu, ret_cpu);
	return cpu;
}

UNUSED static void write_all(int fd, const void *buf, size_t n)
{
	const char *p = (const char *)buf;

	while (n) {
		ssize_t r = write(fd, p, n);

		CHECK(r > 0);
		p += r;
		n -= (size_t)r;
	}
}

/* Reads n bytes, less only at the end of file. */
UNUSED static size_t read_all(int fd, void *buf, size_t n)
{
	char *p = (char *)buf;
	size_t have = 0;

	while (have < n) {
		ssize_t r = read(fd, p + have, n - have);

		CHECK(r >= 0);
		if (!r)
			break;
		have += (size_t)r;
	}
	return have;
}

/* An unlinked file of our own. */
UNUSED static int temp_file(void)
{
	char name[] = "/tmp/check-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_OK(unlink(name));
	return fd;
}

/* A small generator, the same everywhere: xorshift64*. */
UNUSED static uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545F4914F6CDD1DULL;
}

UNUSED static int success(void)
{
	puts("EXIT-SUCCESS");
	return fflush(stdout) ? 1 : 0;
}

/* read() or write(), as a program or a language runtime without libc has it. */
UNUSED static long transfer_raw(long number, int fd, void *buf, size_t n)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall" : "=a"(r)
			 : "0"(number), "D"((long)fd), "S"(buf), "d"(n)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = fd;
	register void *x1 __asm__("x1") = buf;
	register size_t x2 __asm__("x2") = n;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
#error "which instruction makes a system call here?"
#endif
}

UNUSED static long read_raw(int from, void *buf, size_t n)
{
	return transfer_raw(SYS_read, from, buf, n);
}

/* The caller has a mutex with priority inheritance for a moment. */
UNUSED static void use_inheriting_mutex(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	CHECK_OK(pthread_mutex_init(&m, &attr));
	CHECK_OK(pthread_mutex_lock(&m));
	CHECK_OK(pthread_mutex_unlock(&m));
	CHECK_OK(pthread_mutex_destroy(&m));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
}

/* Touch n bytes of stack, a page at a time, from the top down. */
UNUSED static __attribute__((noinline)) int dig(size_t n)
{
	volatile char page[2048];

	memset((char *)page, 1, sizeof(page));
	if (n > sizeof(page) + 256)
		return dig(n - sizeof(page) - 256) + page[7];
	return page[3];
}

/* Of the first 256 descriptors, those that are open. */
UNUSED static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
