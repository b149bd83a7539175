/* SPDX-License-Identifier: MIT */
/*
 * preload/signal/kill_info.c - signals that the program sends to itself with a siginfo of its own:
 * rt_sigqueueinfo and rt_tgsigqueueinfo by number, and pidfd_send_signal.
 */
#include "preload/signal/kill.h"

#include <sys/syscall.h>

#include "preload/gate.h"
#include "preload/proc.h"
#include "runtime/signal/signal.h"

enum { TO_THREAD = 1, TO_PROCESS = 2, TO_GROUP = 4 };	/* flags of pidfd_send_signal */

/* Copy a siginfo of the program's. False if the kernel would answer EFAULT. */
static bool take_info(const void *from, struct fz_siginfo *ret_info)
{
	uintptr_t first = (uintptr_t)from, last = first + sizeof(*ret_info) - 1;

	if (!fz_sys_readable((void *)(first & ~(uintptr_t)7)) ||
	    !fz_sys_readable((void *)(last & ~(uintptr_t)7)))
		return false;
	memcpy(ret_info, from, sizeof(*ret_info));
	return true;
}

/*
 * Does info claim to come from the kernel, kill() or tgkill()? The kernel lets a thread send such a
 * siginfo only to itself.
 */
static bool is_forged(const struct fz_siginfo *info)
{
	const struct fz_siginfo_head *head = (const void *)info;

	return head->code >= 0 || head->code == SI_TKILL;
}

bool fz_kill_with_info(struct fz_fiber *self, pid_t pid, int sig, const void *from, long *ret)
{
	struct fz_siginfo info;

	if (!fz_kill_is_ours(self, sig) || pid != (pid_t)fz_sys_getpid() ||
	    !take_info(from, &info))
		return false;
	((struct fz_siginfo_head *)&info)->signo = sig;
	/* For the kernel the process's id names the main thread, so only that thread sends to itself. */
	*ret = fz_leave(is_forged(&info) && !self->thread.is_main ? -EPERM :
			fz_kill_own_process(self, sig, &info));
	return true;
}

bool fz_kill_thread_with_info(pid_t pid, pid_t tid, int sig, const void *from, long *ret)
{
	struct fz_siginfo info;

	if (sig < 1 || sig > FZ_SIGNALS || !take_info(from, &info))
		return false;
	((struct fz_siginfo_head *)&info)->signo = sig;
	if (!is_forged(&info) || tid == fz_self()->thread.tid)
		return fz_kill_by_tid(pid, tid, sig, &info, ret);
	return false;
}

/*
 * Returns whom a signal by this pidfd with these flags reaches: TO_THREAD (the main thread of this
 * process), TO_PROCESS (this process), TO_GROUP (the process group that this process leads), or 0 for
 * anything else.
 */
static unsigned own_scope(int pidfd, unsigned flags)
{
	char path[64], text[512], own[32], link[32];
	bool thread = false;
	char *pid;

	/* Compare with the id that /proc/self has: /proc may be that of another pid namespace. */
	fz_proc_link("/proc/self", own, sizeof(own));
	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pidfd);
	pid = fz_proc_read(path, "\nPid:\t", text, sizeof(text));
	if (pid) {
		char *of_file = strstr(text, "\nflags:\t");

		/* PIDFD_THREAD */
		thread = of_file && strtoul(of_file + 8, NULL, 8) & O_EXCL;
	} else {
		/* The kernel accepts a descriptor of the directory /proc/PID in place of a pidfd. */
		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", pidfd);
		fz_proc_link(path, link, sizeof(link));
		pid = strncmp(link, "/proc/", 6) == 0 ? link + 6 : link;
	}
	if (atoi(pid) <= 0 || atoi(pid) != atoi(own))
		return 0;
	switch (flags) {
	case 0: return thread ? TO_THREAD : TO_PROCESS;
	case TO_GROUP: return getpgrp() == (pid_t)fz_sys_getpid() ? TO_GROUP : 0;
	default: return flags;
	}
}

static int send_by_kernel(int pidfd, int sig, siginfo_t *info, unsigned flags)
{
	return (int)fz_real.syscall(SYS_pidfd_send_signal, pidfd, sig, info, flags);
}

FZ_EXPORT int pidfd_send_signal(int pidfd, int sig, siginfo_t *from, unsigned flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pidfd_send_signal);
	const pid_t own = (pid_t)fz_sys_getpid();
	struct fz_sending sending;
	struct fz_siginfo info;
	long ret;

	if (!fz_kill_is_ours(self, sig) || (from && (!take_info(from, &info) ||
						     from->si_signo != sig)))
		return send_by_kernel(pidfd, sig, from, flags);
	/* Signal 0 only checks: the kernel refuses a descriptor that is no pidfd, and unknown flags. */
	if (send_by_kernel(pidfd, 0, NULL, flags) < 0)
		return -1;
	switch (own_scope(pidfd, flags)) {
	case TO_PROCESS:
		if (!from)
			info = fz_signal_info(sig, SI_USER, 0);
		if (from && is_forged(&info) && !self->thread.is_main)
			return (int)fz_leave(-EPERM);
		return (int)fz_leave(fz_kill_own_process(self, sig, &info));
	case TO_THREAD:
		if (from && is_forged(&info) && !self->thread.is_main)
			return (int)fz_leave(-EPERM);
		if (fz_kill_by_tid(own, own, sig, from ? &info : NULL, &ret))
			return (int)ret;
		break;
	case TO_GROUP:
		sending = fz_signal_sending(self, sig);
		ret = send_by_kernel(pidfd, sig, from, flags);
		if (ret == 0)
			fz_signal_sent(self, &sending);
		return (int)ret;
	default:
		break;
	}
	return send_by_kernel(pidfd, sig, from, flags);
}
