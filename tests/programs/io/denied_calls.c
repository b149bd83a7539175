/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/denied_calls.c - a seccomp filter answers an error to one system call that the
 * program does not make, from the start or in mid-run: all calls that it makes answer as before.
 * The denied call itself answers the filter's error.
 *
 * Each call is denied in a process of its own, with descriptors that it has inherited.
 */
#include "check.h"
#include "denied.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ---- the calls ----------------------------------------------------------- */

static void by_buffer(void)
{
	char c[64];

	if (may(SYS_read) && may(SYS_write)) {
		WHILE(write_pipe, CHECK_INT(read(pipes[0], c, sizeof(c)), 1));
		WHILE(drain_pipe, CHECK_INT(write(pipes[1], sent, LARGE), LARGE));
		CHECK_OK(memcmp(sent, received, LARGE));
		WHILE(write_fifo, CHECK_INT(read(fifo, c, sizeof(c)), 1));
		WHILE(write_counter, CHECK_INT(read(counter, c, sizeof(c)), 8));
		WHILE(write_stream, CHECK_INT(read(streams[0], c, sizeof(c)), 1));
		WHILE(drain_stream, CHECK_INT(write(streams[0], sent, LARGE), LARGE));
		CHECK_OK(memcmp(sent, received, LARGE));
		WHILE(write_datagram, CHECK_INT(read(datagrams[0], c, sizeof(c)), 1));
		CHECK_ERR(read(nonblocking[0], c, 1), EAGAIN);
		CHECK_ERR(read(timed[0], c, 1), EAGAIN);
		CHECK_ERR(read(-1, c, 1), EBADF);
		CHECK_INT(lseek(file, 2, SEEK_SET), 2);
		CHECK_INT(write(file, "w", 1), 1);
		CHECK_INT(read(file, c, 3), 3);
	}
	if (may(SYS_pread64) && may(SYS_pwrite64)) {
		CHECK_INT(pwrite(file, "at", 2, 1), 2);
		CHECK_INT(pread(file, c, 3, 1), 3);
		CHECK_OK(memcmp(c, "at", 2));
		CHECK_ERR(pread(pipes[0], c, 1, 0), ESPIPE);
	}
}

static void by_vector(void)
{
	char c[64];
	struct iovec in[2] = { { c, 1 }, { c + 1, sizeof(c) - 1 } };
	struct iovec out[2] = { { sent, 5 }, { sent + 5, LARGE - 5 } };

	if (may(SYS_readv) && may(SYS_writev) && may(SYS_write) && may(SYS_read)) {
		WHILE(write_pipe, CHECK_INT(readv(pipes[0], in, 2), 1));
		WHILE(drain_pipe, CHECK_INT(writev(pipes[1], out, 2), LARGE));
		CHECK_OK(memcmp(sent, received, LARGE));
		WHILE(write_stream, CHECK_INT(readv(streams[0], in, 2), 1));
		WHILE(drain_stream, CHECK_INT(writev(streams[0], out, 2), LARGE));
		CHECK_OK(memcmp(sent, received, LARGE));
	}
	out[1].iov_len = 5;
	if (may(SYS_preadv) && may(SYS_pwritev)) {
		CHECK_INT(pwritev(file, out, 2, 3), 10);
		CHECK_INT(preadv(file, in, 2, 3) >= 10, 1);
	}
	if (may(SYS_preadv2) && may(SYS_pwritev2)) {
		CHECK_INT(pwritev2(file, out, 2, 3, 0), 10);
		CHECK_INT(pwritev2(file, out, 2, 3, RWF_DSYNC), 10);
		CHECK_INT(preadv2(file, in, 2, 3, 0) >= 10, 1);
	}
}

