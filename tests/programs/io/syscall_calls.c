/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/syscall_calls.c - blocking and thread-specific system calls by
 * syscall(2): as the functions of that name, but no cancellation points.
 */
#include "check.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { THREADS = 50 };

static int pipes[THREADS][2];

/* ---- many at once that wait --------------------------------------------- */

static void *reader(void *arg)
{
	int fd = *(int *)arg;
	char c = 0;

	CHECK_KEEPS(syscall(SYS_read, fd, &c, 1), 1);
	CHECK_INT(c, 'x');
	CHECK_OK(syscall(SYS_read, fd, &c, 0));
	return NULL;
}

static void many(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		CHECK_OK(syscall(SYS_pipe2, pipes[i], O_CLOEXEC));
		threads[i] = start(reader, &pipes[i][0]);
	}
	for (int i = THREADS; i-- > 0;)
		CHECK_INT(syscall(SYS_write, pipes[i][1], "x", 1), 1);
	for (int i = 0; i < THREADS; i++) {
		finish(threads[i]);
		CHECK_OK(syscall(SYS_close, pipes[i][0]));
		CHECK_OK(syscall(SYS_close, pipes[i][1]));
	}
	CHECK_ERR(syscall(SYS_read, pipes[0][0], NULL, 1), EBADF);
}

/* ---- descriptors -------------------------------------------------------- */

static void *descriptors(void *arg)
{
	struct iovec iov[2] = { { (char *)"ab", 2 }, { (char *)"cd", 2 } };
	char buf[8] = "";
	int fd = temp_file(), copy;

	CHECK_INT(syscall(SYS_pwrite64, fd, "0123456789", 10, 0L), 10);
	CHECK_INT(syscall(SYS_pread64, fd, buf, 3, 4L), 3);
	CHECK(!memcmp(buf, "456", 3));
	CHECK_INT(syscall(SYS_pwritev, fd, iov, 2, 2L, 0L), 4);
	CHECK_INT(syscall(SYS_preadv, fd, iov, 0, 0L, 0L), 0);
	CHECK_INT(syscall(SYS_read, fd, buf, 8), 8);
	CHECK(!memcmp(buf, "01abcd67", 8));
	copy = (int)syscall(SYS_dup, fd);
	CHECK(copy >= 0);
	CHECK_INT(syscall(SYS_dup3, fd, copy, O_CLOEXEC), copy);
	CHECK_INT(syscall(SYS_fcntl, copy, F_GETFD), FD_CLOEXEC);
	CHECK_ERR(syscall(SYS_dup3, fd, fd, 0), EINVAL);
	CHECK_OK(syscall(SYS_close, copy));
	CHECK_OK(syscall(SYS_close, fd));
	CHECK_ERR(syscall(SYS_close, fd), EBADF);
	return arg;
}

/* ---- sockets ------------------------------------------------------------ */

static void *client(void *arg)
{
	const struct sockaddr_in *addr = arg;
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	char buf[4];

	CHECK(fd >= 0);
	CHECK_OK(syscall(SYS_connect, fd, addr, sizeof(*addr)));
	CHECK_INT(syscall(SYS_sendto, fd, "ping", 4, 0, NULL, 0), 4);
	CHECK_INT(syscall(SYS_recvfrom, fd, buf, 4, MSG_WAITALL, NULL, NULL), 4);
	CHECK(!memcmp(buf, "pong", 4));
	CHECK_OK(syscall(SYS_close, fd));
	return NULL;
}

