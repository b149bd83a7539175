/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_basic.c - fork while other threads run; children with threads of
 * their own.
 */
#include "check.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct event ready = EVENT_INIT;
static int hold[2];
static int prepared, in_parent, in_child;

static void on_prepare(void) { prepared++; }
static void on_parent(void) { in_parent++; }
static void on_child(void) { in_child++; }

static void *blocked(void *arg)
{
	char c;

	event_post(&ready);
	CHECK_INT(read(hold[0], &c, 1), 1);
	return arg;
}

static void *echo(void *arg)
{
	int fd = *(int *)arg;
	char c;

	while (read(fd, &c, 1) == 1)
		CHECK_INT(write(fd, &c, 1), 1);
	return arg;
}

/* A child's life: locks, threads, sockets, sleeps. */
static void live(int code)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t t[4];
	int s[4][2];
	char c;

	CHECK_OK(pthread_mutex_lock(&lock));
	for (int i = 0; i < 4; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s[i]));
		t[i] = start(echo, &s[i][0]);
	}
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < 4; i++) {
			CHECK_INT(write(s[i][1], "x", 1), 1);
			CHECK_INT(read(s[i][1], &c, 1), 1);
		}
	CHECK_OK(usleep(1000));
	for (int i = 0; i < 4; i++) {
		close(s[i][1]);
		finish(t[i]);
		close(s[i][0]);
	}
	CHECK_OK(pthread_mutex_unlock(&lock));
	_exit(code);
}

static void wait_status(pid_t pid, int code)
{
	int status;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), code);
}

static void *forks(void *arg)
{
	int code = (int)(intptr_t)arg;
	pthread_t self = pthread_self();
	pid_t pid, parent = getpid();

	for (int i = 0; i < 5; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			CHECK(pthread_equal(self, pthread_self()));
			CHECK_INT(getppid(), parent);
			live(code + i);
		}
		wait_status(pid, code + i);
	}
	/* A grandchild, from a thread of the child. */
	if (code == 20) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			finish(start(forks, (void *)30));
			_exit(9);
		}
		wait_status(pid, 9);
	}
	return arg;
}

/* The forking thread is the only one left and may leave by pthread_exit. */
static void *forks_and_leaves(void *arg)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		pthread_exit(NULL);
	wait_status(pid, 0);
	return arg;
}

/*
 * Each fork copies the kernel's table of descriptors, which grows with the highest: with 20,000
 * allowed, those of others in this process are not to be where it is longer than 16,384.
 */
static void may_open_many(void)
{
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
}

static void copies_little(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	int size = 0;

	CHECK(status != NULL);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "FDSize: %d", &size);
	fclose(status);
	CHECK(size > 0 && size <= 16384);
}

int main(void)
{
	pthread_t t[4], b[3];
	char c;
	int p[2];
	pid_t pid;

	may_open_many();
	CHECK_OK(pthread_atfork(on_prepare, on_parent, on_child));
	CHECK_OK(pipe(hold));
	/* Before the first thread. */
	pid = fork();
	if (!pid)
		live(3);
	wait_status(pid, 3);
	puts("single");
	fflush(stdout);

	for (int i = 0; i < 3; i++)
		b[i] = start(blocked, NULL);
	event_wait(&ready, 3);
	settle();
	copies_little();
	forks((void *)10);
	puts("from main");
	fflush(stdout);
	for (int i = 0; i < 4; i++)
		t[i] = start(forks, (void *)(intptr_t)(20 + 20 * i));
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	puts("from threads");
	fflush(stdout);
	finish(start(forks_and_leaves, NULL));

	/* Parent and child talk. */
	CHECK_OK(pipe(p));
	pid = fork();
	if (!pid) {
		usleep(2000);
		CHECK_INT(in_child, 1);
		CHECK_INT(write(p[1], "c", 1), 1);
		_exit(0);
	}
	CHECK_INT(read(p[0], &c, 1), 1);
	wait_status(pid, 0);
	CHECK_ERR(waitpid(pid, NULL, 0), ECHILD);
	CHECK_INT(prepared, in_parent);
	CHECK_INT(in_child, 0);
	/* Nobody in the parent noticed. */
	CHECK_INT(write(hold[1], "xxx", 3), 3);
	for (int i = 0; i < 3; i++)
		finish(b[i]);
	puts("parent");
	return success();
}
