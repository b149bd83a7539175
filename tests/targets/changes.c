/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/changes.c - a library to preload into a tool that looks at a process: the process changes
 * exactly before one of the tool's looks.
 *
 *	CHANGES_AT	the number of the look, from 1
 *	CHANGES_PID	the process, helpers/becomes
 *	CHANGES_FIFO	its FIFO, which it has open until it has ended or executed another program
 *	CHANGES_REUSE	if there: its number is then another process's, a copy of the tool that sleeps
 *	CHANGES_DONE	a file that is made when the process has changed
 *
 * A look is a call of process_vm_readv, pread, open, fopen, opendir, ptrace or poll.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long open_by_kernel(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

/* The number of a process that has ended is free when its parent has waited for it. */
static void reuse(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1,
	};
	long child;

	while ((child = syscall(SYS_clone3, &args, sizeof(args))) < 0)
		if (errno != EEXIST)
			_exit(99);
	if (child > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void change(void)
{
	const pid_t pid = atoi(getenv("CHANGES_PID"));
	const long fifo = open_by_kernel(getenv("CHANGES_FIFO"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char byte;

	if (fifo < 0 || syscall(SYS_kill, pid, SIGUSR1) != 0)
		_exit(98);
	syscall(SYS_fcntl, fifo, F_SETFL, 0);
	/* Until nobody has it open for writing. */
	while (syscall(SYS_read, fifo, &byte, 1) != 0)
		continue;
	syscall(SYS_close, fifo);
	if (getenv("CHANGES_REUSE"))
		reuse(pid);
	syscall(SYS_close, open_by_kernel(getenv("CHANGES_DONE"), O_WRONLY | O_CREAT));
}

static bool is_tool;

/* What starts the tool looks at nothing. */
__attribute__((constructor)) static void begin(void)
{
	char path[4096] = "";
	const ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

	is_tool = size > 8 && strcmp(path + size - 8, "/inspect") == 0;
}

static void look(void)
{
	static unsigned long looks;
	const char *at = getenv("CHANGES_AT");

	if (at && is_tool && ++looks == strtoul(at, NULL, 10))
		change();
}

/* ---- what the tool calls ---------------------------------------------------------------- */

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
			 const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	look();
	return syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	look();
	return syscall(SYS_pread64, fd, buffer, size, offset);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	look();
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*libc)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");

	look();
	return libc(path, mode);
}

DIR *opendir(const char *path)
{
	DIR *(*libc)(const char *) = dlsym(RTLD_NEXT, "opendir");

	look();
	return libc(path);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	look();
	return (int)syscall(SYS_poll, fds, count, timeout);
}

long ptrace(enum __ptrace_request request, ...)
{
	long (*libc)(enum __ptrace_request, pid_t, void *, void *) = dlsym(RTLD_NEXT, "ptrace");
	va_list args;
	pid_t pid;
	void *address, *data;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	address = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	look();
	return libc(request, pid, address, data);
}