static void *sockets(void *arg)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int listener = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	struct msghdr msg = { .msg_iovlen = 1 };
	struct iovec iov;
	char buf[4];
	pthread_t t;

	CHECK(listener >= 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listener, (struct sockaddr *)&addr, len));
	CHECK_OK(listen(listener, 8));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&addr, &len));
	t = start(client, &addr);
	fd = (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(fd >= 0);
	iov = (struct iovec){ buf, 4 };
	msg.msg_iov = &iov;
	CHECK_INT(syscall(SYS_recvmsg, fd, &msg, MSG_WAITALL), 4);
	CHECK(!memcmp(buf, "ping", 4));
	iov.iov_base = (char *)"pong";
	CHECK_INT(syscall(SYS_sendmsg, fd, &msg, 0), 4);
	finish(t);
	CHECK_INT(syscall(SYS_recvfrom, fd, buf, 4, 0, NULL, NULL), 0);
	CHECK_OK(syscall(SYS_close, fd));
	CHECK_OK(syscall(SYS_close, listener));
	return arg;
}

/* ---- readiness ---------------------------------------------------------- */

static const struct timespec fixed = { 0, 5 * MS };
static const struct timeval fixed_value = { 0, 5000 };

static void *readiness(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct timespec ts = to_timespec(5 * MS), left;
	UNUSED struct timeval value = { 10, 0 };
	struct { const sigset_t *set; size_t size; } mask;
	struct pollfd pfd = { .events = POLLIN };
	long long begin;
	sigset_t set;
	fd_set fds;
	int p[2], ep;

	CHECK_OK(syscall(SYS_pipe2, p, 0));
	pfd.fd = p[0];
	sigemptyset(&set);
	mask.set = &set;
	mask.size = 8;
	ep = epoll_create1(0);
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event));

	/* What is left of the timeout is told. */
	begin = now(CLOCK_MONOTONIC);
	left = ts;
	CHECK_OK(syscall(SYS_ppoll, &pfd, 1, &left, &set, 8));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 5 * MS);
	CHECK(left.tv_sec == 0 && left.tv_nsec == 0);
	left = to_timespec(10000 * MS);
	FD_ZERO(&fds);
	FD_SET(p[1], &fds);
	CHECK_INT(syscall(SYS_pselect6, p[1] + 1, NULL, &fds, NULL, &left, &mask), 1);
	CHECK(left.tv_sec > 0 && left.tv_sec < 10);
	FD_ZERO(&fds);
	FD_SET(p[0], &fds);
	left = ts;
	CHECK_OK(syscall(SYS_pselect6, p[0] + 1, &fds, NULL, NULL, &left, NULL));
	CHECK(left.tv_sec == 0 && left.tv_nsec == 0);
	/* It is not told, and no error, where the memory is read-only. */
	CHECK_OK(syscall(SYS_ppoll, &pfd, 1, &fixed, &set, 8));
	CHECK_OK(syscall(SYS_pselect6, p[0] + 1, &fds, NULL, NULL, &fixed, NULL));
#ifdef SYS_select
	CHECK_OK(syscall(SYS_select, p[0] + 1, &fds, NULL, NULL, &fixed_value));
	CHECK_ERR(syscall(SYS_select, p[0] + 1, &fds, NULL, NULL, (void *)8), EFAULT);
	FD_SET(p[1], &fds);
	CHECK_INT(syscall(SYS_select, p[1] + 1, NULL, &fds, NULL, &value), 1);
	CHECK(value.tv_sec > 0 && value.tv_sec < 10);
#endif
	mask.size = 4;
	CHECK_ERR(syscall(SYS_pselect6, p[0] + 1, &fds, NULL, NULL, &left, &mask), EINVAL);
	CHECK_ERR(syscall(SYS_ppoll, &pfd, 1, &left, &set, 4), EINVAL);
	CHECK_ERR(syscall(SYS_ppoll, &pfd, 1, (void *)8, NULL, 8), EFAULT);
	CHECK_OK(syscall(SYS_epoll_pwait, ep, &event, 1, 5, NULL, 8));
	CHECK_ERR(syscall(SYS_epoll_pwait, ep, &event, 1, 0, &set, 4), EINVAL);
#ifdef SYS_poll
	CHECK_OK(syscall(SYS_poll, &pfd, 1, 5));
