/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/seccomp_dormant.c - a process with one thread in a sandbox that ends it for a system
 * call that its own calls do not make: nothing may be asked of the kernel besides.
 */
#include "check.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

static const int allowed[] = {
	SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_close, SYS_dup,
	SYS_fcntl, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_setsockopt, SYS_ppoll, SYS_pselect6,
	SYS_clock_nanosleep, SYS_epoll_pwait, SYS_futex, SYS_exit_group,
#ifdef SYS_poll
	SYS_poll, SYS_epoll_wait,
#endif
};

static void allow_only_these(void)
{
	enum { COUNT = sizeof(allowed) / sizeof(*allowed) };
	struct sock_filter code[COUNT + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { COUNT + 3, code };

	for (int i = 0; i < COUNT; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
							   COUNT - i, 0);
	code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static int own_pipe[2], pair[2], duplicate, events;

static void transfers(void)
{
	char text[8];
	struct iovec iov = { text, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	CHECK_INT(write(own_pipe[1], "abc", 3), 3);
	CHECK_INT(read(own_pipe[0], text, 2), 2);
	CHECK_INT(readv(own_pipe[0], &iov, 1), 1);
	CHECK_INT(writev(own_pipe[1], &iov, 1), 1);
	CHECK_INT(send(pair[0], "abc", 3, 0), 3);
	CHECK_INT(recv(pair[1], text, 1, 0), 1);
	CHECK_INT(recvfrom(pair[1], text, 1, 0, NULL, NULL), 1);
	CHECK_INT(recvmsg(pair[1], &message, 0), 1);
	CHECK_INT(sendmsg(pair[0], &message, 0), 1);
	CHECK_OK(fcntl(own_pipe[1], F_SETFL, O_NONBLOCK));
	CHECK_OK(close(dup(own_pipe[0])));
}

/* Not on the stack, so only the kernel knows that they can be read. */
static void messages(void)
{
	static char byte = 'm';
	static struct iovec iov = { &byte, 1 };
	static union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	static struct mmsghdr two[2] = {
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			       .msg_controllen = sizeof(control) } },
	};
	const struct timeval second = { .tv_sec = 1 };
	struct msghdr mixed = two[1].msg_hdr;

	memcpy(CMSG_DATA(&control.head), &own_pipe[0], sizeof(own_pipe[0]));
	CHECK_INT(sendmsg(pair[0], &two[0].msg_hdr, 0), 1);
	CHECK_INT(sendmsg(pair[0], &two[1].msg_hdr, 0), 1);
	CHECK_INT(sendmsg(duplicate, &mixed, 0), 1);
	CHECK_INT(sendmmsg(duplicate, two, 2, 0), 2);
	CHECK_OK(setsockopt(duplicate, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)));
	CHECK_OK(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second)));
}

static void waits(void)
{
	struct timespec moment = { .tv_nsec = 1000 };
	struct timeval brief = { .tv_usec = 1000 };
	struct pollfd p = { .fd = own_pipe[0], .events = POLLIN };
	struct epoll_event event;
	fd_set set;

	FD_ZERO(&set);
	FD_SET(own_pipe[0], &set);
	CHECK_INT(poll(&p, 1, 1), 1);
	CHECK_INT(ppoll(&p, 1, &moment, NULL), 1);
	CHECK_INT(select(own_pipe[0] + 1, &set, NULL, NULL, &brief), 1);
	CHECK_INT(pselect(0, NULL, NULL, NULL, &moment, NULL), 0);
	CHECK_INT(epoll_wait(events, &event, 1, 1), 0);
	CHECK_INT(epoll_pwait(events, &event, 1, 0, NULL), 0);
	CHECK_OK(usleep(10));
	CHECK_OK(nanosleep(&moment, NULL));
	CHECK_INT(clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL), 0);
	CHECK_INT(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &moment, NULL), 0);
}

static void locks(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	const struct timespec past = { .tv_nsec = 1 };
	sem_t sem;

	CHECK_INT(pthread_mutex_lock(&mutex), 0);
	CHECK_INT(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
	CHECK_INT(pthread_cond_signal(&cond), 0);
	CHECK_INT(pthread_mutex_unlock(&mutex), 0);
	CHECK_INT(pthread_rwlock_wrlock(&rwlock), 0);
	CHECK_INT(pthread_rwlock_unlock(&rwlock), 0);
	CHECK_OK(sem_init(&sem, 0, 1));
	CHECK_OK(sem_wait(&sem));
	CHECK_ERR(sem_timedwait(&sem, &past), ETIMEDOUT);
	CHECK_OK(sem_post(&sem));
}

static void in_sandbox(void (*calls)(void), const char *name)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		allow_only_these();
		calls();
		_exit(7);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 7 << 8);
	puts(name);
}

static void nothing(void)
{
}

int main(void)
{
	CHECK_OK(pipe(own_pipe));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	duplicate = dup(pair[0]);
	CHECK(duplicate >= 0);
	events = epoll_create1(0);
	CHECK(events >= 0);
	in_sandbox(nothing, "_exit");
	in_sandbox(transfers, "transfers");
	in_sandbox(messages, "messages");
	in_sandbox(waits, "waits");
	in_sandbox(locks, "locks");
	return success();
}
