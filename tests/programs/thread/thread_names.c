/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_names.c - the name of a thread, by every way to give it and to ask
 * for it: also of a thread that has state of its own in the kernel, and of the main thread, whose
 * name is the process's.
 */
#include "check.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { NAME = 16, OTHERS = 6, ROUNDS = 20 };

static void read_name(const char *path, char name[64])
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	CHECK(fd >= 0);
	n = read(fd, name, 63);
	CHECK(n > 0);
	name[n - 1] = 0;
	CHECK_OK(close(fd));
}

static void write_name(const char *path, const char *name)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, name, strlen(name)), (long)strlen(name));
	CHECK_OK(close(fd));
}

static void check_name(const char *want, bool by_file)
{
	char path[64], name[64] = "";

	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK(strcmp(name, want) == 0);
	CHECK_OK(syscall(SYS_prctl, PR_GET_NAME, name));
	CHECK(strcmp(name, want) == 0);
	CHECK_OK(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK(strcmp(name, want) == 0);
	if (!by_file)
		return;
	read_name("/proc/thread-self/comm", name);
	CHECK(strcmp(name, want) == 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)gettid());
	read_name(path, name);
	CHECK(strcmp(name, want) == 0);
}

static void *stays(void *arg)
{
	char name[NAME];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "other %ld.%d", (long)arg, i);
		CHECK_OK(i % 2 ? prctl(PR_SET_NAME, name) : pthread_setname_np(pthread_self(), name));
		usleep(100);
		check_name(name, false);
	}
	return arg;
}

/* Without asking by file: that may make it another kind of thread. */
static void *has_state(void *arg)
{
	CHECK_OK(pthread_setname_np(pthread_self(), "named before"));
	CHECK_OK(prctl(PR_SET_TIMERSLACK, 123456, 0, 0, 0));
	usleep(100);
	check_name("named before", true);
	CHECK_OK(prctl(PR_SET_NAME, "named later, and too long"));
	usleep(100);
	check_name("named later, an", true);
	return arg;
}

static void check_child(const char *want)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		check_name(want, true);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static void *inherits(void *arg)
{
	check_name(arg, true);
	return arg;
}

/* A process and a thread that asks for CPUs get the name of the thread that makes them. */
static void *makes(void *arg)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	pthread_t made;

	CHECK_OK(prctl(PR_SET_NAME, "creator"));
	usleep(100);
	check_child("creator");
	check_name("creator", false);
	CHECK_INT(pthread_attr_init(&attr), 0);
	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_INT(pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus), 0);
	CHECK_INT(pthread_create(&made, &attr, inherits, (void *)"creator"), 0);
	finish(made);
	CHECK_INT(pthread_attr_destroy(&attr), 0);
	return arg;
}

static void *by_file(void *arg)
{
	char path[64];

	write_name("/proc/thread-self/comm", "by thread-self");
	for (int i = 0; i < ROUNDS; i++) {
		usleep(100);
		check_name("by thread-self", i % 2);
	}
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)gettid());
	write_name(path, "by tid");
	check_name("by tid", true);
	return arg;
}

static void *by_tid_first(void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)getpid(), (int)gettid());
	write_name(path, "by tid");
	usleep(100);
	check_name("by tid", true);
	return arg;
}

static struct event opened = EVENT_INIT, has_read = EVENT_INIT;

static void *reads_vector(void *arg)
{
	char name[64];
	const struct iovec iov = { name, sizeof(name) };

	event_wait(&opened, 1);
	CHECK(readv(*(const int *)arg, &iov, 1) > 0);
	event_post(&has_read);
	return arg;
}

static int closes(void *arg)
{
	return close(*(const int *)arg);
}

/* The number of the file was a socket's, which another process has closed for this one. */
static void *by_used_number(void *arg)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	int *fd = arg, used = socket(AF_INET, SOCK_STREAM, 0), status;
	char path[64];
	const struct iovec iov = { path, sizeof(path) };
	pid_t child;

	CHECK(used >= 0);
	CHECK_ERR(readv(used, &iov, 1), ENOTCONN);
	child = clone(closes, stack + sizeof(stack), CLONE_FILES | SIGCHLD, &used);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)gettid());
	*fd = open(path, O_RDONLY);
	CHECK_INT(*fd, used);
	event_post(&opened);
	event_wait(&has_read, 1);
	CHECK_OK(close(*fd));
	return NULL;
}

/* The name may end where the memory ends. */
static void *edges(void *arg)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_OK(mprotect(p + page, page, PROT_NONE));
	memcpy(p + page - 3, "ab", 3);
	CHECK_OK(prctl(PR_SET_NAME, p + page - 3));
	check_name("ab", false);
	memset(p + page - 15, 'x', 15);
	CHECK_OK(prctl(PR_SET_NAME, p + page - 15));
	check_name("xxxxxxxxxxxxxxx", false);
	CHECK_ERR(prctl(PR_SET_NAME, p + page - 14), EFAULT);
	CHECK_ERR(prctl(PR_SET_NAME, p + page), EFAULT);
	CHECK_ERR(prctl(PR_SET_NAME, NULL), EFAULT);
	CHECK_ERR(prctl(PR_GET_NAME, NULL), EFAULT);
	CHECK_ERR(prctl(PR_GET_NAME, p + page), EFAULT);
	CHECK_ERR(prctl(PR_GET_NAME, p + page - 8), EFAULT);
	CHECK_OK(mprotect(p, page, PROT_READ));
	CHECK_ERR(prctl(PR_GET_NAME, p), EFAULT);
	CHECK_ERR(syscall(SYS_prctl, PR_GET_NAME, p), EFAULT);
	check_name("xxxxxxxxxxxxxxx", false);
	CHECK_OK(munmap(p, 2 * page));
	return arg;
}

static void name_of_process(void)
{
	pthread_t threads[OTHERS];
	char name[64];

	for (intptr_t k = 0; k < OTHERS; k++)
		threads[k] = start(stays, (void *)k);
	for (int i = 0; i < ROUNDS; i++) {
		char wanted[NAME];

		snprintf(wanted, sizeof(wanted), "main %d", i);
		switch (i % 3) {
		case 0: CHECK_OK(prctl(PR_SET_NAME, wanted)); break;
		case 1: CHECK_OK(pthread_setname_np(pthread_self(), wanted)); break;
		default: write_name("/proc/self/comm", wanted); break;
		}
		usleep(150);
		read_name("/proc/self/comm", name);
		CHECK(strcmp(name, wanted) == 0);
		check_name(wanted, false);
		if (i < 6)
			check_child(wanted);
	}
	for (int k = 0; k < OTHERS; k++)
		finish(threads[k]);
}

int main(void)
{
	void *(*const kinds[])(void *) = { has_state, makes, by_file, by_tid_first, edges };
	pthread_t others[OTHERS], reader;
	int fd;

	for (intptr_t k = 0; k < OTHERS; k++)
		others[k] = start(stays, (void *)k);
	for (size_t i = 0; i < COUNT(kinds); i++)
		finish(start(kinds[i], NULL));
	for (int k = 0; k < OTHERS; k++)
		finish(others[k]);
	reader = start(reads_vector, &fd);
	finish(start(by_used_number, &fd));
	finish(reader);
	name_of_process();
	return success();
}
