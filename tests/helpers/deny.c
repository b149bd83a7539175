/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/deny.c - fails system calls that libfiberize.so makes, and no others.
 *
 *	deny -r FILE PROGRAM [ARGS]			lists them
 *	deny -d CALL:WHEN:ERROR:PLACE,... -r FILE PROGRAM [ARGS]	fails some of them
 *
 * CALL and ERROR are numbers; PLACE is where the call's instruction ends, its last byte, in hexadecimal
 * and as the library's file has it.  WHEN is as in FZ_FAULTS: N, 1/N or N+; all places count together.  FILE
 * gets, at the end, a line "call CALL PLACE TIMES" for each place, the line "fired TIMES" and the
 * line "left DESCRIPTORS MAPPINGS THREADS": what the process had when it ended.
 *
 * A seccomp filter asks this process about each call, so the library, its timing apart, is as it is
 * installed.  Wake-ups by futex are never failed: nothing would run then, natively either.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { MOST = 1024 };

static struct place {
	long call;
	uint64_t at;
	unsigned long times;
} places[MOST];
static int count;

/* What is to fail; call -1: nothing. */
static struct {
	long call, first, every, error;
	uint64_t at[MOST];
	int count;
	unsigned long reached, fired;
} fault = { .call = -1 };

/* Where the library is; end 0: it is not loaded yet. */
static uint64_t begin, end;
static int left[3] = { -1, -1, -1 };

static void die(const char *what)
{
	perror(what);
	exit(125);
}

static void find_library(pid_t pid)
{
	char path[64], line[4096];
	unsigned long from, to;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	/* Its code may be in several mappings; its first one begins at address 0 of the file. */
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libfiberize.so") && sscanf(line, "%lx-%lx", &from, &to) == 2) {
			begin = end ? begin : from;
			end = to;
		}
	if (maps)
		fclose(maps);
}

static int entries(pid_t pid, const char *what)
{
	char path[64];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	d = opendir(path);
	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static int lines(pid_t pid)
{
	char path[64];
	int c, n = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && (c = getc(maps)) != EOF)
		n += c == '\n';
	if (maps)
		fclose(maps);
	return n;
}

/* The library requeues only to look whether somebody waits. */
static bool is_wake_up(int op)
{
	return op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET && op != FUTEX_CMP_REQUEUE;
}

static bool to_be_failed(const struct seccomp_data *call, uint64_t at)
{
	unsigned long n;

	if (call->nr != fault.call)
		return false;
	for (int i = 0; i < fault.count && fault.at[i] != at; i++)
		if (i == fault.count - 1)
			return false;
	if (call->nr == SYS_futex && is_wake_up((int)call->args[1] & FUTEX_CMD_MASK))
		return false;
	n = ++fault.reached;
	if (n < (unsigned long)fault.first || (n > (unsigned long)fault.first &&
	    (!fault.every || (n - (unsigned long)fault.first) % (unsigned long)fault.every)))
		return false;
	fault.fired++;
	return true;
}

static void note(const struct seccomp_data *call, uint64_t at)
{
	for (int i = 0; i < count; i++)
		if (places[i].call == call->nr && places[i].at == at) {
			places[i].times++;
			return;
		}
	if (count < MOST)
		places[count++] = (struct place){ call->nr, at, 1 };
}

/* Answers one question of the filter. */
static void answer(int listener, pid_t child)
{
	struct seccomp_notif question;
	struct seccomp_notif_resp response = { 0 };
	const struct seccomp_data *call = &question.data;

	memset(&question, 0, sizeof(question));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question))
		return;
	response.id = question.id;
	response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	if (!end)
		find_library((pid_t)question.pid);
	if (call->instruction_pointer >= begin && call->instruction_pointer < end) {
		uint64_t at = call->instruction_pointer - begin - 1;

		note(call, at);
		if (to_be_failed(call, at)) {
			response.flags = 0;
			response.error = (int)-fault.error;
		}
	}
	if (call->nr == SYS_exit_group && entries(child, "task") > 0) {
		char path[64];

		snprintf(path, sizeof(path), "task/%u/fd", question.pid);
		if (entries(child, path) >= 0) {
			left[0] = entries(child, "fd");
			left[1] = lines(child);
			left[2] = entries(child, "task");
		}
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* The filter: asks about the one call, or about all. */
static int listen_to(long number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)SYS_exit_group, 1, 0),
		BPF_JUMP(BPF_JMP | (number < 0 ? BPF_JGE : BPF_JEQ) | BPF_K,
			 number < 0 ? 0 : (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER |
			    SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
}

static void parse(char *text)
{
	char *rest = text;

	fault.call = strtol(rest, &rest, 10);
	fault.first = strtol(rest + (*rest == ':'), &rest, 10);
	if (*rest == '/')
		fault.first = fault.every = strtol(rest + 1, &rest, 10);
	else if (*rest == '+' && rest++)
		fault.every = 1;
	fault.error = strtol(rest + (*rest == ':'), &rest, 10);
	while ((*rest == ':' || *rest == ',') && fault.count < MOST)
		fault.at[fault.count++] = strtoull(rest + 1, &rest, 16);
	if (*rest || fault.call < 0 || fault.first < 1 || fault.error < 1 || !fault.count) {
		fprintf(stderr, "deny: not CALL:WHEN:ERROR:PLACE,...: %s\n", text);
		exit(2);
	}
}

static void write_all_to(const char *file)
{
	FILE *f = fopen(file, "we");

	if (!f)
		die(file);
	for (int i = 0; i < count; i++)
		fprintf(f, "call %ld %lx %lu\n", places[i].call, (unsigned long)places[i].at,
			places[i].times);
	fprintf(f, "fired %lu\nleft %d %d %d\n", fault.fired, left[0], left[1], left[2]);
	fclose(f);
}

int main(int argc, char **argv)
{
	/* Until the child has executed the program, both have one table of descriptors. */
	_Atomic int *listener = mmap(NULL, sizeof(*listener), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *file = NULL;
	struct pollfd questions = { .events = POLLIN };
	int option, status;
	pid_t child;

	while ((option = getopt(argc, argv, "+r:d:")) > 0) {
		if (option == 'r')
			file = optarg;
		else if (option == 'd')
			parse(optarg);
		else
			return 2;
	}
	if (!file || optind >= argc) {
		fprintf(stderr, "usage: deny [-d CALL:WHEN:ERROR:PLACE,...] -r FILE PROGRAM [ARGS]\n");
		return 2;
	}
	atomic_store_explicit(listener, 0, memory_order_relaxed);
	child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (child < 0)
		die("deny: fork");
	if (!child) {
		int fd;

		/* All of its processes have the library at one address. */
		personality(ADDR_NO_RANDOMIZE);
		fd = listen_to(fault.call);
		/* release: pairs with the parent's load. */
		atomic_store_explicit(listener, fd < 0 ? -1 : fd, memory_order_release);
		if (fd < 0)
			_exit(125);
		execvp(argv[optind], argv + optind);
		_exit(127);
	}
	/* acquire: pairs with the child's store. */
	while (!(questions.fd = atomic_load_explicit(listener, memory_order_acquire)))
		sched_yield();
	if (questions.fd < 0)
		die("deny: seccomp");
	while (poll(&questions, 1, -1) >= 0 && !(questions.revents & POLLHUP))
		if (questions.revents & POLLIN)
			answer(questions.fd, child);
	waitpid(child, &status, 0);
	write_all_to(file);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