static void by_socket(void)
{
	char c[64];
	struct iovec in = { c, sizeof(c) }, out = { sent, LARGE };
	struct msghdr msg = { .msg_iov = &in, .msg_iovlen = 1 };
	struct mmsghdr several = { .msg_hdr = msg };
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	pthread_t third;
	int fd;

	if (!may(SYS_read) || !may(SYS_write))
		return;
	if (may(SYS_recvfrom)) {
		WHILE(write_stream, CHECK_INT(recv(streams[0], c, sizeof(c), 0), 1));
		WHILE(write_stream_large,
		      CHECK_INT(recv(streams[0], received, LARGE, MSG_WAITALL), LARGE));
		CHECK_OK(memcmp(sent, received, LARGE));
		WHILE(write_datagram, CHECK_INT(recvfrom(datagrams[0], c, sizeof(c), 0,
							 (struct sockaddr *)&from, &size), 1));
		CHECK_ERR(recv(timed[0], c, 1, 0), EAGAIN);
		CHECK_ERR(recv(streams[0], c, 1, MSG_DONTWAIT), EAGAIN);
		CHECK_ERR(recv(file, c, 1, 0), ENOTSOCK);
	}
	if (may(SYS_sendto))
		WHILE(drain_stream, CHECK_INT(send(streams[0], sent, LARGE, 0), LARGE));
	if (may(SYS_recvmsg))
		WHILE(write_stream, CHECK_INT(recvmsg(streams[0], &msg, 0), 1));
	if (may(SYS_recvmmsg))
		WHILE(write_datagram, CHECK_INT(recvmmsg(datagrams[0], &several, 1, 0, NULL), 1));
	msg.msg_iov = &out;
	if (may(SYS_sendmsg)) {
		third = start(reads_pipe, NULL);
		WHILE(drain_stream_slowly, CHECK_INT(sendmsg(streams[0], &msg, 0), LARGE));
		CHECK_OK(memcmp(sent, received, LARGE));
		finish(third);
	}
	if (may(SYS_sendmmsg)) {
		struct iovec parts[3] = { { sent, 9 }, { sent + 9, LARGE - 10 }, { sent + LARGE - 1, 1 } };
		struct mmsghdr two[2] = { { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 2 } },
					  { .msg_hdr = { .msg_iov = parts + 2, .msg_iovlen = 1 } } };

		third = start(reads_pipe, NULL);
		WHILE(drain_stream_slowly, CHECK(sendmmsg(streams[0], two, 2, 0) == 2 &&
						 two[0].msg_len == LARGE - 1 && two[1].msg_len == 1));
		CHECK_OK(memcmp(sent, received, LARGE));
		finish(third);
	}
	if (!may(SYS_connect))
		return;
	if (may(SYS_accept)) {
		WHILE(connect_to, CHECK((fd = accept(listener, NULL, NULL)) >= 0));
		CHECK_OK(close(fd));
	}
	if (may(SYS_accept4)) {
		WHILE(connect_to, CHECK((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0));
		CHECK_OK(close(fd));
	}
}

static void by_readiness(void)
{
	struct pollfd p = { .fd = pipes[0], .events = POLLIN };
	struct timespec soon = to_timespec(MS), late = to_timespec(1000 * 1000 * MS);
	struct epoll_event event;
	fd_set set;
	char c;

	if (!may(SYS_read) || !may(SYS_write))
		return;
#ifdef SYS_poll
	if (may(SYS_poll)) {
		CHECK_INT(poll(&p, 1, 0), 0);
		CHECK_INT(poll(&p, 1, 2), 0);
		WHILE(write_pipe, CHECK_INT(poll(&p, 1, -1), 1));
		CHECK_INT(read(pipes[0], &c, 1), 1);
	}
#endif
	if (may(SYS_ppoll)) {
		CHECK_INT(ppoll(&p, 1, &soon, NULL), 0);
		WHILE(write_pipe, CHECK_INT(ppoll(&p, 1, &late, NULL), 1));
		CHECK_INT(read(pipes[0], &c, 1), 1);
	}
	if (may(SYS_pselect6)) {
		FD_ZERO(&set);
		FD_SET(pipes[0], &set);
		CHECK_INT(pselect(pipes[0] + 1, &set, NULL, NULL, &soon, NULL), 0);
		FD_SET(pipes[0], &set);
		WHILE(write_pipe,
		      CHECK_INT(pselect(pipes[0] + 1, &set, NULL, NULL, NULL, NULL), 1));
		CHECK_INT(read(pipes[0], &c, 1), 1);
	}
#ifdef SYS_epoll_wait
	if (may(SYS_epoll_wait)) {
		CHECK_INT(epoll_wait(epoll, &event, 1, 2), 0);
		WHILE(write_pipe, CHECK_INT(epoll_wait(epoll, &event, 1, -1), 1));
		CHECK_INT(read(pipes[0], &c, 1), 1);
	}
#endif
	if (may(SYS_epoll_pwait)) {
		CHECK_INT(epoll_pwait(epoll, &event, 1, 2, NULL), 0);
		WHILE(write_pipe, CHECK_INT(epoll_pwait(epoll, &event, 1, -1, NULL), 1));
		CHECK_INT(read(pipes[0], &c, 1), 1);
	}
}

