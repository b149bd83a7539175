/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_memory.c - calls with memory that cannot be read or written fail with
 * EFAULT where the kernel reads or writes it: masks, waits for signals, clocks, time limits.
 */
#include "check.h"

#include <sys/mman.h>
#include <sys/socket.h>

static sigset_t usr2;
static const struct timespec moment = { 0, 1000 };

static void check_unwritable(void *bad)
{
	uint64_t mask, before;

	CHECK_ERR(sigprocmask(SIG_BLOCK, NULL, (sigset_t *)bad), EFAULT);
	CHECK_INT(pthread_sigmask(SIG_BLOCK, NULL, (sigset_t *)bad), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, bad, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGUSR1, NULL, bad, 8), EFAULT);
	/* The mask is changed all the same. */
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, 8));
	mask = before | 1u << (SIGHUP - 1);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, bad, 8), EFAULT);
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &mask, 8));
	CHECK_INT(mask, before | 1u << (SIGHUP - 1));
	/* The signal is taken all the same. */
	CHECK_OK(raise(SIGUSR2));
	CHECK_ERR(sigtimedwait(&usr2, (siginfo_t *)bad, &moment), EFAULT);
	CHECK_ERR(sigtimedwait(&usr2, NULL, &moment), EAGAIN);
	CHECK_OK(raise(SIGUSR2));
	CHECK_ERR(sigwaitinfo(&usr2, (siginfo_t *)bad), EFAULT);
	CHECK_OK(raise(SIGUSR2));
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, &usr2, bad, &moment, 8), EFAULT);
	CHECK_ERR(sigtimedwait(&usr2, NULL, &moment), EAGAIN);
	CHECK_ERR(clock_gettime(CLOCK_THREAD_CPUTIME_ID, (struct timespec *)bad), EFAULT);
	CHECK_ERR(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, bad), EFAULT);
}

static void check_unreadable(void *bad)
{
	CHECK_ERR(sigsuspend((sigset_t *)bad), EFAULT);
	CHECK_ERR(sigtimedwait((sigset_t *)bad, NULL, &moment), EFAULT);
	CHECK_ERR(sigtimedwait(&usr2, NULL, (struct timespec *)bad), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, bad, NULL, &moment, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, &usr2, NULL, bad, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, bad, NULL, 8), EFAULT);
}

/* A limit that the kernel can read, but not write. */
static void check_limit(void *constant)
{
	char text[4];
	struct iovec vec = { text, sizeof(text) };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &vec, .msg_iovlen = 1 } };
	int pair[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	CHECK_INT(send(pair[1], "abc", 3, 0), 3);
	CHECK_ERR(recvmmsg(pair[0], &message, 1, 0, (struct timespec *)constant), EFAULT);
	CHECK_OK(close(pair[0]));
	CHECK_OK(close(pair[1]));
}

static void *check(void *arg)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = (char *)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* A mask of two words; the kernel writes one. */
	uint64_t words[2] = { 0, 12345 };

	CHECK(p != MAP_FAILED);
	*(struct timespec *)(void *)(p + page) = (struct timespec){ 1, 0 };
	CHECK_OK(mprotect(p + page, page, PROT_READ));
	CHECK_OK(mprotect(p + 2 * page, page, PROT_NONE));
	check_unwritable(p + page);
	check_unwritable(p + page - 4);
	check_unwritable(p + 2 * page);
	check_unreadable(p + 2 * page);
	check_unreadable(p + 2 * page - 4);
	check_limit(p + page);
	CHECK_OK(sigprocmask(SIG_BLOCK, NULL, (sigset_t *)(void *)words));
	CHECK_INT(words[1], 12345);
	CHECK_OK(munmap(p, 3 * page));
	return arg;
}

/* A thread with state of its own in the kernel. */
static void *check_with_state(void *arg)
{
	use_inheriting_mutex();
	return check(arg);
}

int main(void)
{
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	CHECK_OK(sigprocmask(SIG_BLOCK, &usr2, NULL));
	finish(start(check, NULL));
	finish(start(check_with_state, NULL));
	finish(start_affine(check, NULL));
	check(NULL);
	return success();
}