#endif
	CHECK_INT(syscall(SYS_write, p[1], "x", 1), 1);
	CHECK_INT(syscall(SYS_epoll_pwait, ep, &event, 1, -1, &set, 8), 1);
	CHECK_INT(syscall(SYS_ppoll, &pfd, 1, NULL, NULL, 8), 1);
	CHECK_OK(syscall(SYS_close, ep));
	CHECK_OK(syscall(SYS_close, p[0]));
	CHECK_OK(syscall(SYS_close, p[1]));
	return arg;
}

/* ---- time --------------------------------------------------------------- */

static void *sleeping(void *arg)
{
	struct timespec ts = to_timespec(3 * MS), bad = { 0, -1 };
	long long begin = now(CLOCK_MONOTONIC);

	CHECK_OK(syscall(SYS_nanosleep, &ts, NULL));
	CHECK_OK(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 6 * MS);
	ts = to_timespec(begin);
	CHECK_OK(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL));
	/* -1 and errno, where the function returns the error. */
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_nanosleep, &bad, NULL), EINVAL);
	CHECK_OK(syscall(SYS_sched_yield));
	return arg;
}

/* ---- thread ids and signals --------------------------------------------- */

static _Atomic long tids[THREADS];
static _Atomic int handled_by[THREADS];
static _Atomic bool done;
static __thread int me = -1;

static void note(int sig)
{
	(void)sig;
	handled_by[me]++;
}

static void *with_tid(void *arg)
{
	me = (int)(intptr_t)arg;
	tids[me] = syscall(SYS_gettid);
	CHECK_INT(tids[me], gettid());
	while (!done)
		usleep(500);
	return NULL;
}

/* Another thread's calls do not change what this one has blocked. */
static void *blocks(void *arg)
{
	uint64_t set = 1u << (SIGUSR2 - 1), old, none = 0;
	sigset_t now_blocked;

	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, &old, 8));
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8));
	usleep(3000);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, &now_blocked));
	CHECK_INT(sigismember(&now_blocked, SIGUSR2), arg == NULL);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, 77, &set, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, NULL, 8), EFAULT);
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));
	CHECK_OK(syscall(SYS_rt_sigpending, &set, 8));
	CHECK(set & 1u << (SIGUSR2 - 1));
	me = 0;
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8));
	return NULL;
}

static void ids(void)
{
	struct sigaction sa = { .sa_flags = SA_RESTART };
	pthread_t threads[THREADS];
	int pid = getpid();

	sa.sa_handler = note;
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	me = 0;
	for (int i = 1; i < THREADS; i++)
		threads[i] = start(with_tid, (void *)(intptr_t)i);
	for (int i = 1; i < THREADS; i++) {
		while (!tids[i])
			usleep(100);
		for (int k = 1; k < i; k++)
			CHECK(tids[i] != tids[k]);
		CHECK(tids[i] != pid);
		CHECK_OK(syscall(SYS_tgkill, pid, tids[i], 0));
		CHECK_OK(i % 2 ? syscall(SYS_tgkill, pid, tids[i], SIGUSR2) :
				 syscall(SYS_tkill, tids[i], SIGUSR2));
	}
	for (int i = 1; i < THREADS; i++)
		while (handled_by[i] != 1)
			usleep(100);
	CHECK_OK(tgkill(pid, (pid_t)tids[1], SIGUSR2));
	while (handled_by[1] != 2)
		usleep(100);
	CHECK_ERR(syscall(SYS_tgkill, pid, tids[1], 65), EINVAL);
	CHECK_ERR(syscall(SYS_tgkill, pid, -1, SIGUSR2), EINVAL);
	CHECK_ERR(syscall(SYS_tgkill, pid, (1 << 30) - 1, SIGUSR2), ESRCH);
	done = true;
	for (int i = 1; i < THREADS; i++)
		finish(threads[i]);
	CHECK_ERR(tgkill(pid, (pid_t)tids[1], 0), ESRCH);
	/* Oneself, at once; and the main thread is the process. */
	CHECK_INT(syscall(SYS_gettid), pid);
	CHECK_OK(syscall(SYS_tgkill, pid, pid, SIGUSR2));
	CHECK_INT(handled_by[0], 1);
	finish(start(blocks, NULL));
	CHECK_INT(handled_by[0], 2);
}

