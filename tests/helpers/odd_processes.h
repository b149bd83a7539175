/* SPDX-License-Identifier: MIT */
#ifndef ODD_PROCESSES_H
#define ODD_PROCESSES_H

/*
 * tests/helpers/odd_processes.h - the part of odd_rungs.c about processes and programs.  To be included by it alone.
 */

#include "rungs.h"
#include "odd_io.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/mount.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static char program[512];

static void *touch(void *arg)
{
	return arg;
}

static pid_t make_process(void)
{
	pid_t pid;

	while ((pid = fork()) < 0)
		is_refused(errno);
	return pid;
}

static void await_process(pid_t pid)
{
	int status;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		_exit(REFUSED);
	CHECK_INT(status, 0);
}

/* In a process of its own, and there by a thread. */
static void in_process(void *(*part)(void *))
{
	const pid_t pid = make_process();

	if (!pid) {
		finish(begin(part, NULL));
		_exit(0);
	}
	await_process(pid);
}

static void begin_again(const char *path, const char *word)
{
	char *argv[] = { program, (char *)(uintptr_t)word, NULL };

	execv(path, argv);
	fail(__FILE__, __LINE__, "%s: errno %d\n", path, errno);
}

/* This program, with the variable. */
static void in_program(const char *word, const char *name, const char *value)
{
	const pid_t pid = make_process();

	if (!pid) {
		if (value)
			CHECK_OK(setenv(name, value, 1));
		else
			CHECK_OK(unsetenv(name));
		begin_again(program, word);
	}
	await_process(pid);
}

/* ---- programs ---------------------------------------------------------------- */

/* With a signal that is pending for the process, and one for the thread. */
static void leave_pending(void)
{
	sigset_t set;

	finish(begin(touch, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(kill(getpid(), SIGUSR2));
	CHECK_OK(pthread_kill(pthread_self(), SIGRTMIN));
	begin_again(program, "pending");
}

static int find_pending(void)
{
	sigset_t set;

	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, SIGUSR2), 1);
	CHECK_INT(sigismember(&set, SIGRTMIN), 1);
	return 0;
}

/* Says nothing of what the library counts. */
static int be_replaced(const char *word)
{
	finish(begin(touch, NULL));
	if (strcmp(word, "twice") == 0)
		begin_again(program, "once");
	return 0;
}

/* A copy of this program that needs executable stacks. */
static int copy_program(void)
{
	static char text[1 << 20];
	int from = open(program, O_RDONLY | O_CLOEXEC), to = memfd_create("odd", 0);
	size_t n = read_all(from, text, sizeof(text));
	const Elf64_Ehdr *header = (void *)text;
	Elf64_Phdr *segment = (void *)(text + header->e_phoff);

	CHECK(n < sizeof(text));
	for (int i = 0; i < header->e_phnum; i++)
		if (segment[i].p_type == PT_GNU_STACK)
			segment[i].p_flags |= PF_X;
	write_all(to, text, n);
	CHECK_OK(close(from));
	return to;
}

static void with_executable_stacks(void)
{
	const pid_t pid = make_process();
	char path[32];

	if (!pid) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", copy_program());
		begin_again(path, "once");
	}
	await_process(pid);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	write_all(fd, text, strlen(text));
	CHECK_OK(close(fd));
}

/* Where the process may have mounts of its own: a quota of its control group, and a filesystem without fallocate(). */
static void with_quota(void)
{
	static const char root[] = "/sys/fs/cgroup", *const of[] = { "", "/cpu", "/cpu,cpuacct" };
	const pid_t pid = make_process();
	char path[64];

	if (pid) {
		await_process(pid);
		return;
	}
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", root, "ramfs", 0, NULL))
		_exit(0);
	for (size_t i = 0; i < COUNT(of); i++) {
		snprintf(path, sizeof(path), "%s%s", root, of[i]);
		CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
		snprintf(path, sizeof(path), "%s%s/cpu.max", root, of[i]);
		write_text(path, "200000 100000\n");
		snprintf(path, sizeof(path), "%s%s/cpu.cfs_quota_us", root, of[i]);
		write_text(path, "200000\n");
		snprintf(path, sizeof(path), "%s%s/cpu.cfs_period_us", root, of[i]);
		write_text(path, "100000\n");
	}
	CHECK_OK(unsetenv("FIBERIZE_PROCESSORS"));
	CHECK_OK(setenv("FIBERIZE_STATS", "/sys/fs/cgroup/counters", 1));
	begin_again(program, "once");
}

