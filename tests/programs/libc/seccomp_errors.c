/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/seccomp_errors.c - seccomp filters that come while threads wait: each answers
 * another error, or knows only the calls that this program makes.  All waiting goes on, and ends
 * by data, by timeout, and by cancellation.
 */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PAIRS = 4, ROUNDS = 50, IO_URING_SETUP = 425, IO_URING_ENTER = 426 };

static int pairs[PAIRS][2], idle[2];
static struct event ready = EVENT_INIT;

/* ---- filters ------------------------------------------------------------- */

/* What read, write, poll, sleep, and threads need natively. */
static const int own_calls[] = {
	SYS_read, SYS_write, SYS_close, SYS_shutdown, SYS_ppoll, SYS_futex, SYS_exit, SYS_exit_group,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_mmap, SYS_munmap, SYS_mprotect,
	SYS_madvise, SYS_brk, SYS_clock_gettime, SYS_clock_nanosleep, SYS_restart_syscall,
	SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_getpid,
	SYS_tgkill, SYS_fstat, SYS_newfstatat, SYS_recvfrom, SYS_sendto,
#ifdef SYS_arch_prctl
	/* Where no instruction loads the thread pointer. */
	SYS_arch_prctl,
#endif
	/* Cancellation loads a library. */
	SYS_openat, SYS_pread64, SYS_lseek,
#ifdef SYS_poll
	SYS_poll,
#endif
	/* The others only for some. */
	SYS_epoll_ctl, SYS_epoll_pwait,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
};
enum {
#ifdef SYS_epoll_wait
	EPOLL_CALLS = 3
#else
	EPOLL_CALLS = 2
#endif
};

/* Not by libc's syscall(). */
static long install_raw(struct sock_fprog *filter)
{
	const long operation = SECCOMP_SET_MODE_FILTER, flags = SECCOMP_FILTER_FLAG_TSYNC;
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall" : "=a"(r)
			 : "0"((long)SYS_seccomp), "D"(operation), "S"(flags), "d"(filter)
			 : "rcx", "r11", "memory");
	return r;
#else
	register long x8 __asm__("x8") = SYS_seccomp;
	register long x0 __asm__("x0") = operation;
	register long x1 __asm__("x1") = flags;
	register void *x2 __asm__("x2") = filter;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#endif
}

static void install(struct sock_filter *code, size_t n, int raw)
{
	struct sock_fprog filter = { (unsigned short)n, code };

	if (raw)
		CHECK_OK(install_raw(&filter));
	else
		CHECK_OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
				 &filter));
}

static void forbid_one(int number, int error, int raw)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(code, COUNT(code), raw);
}

static void allow_own(size_t n, int raw)
{
	struct sock_filter code[2 * COUNT(own_calls) + 2];
	size_t k = 0;

	code[k++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < n; i++) {
		code[k++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)own_calls[i], 0, 1);
		code[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	install(code, k, raw);
}

/* ---- threads that wait --------------------------------------------------- */

static void *echo(void *arg)
{
	const int fd = pairs[(intptr_t)arg][0];
	intptr_t rounds = 0;
	char c;

	event_post(&ready);
	while (read(fd, &c, 1) == 1) {
		CHECK_INT(write(fd, &c, 1), 1);
		rounds++;
	}
	return (void *)rounds;
}

/* With arg for ever, until there are data; without, for a while. */
static void *poll_idle(void *arg)
{
	struct pollfd p = { .fd = idle[0], .events = POLLIN };

	event_post(&ready);
	CHECK_INT(poll(&p, 1, arg ? -1 : 100), arg != NULL);
	CHECK_INT(poll(&p, 1, 20), arg != NULL);
	return arg;
}

static void *read_idle(void *arg)
{
	char c;

	event_post(&ready);
	CHECK_INT(recv(idle[0], &c, 1, MSG_PEEK), 1);
	return arg;
}

static void exchange(void)
{
	char c = 'e';

	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < PAIRS; i++)
			CHECK_INT(write(pairs[i][1], &c, 1), 1);
		for (int i = 0; i < PAIRS; i++)
			CHECK_INT(read(pairs[i][1], &c, 1), 1);
	}
}

/* An error, or one of these. */
enum { OWN_CALLS = -1, OWN_CALLS_WITHOUT_EPOLL = -2 };

static void child(int number, int what, int raw)
{
	/* By a filter that comes unseen and forbids all of io_uring, what waits cannot be stopped. */
	int *unstoppable = what < 0 && raw ? idle : NULL;
	pthread_t threads[PAIRS], poller, reader;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, idle));
	for (intptr_t i = 0; i < PAIRS; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]));
		threads[i] = start(echo, (void *)i);
	}
	poller = start(poll_idle, unstoppable);
	reader = start(read_idle, NULL);
	event_wait(&ready, PAIRS + 2);
	exchange();
	settle();
	if (what >= 0)
		forbid_one(number, what, raw);
	else
		allow_own(COUNT(own_calls) - (what == OWN_CALLS ? 0 : EPOLL_CALLS), raw);
	exchange();
	if (unstoppable)
		CHECK_INT(write(idle[1], "x", 1), 1);
	else
		CHECK_OK(pthread_cancel(reader));
	CHECK(finish(poller) == unstoppable);
	CHECK(finish(reader) == (unstoppable ? NULL : PTHREAD_CANCELED));
	for (int i = 0; i < PAIRS; i++) {
		CHECK_OK(shutdown(pairs[i][1], SHUT_WR));
		CHECK_INT((intptr_t)finish(threads[i]), 2 * ROUNDS);
	}
	_exit(0);
}

static void run(const char *name, int number, int what, int raw)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		child(number, what, raw);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	printf("%s%s: %s\n", name, raw ? ", unseen" : "", status ? "failed" : "goes on");
	fflush(stdout);
}

int main(void)
{
	static const int errors[] = {
		EPERM, EACCES, ENOSYS, ENOMEM, EBADF, EINVAL, EAGAIN, EBUSY, EINTR, ETIME, EFAULT, 0,
	};
	/* What waits for events, and what wakes those who wait. */
	static const int others[] = {
		IO_URING_SETUP, IO_URING_ENTER + 1, SYS_epoll_create1, SYS_eventfd2, SYS_epoll_pwait,
		441 /* epoll_pwait2 */, SYS_epoll_ctl, SYS_rseq, SYS_gettid, SYS_rt_tgsigqueueinfo, SYS_sched_yield, SYS_nanosleep, SYS_prlimit64,
		SYS_membarrier, SYS_set_robust_list, SYS_sigaltstack, SYS_fcntl, SYS_clone3,
	};
	char name[64];

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	for (size_t i = 0; i < COUNT(errors); i++) {
		snprintf(name, sizeof(name), "error %d", errors[i]);
		run(name, IO_URING_ENTER, errors[i], 1);
	}
	run("error", IO_URING_ENTER, EPERM, 0);
	for (size_t i = 0; i < COUNT(others); i++) {
		snprintf(name, sizeof(name), "without the call with place %zu", i);
		run(name, others[i], i % 2 ? EPERM : ENOSYS, (int)(i / 2 % 2));
	}
	for (int raw = 0; raw < 2; raw++) {
		run("own calls", 0, OWN_CALLS, raw);
		run("own calls without epoll", 0, OWN_CALLS_WITHOUT_EPOLL, raw);
	}
	return success();
}
