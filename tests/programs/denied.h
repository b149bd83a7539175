/* SPDX-License-Identifier: MIT */
#ifndef DENIED_H
#define DENIED_H

/*
 * tests/programs/denied.h - for denied_*.c: a filter that denies one system call, descriptors, and threads that do what
 * calls on these wait for.  To be included after check.h.
 */

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LARGE = 300000 };

static int pipes[2], nonblocking[2], fifo, streams[2], datagrams[2], timed[2], counter, listener,
	epoll, file;
static struct sockaddr_in address;
static char sent[LARGE], received[LARGE];

static long denied = -1;		/* its number; -1: none */
static int answered;

/* Is the number not the one that is denied?  One that this CPU does not have is -1. */
static int may(long number)
{
	return number != denied;
}

static void make_descriptors(void)
{
	struct timeval short_time = { .tv_usec = 1000 };
	char name[] = "/tmp/denied-XXXXXX";
	socklen_t size = sizeof(address);
	struct epoll_event event = { .events = EPOLLIN };

	CHECK_OK(pipe(pipes));
	CHECK_OK(pipe2(nonblocking, O_NONBLOCK));
	CHECK(mkdtemp(name));
	CHECK_OK(chdir(name));
	CHECK_OK(mkfifo("fifo", 0600));
	fifo = open("fifo", O_RDWR);
	CHECK(fifo >= 0);
	file = open("file", O_RDWR | O_CREAT, 0600);
	CHECK_INT(write(file, sent, 4096), 4096);
	CHECK_OK(unlink("fifo") || unlink("file") || chdir("/") || rmdir(name));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, streams));
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, timed));
	CHECK_OK(setsockopt(timed[0], SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof(short_time)));
	counter = eventfd(0, 0);
	CHECK(counter >= 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listener, (const struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(listen(listener, 8));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &size));
	epoll = epoll_create1(0);
	CHECK(epoll >= 0);
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event));
}

/* What a partner does while the caller waits. */
struct partner {
	void (*act)(void);
	pthread_t thread;
};

static void *partner_main(void *arg)
{
	const struct partner *p = arg;

	/* Long enough that the other mostly waits. */
	usleep(200);
	p->act();
	return NULL;
}

static struct partner meanwhile(void (*act)(void))
{
	return (struct partner){ .act = act };
}

UNUSED static void write_pipe(void)
{
	CHECK_INT(write(pipes[1], "p", 1), 1);
}

UNUSED static void drain_pipe(void)
{
	CHECK_INT(read_all(pipes[0], received, LARGE), LARGE);
}

UNUSED static void write_fifo(void)
{
	CHECK_INT(write(fifo, "f", 1), 1);
}

UNUSED static void write_counter(void)
{
	const uint64_t three = 3;

	CHECK_INT(write(counter, &three, sizeof(three)), sizeof(three));
}

UNUSED static void write_stream(void)
{
	CHECK_INT(write(streams[1], "s", 1), 1);
}

UNUSED static void write_stream_large(void)
{
	write_all(streams[1], sent, LARGE / 2);
	usleep(200);
	write_all(streams[1], sent + LARGE / 2, LARGE / 2);
}

/* While the other waits to receive, a third thread's call ends. */
UNUSED static void write_stream_slowly(void)
{
	write_all(streams[1], sent, LARGE / 3);
	usleep(500);
	write_pipe();
	usleep(500);
	write_all(streams[1], sent + LARGE / 3, LARGE - LARGE / 3);
}

UNUSED static void drain_stream(void)
{
	CHECK_INT(read_all(streams[1], received, LARGE), LARGE);
}

/* While the other waits to send, a third thread's call ends. */
UNUSED static void drain_stream_slowly(void)
{
	CHECK_INT(read_all(streams[1], received, LARGE / 3), LARGE / 3);
	usleep(500);
	write_pipe();
	usleep(500);
	CHECK_INT(read_all(streams[1], received + LARGE / 3, LARGE - LARGE / 3), LARGE - LARGE / 3);
}

UNUSED static void write_datagram(void)
{
	CHECK_INT(write(datagrams[1], "d", 1), 1);
}