static void programs(void)
{
	const pid_t pid = make_process();
	char counters[64];

	if (!pid)
		leave_pending();
	await_process(pid);
	in_program("quietly", "FIBERIZE_STATS", "1");
	/* The second one finds the first one's counters, and the third one the second one's. */
	snprintf(counters, sizeof(counters), "./odd-counters.%d", (int)getpid());
	in_program("once", "FIBERIZE_STATS", counters);
	in_program("twice", "FIBERIZE_STATS", counters);
	unlink(counters);
	with_executable_stacks();
	with_quota();
	puts("programs");
}

/* ---- children ---------------------------------------------------------------- */

static int gate[2], begun[2];
static pid_t natives_child;

static pid_t make_child(int waits)
{
	const pid_t pid = make_process();
	char c;

	if (!pid) {
		if (waits)
			CHECK_OK(close(gate[1]));
		_exit(waits && read_raw(gate[0], &c, 1) != 0);
	}
	return pid;
}

static void *wait_for_own(void *arg)
{
	const pid_t gone = make_child(0);
	int status, fd;
	siginfo_t info;
	pid_t pid;

	CHECK_INT(waitpid(gone, &status, 0), gone);
	CHECK_OK(pipe(gate));
	make_child(1);
	pid = make_child(1);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	event_post(&ready);
	CHECK(waitpid(-1, &status, __WNOTHREAD) > 0);
	CHECK(waitpid(-1, &status, __WNOTHREAD) > 0);
	CHECK_ERR(waitpid(-1, &status, __WNOTHREAD), ECHILD);
	CHECK_ERR(waitid(P_PIDFD, (id_t)fd, &info, WEXITED | __WNOTHREAD), ECHILD);
	CHECK_OK(close(fd) || close(gate[0]));
	return arg;
}

static void *make_natives_child(void *arg)
{
	natives_child = make_child(0);
	event_post(&ready);
	event_wait(&turn, 1);
	return arg;
}

static void begin_native(pthread_attr_t *attr)
{
	cpu_set_t cpus;

	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_OK(pthread_attr_init(attr));
	CHECK_OK(pthread_attr_setaffinity_np(attr, sizeof(cpus), &cpus));
}

static void children(void)
{
	pthread_t t = begin(wait_for_own, NULL);
	pthread_attr_t native;
	int status;

	event_wait(&ready, 1);
	await_others();
	CHECK_OK(close(gate[1]));
	finish(t);
	/* The child of a thread that has ended is the main thread's, and not before. */
	begin_native(&native);
	t = begin_as(&native, make_natives_child, NULL);
	event_wait(&ready, 2);
	CHECK_ERR(waitpid(natives_child, &status, __WNOTHREAD), ECHILD);
	event_post(&turn);
	finish(t);
	CHECK_INT(waitpid(natives_child, &status, __WNOTHREAD), natives_child);
	CHECK_OK(pthread_attr_destroy(&native));
	puts("children");
}

/* ---- while a process is being made ----------------------------------------------- */

static int be_slow(void *arg)
{
	char c = 'x';

	(void)arg;
	return transfer_raw(SYS_write, begun[1], &c, 1) != 1 || transfer_raw(SYS_read, gate[0], &c, 1) != 1;
}

/* The call lasts until the child ends. */
static void *make_slowly(void *arg)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	pid_t pid;

	while ((pid = clone(be_slow, stack + sizeof(stack), CLONE_VFORK | SIGCHLD, NULL)) < 0)
		is_refused(errno);
	await_process(pid);
	return arg;
}

/* Meanwhile a descriptor is closed for which a call waits, and the call ends. */
static void making(void)
{
	pthread_attr_t native;
	int local[2];
	pthread_t maker, t;
	char c = 'x';

	CHECK_OK(pipe(gate) || pipe(begun) || socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	t = begin_asleep(receive_whole, &local[0]);
	begin_native(&native);
	maker = begin_as(&native, make_slowly, NULL);
	CHECK_OK(pthread_attr_destroy(&native));
	CHECK_INT(read(begun[0], &c, 1), 1);
	CHECK_OK(close(local[0]));
	CHECK_INT(write(local[1], "abcdefgh", 8), 8);
	CHECK_INT((intptr_t)finish(t), 8);
	CHECK_INT(write(gate[1], &c, 1), 1);
	finish(maker);
	CHECK_OK(close(local[1]) || close(gate[0]) || close(gate[1]) || close(begun[0]) || close(begun[1]));
	puts("making");
}

#endif
