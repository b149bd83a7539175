/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_storm.c [SIGNALS] - signals from another process and from a
 * thread as fast as they come, next to I/O that must stay right; handlers call what
 * they may; jobs are stopped and continued; many children end.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PAIRS = 8 };

static volatile int stop;
static volatile sig_atomic_t handled;
static int handler_pipe[2];
static sem_t posted;

static void does_things(int sig)
{
	int saved = errno;
	char c;

	(void)sig;
	handled++;
	if (write(handler_pipe[1], "x", 1) != 1 || read(handler_pipe[0], &c, 1) != 1)
		abort();
	sem_post(&posted);
	if (getpid() < 0 || kill(getpid(), 0) != 0)
		abort();
	errno = saved;
}

static void *echoes(void *arg)
{
	int fd = *(int *)arg;
	char text[256];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text), 0)) > 0)
		CHECK_INT(send(fd, text, (size_t)n, 0), n);
	CHECK_INT(n, 0);
	close(fd);
	return NULL;
}

static long long rounds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *asks(void *arg)
{
	int fd = *(int *)arg;
	char text[256], got[256];

	for (unsigned i = 0; !i || !stop; i++) {
		memset(text, (int)('a' + i % 26), sizeof(text));
		CHECK_INT(send(fd, text, sizeof(text), 0), sizeof(text));
		CHECK_INT(recv(fd, got, sizeof(got), MSG_WAITALL), sizeof(got));
		CHECK_INT(memcmp(text, got, sizeof(got)), 0);
		pthread_mutex_lock(&lock);
		rounds++;
		pthread_mutex_unlock(&lock);
	}
	close(fd);
	return NULL;
}

static void storm(int signals)
{
	struct sigaction sa = { .sa_handler = does_things, .sa_flags = SA_RESTART };
	pthread_t a[PAIRS], b[PAIRS];
	int fds[PAIRS][2], status;
	pid_t parent = getpid(), pid;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	for (int i = 0; i < PAIRS; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]));
		a[i] = start(echoes, &fds[i][0]);
		b[i] = start(asks, &fds[i][1]);
	}
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < signals; i++)
			kill(parent, i % 2 ? SIGUSR1 : SIGUSR2);
		_exit(0);
	}
	for (int i = 0; i < signals / 10; i++) {
		CHECK_OK(pthread_kill(i % 2 ? a[i % PAIRS] : b[i % PAIRS], SIGUSR1));
		if (i % 16 == 0)
			usleep(100);
	}
	while (waitpid(pid, &status, 0) < 0)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, 0);
	stop = 1;
	for (int i = 0; i < PAIRS; i++) {
		finish(b[i]);
		finish(a[i]);
	}
	CHECK(handled > 0 && rounds > 0);
	puts("storm");
}

/* ---- many children --------------------------------------------------------------- */

static volatile sig_atomic_t chlds;

static void on_child(int sig)
{
	(void)sig;
	chlds++;
}

static void children(void)
{
	enum { CHILDREN = 200 };
	struct sigaction sa = { .sa_handler = on_child, .sa_flags = SA_RESTART };
	int left = CHILDREN, status;

	CHECK_OK(sigaction(SIGCHLD, &sa, NULL));
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(i % 100);
	}
	while (left) {
		pid_t pid = waitpid(-1, &status, 0);

		CHECK(pid > 0);
		CHECK(WIFEXITED(status));
		left--;
	}
	CHECK_ERR(waitpid(-1, &status, 0), ECHILD);
	CHECK(chlds > 0);
	signal(SIGCHLD, SIG_DFL);
	puts("children");
}

/* ---- stopped and continued --------------------------------------------------------- */

static volatile sig_atomic_t tstps, conts;
static int continued[2];

static void on_tstp(int sig)
{
	if (sig == SIGTSTP) {
		tstps++;
		return;
	}
	conts++;
	if (write(continued[1], "x", 1) != 1)
		abort();
}

/* Handled, too: what stops a process takes a pending SIGCONT away. */
static void go_on(pid_t pid)
{
	char c;

	CHECK_OK(kill(pid, SIGCONT));
	CHECK_INT(read(continued[0], &c, 1), 1);
}

static void *ticks(void *arg)
{
	while (!stop)
		usleep(1000);
	return arg;
}

static void jobs(void)
{
	int status;
	pid_t pid;
	char c;

	CHECK_OK(pipe(continued));
	pid = fork();
	if (pid == 0) {
		/* A group that is orphaned would not be stopped. */
		setpgid(0, 0);
		stop = 0;
		signal(SIGCONT, on_tstp);
		start(ticks, NULL);
		start(ticks, NULL);
		CHECK_INT(write(continued[1], "x", 1), 1);
		/* Stopped by default, and by itself. */
		while (conts < 4)
			usleep(1000);
		signal(SIGTSTP, on_tstp);
		raise(SIGTSTP);
		_exit(tstps == 1 ? 3 : 4);
	}
	CHECK_INT(read(continued[0], &c, 1), 1);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(kill(pid, i % 2 ? SIGSTOP : SIGTSTP));
		CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
		CHECK(WIFSTOPPED(status));
		CHECK_INT(WSTOPSIG(status), i % 2 ? SIGSTOP : SIGTSTP);
		go_on(pid);
		CHECK_INT(waitpid(pid, &status, WCONTINUED), pid);
		CHECK(WIFCONTINUED(status));
	}
	go_on(pid);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 3 << 8);
	puts("jobs");
}

int main(int argc, char **argv)
{
	CHECK_OK(pipe(handler_pipe));
	CHECK_OK(sem_init(&posted, 0, 0));
	storm(argc > 1 ? atoi(argv[1]) : 20000);
	children();
	jobs();
	return success();
}