UNUSED static void connect_to(void)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_OK(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(close(fd));
}

#define WHILE(act_, e)							\
	do {								\
		struct partner p_ = meanwhile(act_);			\
									\
		p_.thread = start(partner_main, &p_);			\
		e;							\
		finish(p_.thread);					\
	} while (0)

UNUSED static void *reads_pipe(void *arg)
{
	char c;

	CHECK_INT(read(pipes[0], &c, 1), 1);
	return arg;
}

/* ---- the filter ---------------------------------------------------------- */

static void deny(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)denied, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { COUNT(code), code };

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			 &filter));
}

/* What the program's threads call: before a filter comes in mid-run; and with it. */
static void (*calls_first)(void), (*calls)(void);

static void *calls_before(void *arg)
{
	calls_first();
	return arg;
}

static void *calls_after(void *arg)
{
	calls();
	return arg;
}

/* A thread that waits before the filter comes, and goes on with it. */
static void *wait_through(void *arg)
{
	char c;

	CHECK_INT(read(streams[0], &c, 1), 1);
	calls_after(NULL);
	return arg;
}

static void run_denied(long number, int error, int later)
{
	pid_t child = fork();
	/* It may read before or after the filter has come. */
	const int waits = later && number != SYS_read && number != SYS_write;
	pthread_t thread = 0;
	int status;

	if (!child) {
		if (later)
			finish(start(calls_before, NULL));
		if (waits) {
			thread = start(wait_through, NULL);
			settle();
		}
		denied = number;
		answered = error;
		deny(error);
		if (waits)
			write_stream();
		else
			thread = start(calls_after, NULL);
		finish(thread);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	if (status)
		fail(__FILE__, __LINE__, "call %ld denied by %d %s: status %#x\n", number, error,
		     later ? "in mid-run" : "from the start", status);
}

/* Without a filter, then with each one; argv: a number, an error, mid-run. */
static void run_all_denied(int argc, char **argv, void (*first)(void), void (*all)(void))
{
	static const long numbers[] = {
		SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev, SYS_preadv2,
		SYS_pwritev2, SYS_pread64, SYS_pwrite64, SYS_recvfrom, SYS_sendto, SYS_recvmsg,
		SYS_sendmsg, SYS_recvmmsg, SYS_sendmmsg, SYS_accept, SYS_accept4, SYS_getsockopt,
		SYS_fcntl, SYS_statx, SYS_vmsplice, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
		SYS_prlimit64, SYS_madvise,
		SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_waitid,
		SYS_kill, SYS_getuid, SYS_getpid, SYS_gettid, SYS_sigaltstack, SYS_nanosleep,
		SYS_sched_yield, SYS_getrusage, SYS_sched_setaffinity,
#ifdef SYS_epoll_wait
		SYS_poll, SYS_epoll_wait, SYS_select,
#endif
#ifdef SYS_epoll_pwait2
		SYS_epoll_pwait2,
#endif
	};
	/* These have tests of their own; here only in mid-run, and as a sandbox answers. */
	static const long of_waiting[] = {
		SYS_epoll_create1, SYS_epoll_ctl, SYS_eventfd2, SYS_io_uring_setup,
		SYS_io_uring_enter, SYS_io_uring_register,
	};
	static const int errors[] = { EPERM, EACCES, ENOSYS, EINVAL, EUCLEAN };

	for (size_t i = 0; i < LARGE; i++)
		sent[i] = (char)('a' + i % 26);
	calls_first = first;
	calls = all;
	make_descriptors();
	if (argc > 1) {
		run_denied(atol(argv[1]), argc > 2 ? atoi(argv[2]) : EPERM, argc > 3);
		return;
	}
	all();
	for (size_t i = 0; i < COUNT(numbers); i++) {
		run_denied(numbers[i], errors[i % COUNT(errors)], 0);
		run_denied(numbers[i], errors[(i + 1) % COUNT(errors)], 1);
	}
	for (size_t i = 0; i < COUNT(of_waiting); i++)
		run_denied(of_waiting[i], EPERM, 1);
}

#endif