static volatile sig_atomic_t told_code, told_value;

static void handled(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)context;
	CHECK_INT(info->si_pid, getpid());
	told_value = info->si_value.sival_int;
	told_code = info->si_code;
}

static void *spin(void *arg)
{
	while (!told_code)
		continue;
	return arg;
}

static void by_signal(void)
{
	struct sigaction action = { .sa_sigaction = handled, .sa_flags = SA_SIGINFO };
	const union sigval value = { .sival_int = 77 };
	sigset_t usr1, before;
	pthread_t spinner;
	int signo;

	if (!may(SYS_tgkill) || !may(SYS_getpid) || !may(SYS_gettid))
		return;
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(told_code, SI_TKILL);
	if (may(SYS_rt_sigqueueinfo)) {
		CHECK_OK(sigqueue(getpid(), SIGUSR1, value));
		while (told_code != SI_QUEUE)
			usleep(100);
		CHECK_INT(told_value, 77);
	}
	told_code = 0;
	spinner = start(spin, NULL);
	usleep(200);
	CHECK_OK(pthread_kill(spinner, SIGUSR1));
	finish(spinner);
	CHECK_INT(told_code, SI_TKILL);
	CHECK_OK(sigemptyset(&usr1));
	CHECK_OK(sigaddset(&usr1, SIGUSR1));
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &usr1, &before));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
	if (may(SYS_rt_sigtimedwait))
		CHECK_OK(sigwait(&usr1, &signo));
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

static void others(void)
{
	int status, found;
	pid_t child = fork();

	if (!child)
		_exit(7);
	while ((found = waitpid(child, &status, 0)) < 0)
		CHECK_INT(errno, EINTR);
	CHECK_INT(found, child);
	CHECK_INT(status, 7 << 8);
	if (may(SYS_clock_nanosleep))
		CHECK_OK(usleep(1000));
}

/* The calls that are denied, of those that could be answered otherwise. */
static void by_denied(int error)
{
	struct msghdr msg = { .msg_iovlen = 0 };
	struct iovec iov = { received, 1 };
	const int fd = streams[0];

	switch (denied) {
	case SYS_read: CHECK_ERR(read(fd, received, 1), error); break;
	case SYS_readv: CHECK_ERR(readv(fd, &iov, 1), error); break;
	case SYS_write: CHECK_ERR(write(fd, sent, 1), error); break;
	case SYS_writev: CHECK_ERR(writev(fd, &iov, 1), error); break;
	case SYS_pread64: CHECK_ERR(pread(file, received, 1, 0), error); break;
	case SYS_pwrite64: CHECK_ERR(pwrite(file, sent, 1, 0), error); break;
	case SYS_preadv: CHECK_ERR(preadv(file, &iov, 1, 0), error); break;
	case SYS_preadv2:
		/* libc makes another call then. */
		if (error == ENOSYS)
			CHECK_INT(preadv2(file, &iov, 1, 0, 0), 1);
		else
			CHECK_ERR(preadv2(file, &iov, 1, 0, 0), error);
		break;
	case SYS_pwritev: CHECK_ERR(pwritev(file, &iov, 1, 0), error); break;
	case SYS_recvfrom: CHECK_ERR(recv(fd, received, 1, 0), error); break;
	case SYS_recvmsg: CHECK_ERR(recvmsg(fd, &msg, 0), error); break;
	case SYS_sendto: CHECK_ERR(send(fd, sent, 1, 0), error); break;
	case SYS_sendmsg: CHECK_ERR(sendmsg(fd, &msg, 0), error); break;
	case SYS_accept: CHECK_ERR(accept(listener, NULL, NULL), error); break;
	case SYS_accept4: CHECK_ERR(accept4(listener, NULL, NULL, 0), error); break;
	case SYS_ppoll: CHECK_ERR(ppoll(NULL, 0, &(struct timespec){ 0 }, NULL), error); break;
	default: break;
	}
}

static void call_all(void)
{
	if (denied != -1)
		by_denied(answered);
	by_buffer();
	by_vector();
	by_socket();
	by_readiness();
	by_signal();
	others();
}

int main(int argc, char **argv)
{
	run_all_denied(argc, argv, by_buffer, call_all);
	return success();
}
