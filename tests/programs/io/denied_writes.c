/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/denied_writes.c - a filter denies every call that writes to a descriptor; threads send each
 * other messages and signal each other all the same, also those that slept when the filter came.
 */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { ROUNDS = 200, PAIRS = 3 };

static struct event asked = EVENT_INIT, answered = EVENT_INIT;
static int ends[PAIRS][2];

/* From now on, for threads that are there already, too. */
static void deny_writes(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_writev, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { COUNT(code), code };

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}

static void *echoes(void *arg)
{
	const int *pair = arg;
	char byte;

	while (recv(pair[1], &byte, 1, 0) == 1)
		CHECK_INT(send(pair[1], &byte, 1, 0), 1);
	return arg;
}

static void *answers(void *arg)
{
	for (int i = 1; i <= ROUNDS; i++) {
		event_wait(&asked, i);
		event_post(&answered);
	}
	return arg;
}

static void talk(int unused)
{
	pthread_t echo[PAIRS], answer;
	char byte = 'a';

	(void)unused;
	answer = start(answers, NULL);
	for (int k = 0; k < PAIRS; k++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[k]));
		echo[k] = start(echoes, ends[k]);
	}
	settle();
	deny_writes();
	CHECK_ERR(write(ends[0][0], "x", 1), EPERM);
	for (int i = 1; i <= ROUNDS; i++) {
		for (int k = 0; k < PAIRS; k++)
			CHECK_INT(send(ends[k][0], &byte, 1, 0), 1);
		event_post(&asked);
		for (int k = 0; k < PAIRS; k++)
			CHECK_INT(recv(ends[k][0], &byte, 1, 0), 1);
		event_wait(&answered, i);
	}
	finish(answer);
	for (int k = 0; k < PAIRS; k++) {
		CHECK_OK(shutdown(ends[k][0], SHUT_RDWR));
		finish(echo[k]);
	}
}

int main(void)
{
	run_in_child(talk, 0);
	return success();
}
