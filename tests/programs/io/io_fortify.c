/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_fortify.c - the calls that fortified programs make.
 *
 * Sizes that the compiler does not know, buffers that it does: so it calls
 * __read_chk and its like.
 */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2
#include "check.h"

#include <poll.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* What stat() and its kin were to programs built before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);

static struct event go = EVENT_INIT;
static int p[2], s[2], file;

static void *writer(void *arg)
{
	event_wait(&go, 1);
	settle();
	write_all(p[1], "pipe", 4);
	write_all(s[1], "sock", 4);
	CHECK_INT(send(s[1], "from", 4, 0), 4);
	return arg;
}

static void *files(void *arg)
{
	volatile int flags = O_RDONLY;
	volatile size_t n = 8;
	char buf[16];
	int fd = open("/proc/self/exe", flags);

	CHECK(fd >= 0);
	close(fd);
	fd = openat(AT_FDCWD, "/", flags);
	CHECK(fd >= 0);
	CHECK_ERR(open("/nowhere/at/all", flags), ENOENT);
	CHECK_ERR(openat(-1, "x", flags), EBADF);
	CHECK_INT(readlink("/proc/self/exe", buf, n), 8);
	CHECK_INT(readlinkat(fd, "proc/self/exe", buf, n), 8);
	CHECK_ERR(readlink("/", buf, n), EINVAL);
#ifdef __x86_64__
	const int version = 1;	/* the kernel's struct stat, on 64-bit machines */
	struct stat st;

	CHECK_KEEPS(__xstat(version, "/", &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_KEEPS(__lxstat(version, "/proc/self/exe", &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_KEEPS(__fxstat(version, fd, &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_KEEPS(__fxstatat(version, fd, "proc", &st, 0), 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_ERR(__xstat(77, "/", &st), EINVAL);
	CHECK_ERR(__fxstat(version, -1, &st), EBADF);
#endif
	close(fd);
	return arg;
}

static void *reader(void *arg)
{
	volatile size_t n = 4;
	volatile nfds_t fds = 2;
	struct timespec soon = { 10, 0 };
	struct pollfd set[2] = { { p[0], POLLIN, 0 }, { s[0], POLLIN, 0 } };
	sigset_t none;
	char buf[8];

	sigemptyset(&none);
	event_post(&go);
	CHECK(poll(set, fds, 10000) > 0);
	CHECK(ppoll(set, fds, &soon, &none) > 0);
	CHECK_INT(read(p[0], buf, n), 4);
	CHECK_OK(memcmp(buf, "pipe", 4));
	CHECK_INT(recv(s[0], buf, n, MSG_WAITALL), 4);
	CHECK_OK(memcmp(buf, "sock", 4));
	CHECK_INT(recvfrom(s[0], buf, n, MSG_WAITALL, NULL, NULL), 4);
	CHECK_OK(memcmp(buf, "from", 4));
	n = 3;
	CHECK_INT(pread(file, buf, n, 2), 3);
	CHECK_OK(memcmp(buf, "234", 3));
	CHECK_INT(pread64(file, buf, n, 5), 3);
	CHECK_OK(memcmp(buf, "567", 3));
	n = 0;
	fds = 0;
	CHECK_OK(poll(set, fds, 1));
	CHECK_OK(read(p[0], buf, n));
	n = 8;
	CHECK_ERR(read(-1, buf, n), EBADF);
	CHECK_ERR(recv(p[0], buf, n, 0), ENOTSOCK);
	CHECK_ERR(pread(p[0], buf, n, 0), ESPIPE);
	return arg;
}

static void *overflow(void *arg)
{
	volatile size_t n = 9;
	char buf[8];

	CHECK_INT(read(file, buf, n), 9);
	return arg;
}

/* Reading more than there is room for is libc's to report. */
static void detected(void)
{
	struct rlimit none = { 0, 0 };
	int status, null;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		CHECK_OK(setrlimit(RLIMIT_CORE, &none));
		null = open("/dev/null", O_WRONLY);
		dup2(null, 2);
		setenv("LIBC_FATAL_STDERR_", "1", 1);
		finish(start(overflow, NULL));
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
#ifndef __SANITIZE_THREAD__
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGABRT);
#endif
}

/* A jump leaves calls and restores the mask; libc aborts where it would lead into a call that ended. */
static sigjmp_buf back;

__attribute__((noinline)) static void jump(volatile int depth)
{
	if (depth)
		jump(depth - 1);
	mask_signal(SIG_BLOCK, SIGUSR1);
	siglongjmp(back, 0);
}

static void *jumps(void *arg)
{
	volatile int times = 0;
	sigset_t mask;

	/* A value of 0 comes as 1. */
	if (sigsetjmp(back, 1) == 0)
		jump(3);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &mask));
	CHECK_INT(sigismember(&mask, SIGUSR1), 0);
	if (++times < 3)
		jump(3);
	return arg;
}

int main(void)
{
	pthread_t r, w;

	CHECK_OK(pipe(p));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	file = temp_file();
	write_all(file, "0123456789", 10);
	for (int i = 0; i < 3; i++) {
		go.count = 0;
		r = start(reader, NULL);
		w = start(writer, NULL);
		finish(r);
		finish(w);
	}
	puts("calls");
	fflush(stdout);
	CHECK_OK(lseek(file, 0, SEEK_SET));
	detected();
	puts("detected");
	finish(start(files, NULL));
	files(NULL);
	finish(start(jumps, NULL));
	jumps(NULL);
	return success();
}