/* ---- ends --------------------------------------------------------------- */

static void cleaned_up(void *arg)
{
	*(int *)arg = 1;
}

static void *leaves(void *arg)
{
	pthread_cleanup_push(cleaned_up, arg);
	syscall(SYS_exit, 3);
	pthread_cleanup_pop(0);
	return NULL;
}

static void exits(void)
{
	int cleaned = 0;

	for (int i = 0; i < 3; i++)
		finish(start(leaves, &cleaned));
	CHECK_INT(cleaned, 0);
	/* Those that come after it have stacks and ids of their own. */
	finish(start(sleeping, NULL));
}

static _Atomic int stage;

static void *not_cancelled(void *arg)
{
	char c;

	stage = 1;
	CHECK_INT(syscall(SYS_read, *(int *)arg, &c, 1), 1);
	stage = 2;
	pthread_testcancel();
	return NULL;
}

static void cancel(void)
{
	pthread_t t;
	int p[2];

	CHECK_OK(pipe(p));
	t = start(not_cancelled, &p[0]);
	while (stage != 1)
		usleep(100);
	settle();
	CHECK_OK(pthread_cancel(t));
	settle();
	CHECK_INT(stage, 1);
	CHECK_INT(write(p[1], "x", 1), 1);
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(stage, 2);
	CHECK_OK(close(p[0]));
	CHECK_OK(close(p[1]));
}

/* ---- processes ---------------------------------------------------------- */

static void wait_for_child(long pid)
{
	int status = -1;

	CHECK(pid > 0);
	CHECK_INT(syscall(SYS_wait4, pid, &status, 0, NULL), pid);
	CHECK_INT(status, 5 << 8);
}

/* The child may do what a process does, threads included. */
static _Noreturn void child(void)
{
	pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

	CHECK_INT(syscall(SYS_gettid), getpid());
	CHECK_OK(pthread_mutex_lock(&lock));
	CHECK_OK(pthread_mutex_lock(&lock));
	finish(start(sleeping, NULL));
	_exit(5);
}

static void *processes(void *arg)
{
	long pid;

#ifdef SYS_fork
	pid = syscall(SYS_fork);
	if (pid == 0)
		child();
	wait_for_child(pid);
#endif
	pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		child();
	wait_for_child(pid);
	return arg;
}

/* ---- the others --------------------------------------------------------- */

static void *others(void *arg)
{
	char buf[16];
	unsigned cpu = 1u << 30;
	long map;

	CHECK_INT(syscall(SYS_getrandom, buf, sizeof(buf), 0), sizeof(buf));
	CHECK_INT(syscall(SYS_getpid), getpid());
	CHECK_OK(syscall(SYS_getcpu, &cpu, NULL, NULL));
	CHECK(cpu < 1u << 20);
	CHECK(syscall(SYS_membarrier, 0, 0, 0) >= 0);
	/* Six arguments. */
	map = syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	CHECK(map > 0);
	CHECK_OK(syscall(SYS_munmap, map, 4096L));
	CHECK_ERR(syscall(100000), ENOSYS);
	CHECK_ERR(syscall(-1), ENOSYS);
	return arg;
}

int main(void)
{
	void *(*const bodies[])(void *) = {
		descriptors, sockets, readiness, sleeping, processes, others,
	};

	/* Before there are threads, from one of them, and after that. */
	others(NULL);
	descriptors(NULL);
	many();
	for (size_t i = 0; i < COUNT(bodies); i++) {
		finish(start(bodies[i], NULL));
		bodies[i](NULL);
	}
	ids();
	exits();
	cancel();
	return success();
}
