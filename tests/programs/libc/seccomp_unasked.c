/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/seccomp_unasked.c - threads in a sandbox that ends the process for getsockopt, which the program does not
 * call: nobody else may call it either, when descriptors are shared or changed on which calls wait, or have waited.
 */
#include "sockets.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

enum { NOTHING, DUPLICATE, FORK, PASSED, NONBLOCK, BY_IOCTL, TIMEOUT, CHANGES };

static int pair[2], full[2];
static char page[1 << 16];

static void end_for_getsockopt(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { COUNT(code), code };

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter));
}

static void *receives(void *arg)
{
	char c;

	event_post(&will_sleep);
	CHECK_INT(recv(pair[0], &c, 1, 0), 1);
	return arg;
}

static void *sends(void *arg)
{
	event_post(&will_sleep);
	CHECK_INT(send(full[0], page, 1, 0), 1);
	return arg;
}

static void change(int how)
{
	int on = 1, status;
	pid_t child;

	switch (how) {
	case DUPLICATE: CHECK_OK(close(dup(pair[0]))); break;
	case FORK:
		child = fork();
		if (!child)
			_exit(0);
		CHECK_INT(waitpid(child, &status, 0), child);
		CHECK_OK(status);
		break;
	case PASSED: send_descriptor(pair[0], "x"); break;
	case NONBLOCK: CHECK_OK(fcntl(pair[0], F_SETFL, O_NONBLOCK)); break;
	case BY_IOCTL: CHECK_OK(ioctl(pair[0], FIONBIO, &on)); break;
	case TIMEOUT: set_timeout(pair[0], SO_RCVTIMEO, 1000); break;
	default: break;
	}
}

/* A call has received something; another one, and one that sends, wait for so long that somebody may look at them. */
static void in_sandbox(int how)
{
	pthread_t receiver, sender;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, full));
	while (send(full[0], page, sizeof(page), MSG_DONTWAIT) > 0 || send(full[0], page, 1, MSG_DONTWAIT) > 0)
		continue;
	end_for_getsockopt();
	receiver = start_asleep(receives, NULL);
	CHECK_INT(write(pair[1], "x", 1), 1);
	finish(receiver);
	change(how);
	/* After a change that ends calls at once none may wait. */
	if (how != NONBLOCK && how != BY_IOCTL && how != TIMEOUT)
		receiver = start_asleep(receives, NULL);
	sender = start_asleep(sends, NULL);
	usleep(400000);
	if (how != NONBLOCK && how != BY_IOCTL && how != TIMEOUT) {
		CHECK_INT(write(pair[1], "x", 1), 1);
		finish(receiver);
	}
	while (recv(full[1], page, sizeof(page), MSG_DONTWAIT) > 0)
		continue;
	finish(sender);
}

int main(void)
{
	for (int how = 0; how < CHANGES; how++)
		run_in_child(in_sandbox, how);
	return success();
}
