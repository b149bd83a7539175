/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/setgroups_once.c - setgroups, and initgroups, which calls it inside libc:
 * each kernel thread of the process makes the system call exactly once. Another process sees the
 * calls, through a seccomp filter. Needs root; without it there is nothing to see.
 */
#include "check.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { GROUP = 1003, MOST = 256 };

static struct seen {
	_Atomic int count;
	int tids[MOST];
} *seen;

static int watch_setgroups(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setgroups, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { COUNT(code), code };

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &program);
}

/* The process that sees the calls, and lets the kernel make them. */
static void see(int listener)
{
	for (;;) {
		struct seccomp_notif call = { 0 };
		struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			continue;
		if (seen->count < MOST)
			seen->tids[seen->count++] = (int)call.pid;
		answer.id = call.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static void check_each_once(void)
{
	CHECK(seen->count > 0);
	for (int i = 0; i < seen->count; i++)
		for (int k = 0; k < i; k++)
			CHECK(seen->tids[i] != seen->tids[k]);
	seen->count = 0;
}

static void *sets(void *arg)
{
	CHECK_OK(setgroups(1, (gid_t[]){ GROUP }));
	check_each_once();
	CHECK_OK(initgroups("no-such-user", GROUP));
	check_each_once();
	return arg;
}

static void *waits(void *arg)
{
	event_wait(arg, 1);
	return arg;
}

int main(void)
{
	struct event done = EVENT_INIT;
	int listener, status;
	pthread_t t;
	pid_t pid;

	if (getuid())
		return success();
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(seen != MAP_FAILED);
	listener = watch_setgroups();
	/* A filter of the machine's has no room for another listener. */
	if (listener < 0)
		return success();
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		see(listener);
	CHECK_OK(close(listener));
	t = start(waits, &done);
	sets(NULL);
	finish(start(sets, NULL));
	event_post(&done);
	finish(t);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return success();
}
