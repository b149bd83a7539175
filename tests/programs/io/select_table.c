/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/select_table.c - select with an n above FD_SETSIZE, as select(getdtablesize(), ...) where the limit is
 * high: memory behind an fd_set is neither read nor written; sets that are larger work with larger descriptors.
 */
#include "check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WORD_BITS = 64, SET_WORDS = FD_SETSIZE / WORD_BITS, ALL_WORDS = 256, PAGE = 1 << 16 };

struct call {
	int n;
	bool masked;		/* pselect instead of select */
};

static int input[2], output[2];
static struct rlimit limit;

static int looks(const struct call *c, uint64_t *readable, uint64_t *writable, long ms)
{
	struct timeval time = { 0, ms * 1000 };
	const struct timespec span = { 0, ms * MS };

	if (c->masked)
		return pselect(c->n, (fd_set *)readable, (fd_set *)writable, NULL, &span, NULL);
	return select(c->n, (fd_set *)readable, (fd_set *)writable, NULL, &time);
}

static uint64_t bit(int fd)
{
	return (uint64_t)1 << fd % WORD_BITS;
}

/* Behind the set there is what looks like a set of all descriptors. */
static void *small_set(void *arg)
{
	uint64_t in[ALL_WORDS], out[ALL_WORDS];

	for (long ms = 0; ms < 3; ms += 2) {
		memset(in, 0xff, sizeof(in));
		memset(in, 0, SET_WORDS * sizeof(in[0]));
		memcpy(out, in, sizeof(out));
		in[0] = bit(input[0]);
		CHECK_INT(looks(arg, in, NULL, ms), 0);
		CHECK(in[0] == 0);
		in[0] = bit(input[0]);
		out[0] = bit(output[1]);
		CHECK_INT(looks(arg, in, out, ms), 1);
		CHECK(in[0] == 0 && out[0] == bit(output[1]));
		for (int i = SET_WORDS; i < ALL_WORDS; i++)
			CHECK(!~in[i] && !~out[i]);
	}
	return NULL;
}

static void *set_at_the_end(void *arg)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *set = (uint64_t *)(pages + PAGE) - SET_WORDS;

	CHECK(pages != MAP_FAILED);
	CHECK_OK(mprotect(pages + PAGE, PAGE, PROT_NONE));
	set[0] = bit(output[1]);
	CHECK_INT(looks(arg, NULL, set, 2), 1);
	CHECK(set[0] == bit(output[1]));
	CHECK_OK(munmap(pages, 2 * PAGE));
	return NULL;
}

static void fails_if_closed(const struct call *c, int fd)
{
	uint64_t set[ALL_WORDS] = { 0 };

	set[fd / WORD_BITS] = bit(fd);
	CHECK_ERR(looks(c, set, NULL, 2), EBADF);
}

/* fd can be written. */
static void finds(int fd)
{
	const struct call c = { 1 << 20, false };
	uint64_t set[ALL_WORDS] = { 0 };

	set[fd / WORD_BITS] = bit(fd);
	CHECK_INT(looks(&c, NULL, set, 2), 1);
	CHECK(set[fd / WORD_BITS] == bit(fd));
}

/* Asking for a number does not make it the program's. */
static void *asks_for_all(void *arg)
{
	const struct call *c = arg;
	struct stat st;
	char byte;

	for (int fd = FD_SETSIZE; fd < c->n && fd < 1 << 14; fd++) {
		fcntl(fd, F_GETFL);
		fstat(fd, &st);
		CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) < 0);
		close(fd);
	}
	return small_set(arg);
}

/* The program's descriptors above FD_SETSIZE, which are closed later. */
static void *large_set(void *arg)
{
	const struct call *c = arg;
	static const int numbers[] = { 1024, 1500, 4700, 9000 };
	uint64_t set[ALL_WORDS] = { 0 };

	for (unsigned i = 0; i < COUNT(numbers); i++) {
		const int fd = numbers[i];

		if (fd >= c->n || (rlim_t)fd >= limit.rlim_max)
			break;
		CHECK_INT(dup2(output[1], fd), fd);
		set[fd / WORD_BITS] = bit(fd);
		CHECK_INT(looks(c, NULL, set, 2), 1);
		CHECK(set[fd / WORD_BITS] == bit(fd));
		CHECK_INT(dup2(input[0], fd), fd);
		CHECK_INT(looks(c, set, NULL, 2), 0);
		CHECK(set[fd / WORD_BITS] == 0);
		fails_if_closed(c, fd - 1);
		CHECK_OK(close(fd));
		fails_if_closed(c, fd);
	}
	return NULL;
}

/* libc makes the descriptor of a FILE itself. */
static void *many_streams(void *arg)
{
	FILE *streams[FD_SETSIZE];
	int i;

	(void)arg;
	for (i = 0; i < FD_SETSIZE && limit.rlim_max > FD_SETSIZE + 16; i++) {
		streams[i] = fopen("/dev/null", "we");
		CHECK(streams[i]);
	}
	if (i)
		finds(fileno(streams[i - 1]));
	while (i--)
		CHECK_OK(fclose(streams[i]));
	return NULL;
}

/* A child's table is as long as the open descriptors need, and so is that of the program that it executes. */
static void in_children(char *self)
{
	struct call c = { 1 << 20, false };
	char small[] = "small";
	char *args[] = { self, small, NULL };

	for (int executes = 0; executes < 2; executes++) {
		const pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (child == 0 && executes)
			execv("/proc/self/exe", args);
		if (child == 0) {
			small_set(&c);
			_exit(0);
		}
		CHECK_INT(waitpid(child, &status, 0), child);
		CHECK_INT(status, 0);
	}
}

static void executed(const char *what)
{
	struct call c = { 1 << 20, false };

	if (strcmp(what, "small")) {
		finds(atoi(what));
		return;
	}
	CHECK_OK(pipe(input));
	CHECK_OK(pipe(output));
	small_set(&c);
	finish(start(small_set, &c));
}

/* The program runs anew, with a descriptor that it has inherited. */
static void inherit(char *self)
{
	char number[16];
	const int fd = limit.rlim_max > 9001 ? 9001 : (int)limit.rlim_max - 1;
	char *args[] = { self, number, NULL };

	snprintf(number, sizeof(number), "%d", fd);
	CHECK_INT(dup2(output[1], fd), fd);
	execv("/proc/self/exe", args);
	CHECK(!"execv");
}

/* Go on in a child, whose table is as long as the open descriptors need, whatever was inherited. */
static int in_short_table(void)
{
	pid_t child;
	int status;

	CHECK_OK(close_range(FD_SETSIZE, ~0U, 0));
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		return 0;
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	return 1;
}

int main(int argc, char **argv)
{
	static const int numbers[] = { 1025, 1088, 2048, 4096, 4097, 16384, 1 << 20 };
	static void *(*const parts[])(void *) = {
		small_set, set_at_the_end, asks_for_all, many_streams, large_set,
	};

	if (argc > 1) {
		executed(argv[1]);
		return success();
	}
	if (in_short_table())
		return 0;
	CHECK_OK(pipe(input));
	CHECK_OK(pipe(output));
	finish(start(small_set, &(struct call){ FD_SETSIZE, false }));
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	/* The table of a process never becomes shorter: large sets come last. */
	for (int part = 0; part < (int)COUNT(parts); part++) {
		for (unsigned i = 0; i < COUNT(numbers); i++)
			for (int masked = 0; masked < 2; masked++) {
				struct call c = { numbers[i], masked };

				parts[part](&c);
				finish(start(parts[part], &c));
			}
		in_children(argv[0]);
	}
	inherit(argv[0]);
	return 1;
}
