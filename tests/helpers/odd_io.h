/* SPDX-License-Identifier: MIT */
#ifndef ODD_IO_H
#define ODD_IO_H

/*
 * tests/helpers/odd_io.h - the part of odd_rungs.c about descriptors.  To be included by it alone.
 *
 * A thread makes a call that waits; when it sleeps, the main thread does what the call waits for.
 */

#include "rungs.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

static const struct linger at_once = { .l_onoff = 1 };
static char bytes[64];

/* What the next thread of begin_asleep() does, which has taken this when it posts will_sleep. */
static struct {
	void *(*fn)(void *);
	void *arg;
} next;

static void *tell_and_do(void *arg)
{
	void *(*const fn)(void *) = next.fn;

	arg = next.arg;
	event_post(&will_sleep);
	return fn(arg);
}

/* A new thread may sleep before it begins, and is then not in the call yet. */
static pthread_t begin_asleep(void *(*fn)(void *), void *arg)
{
	const int before = will_sleep.count;
	pthread_t t;

	next.fn = fn;
	next.arg = arg;
	t = begin(tell_and_do, NULL);
	event_wait(&will_sleep, before + 1);
	await_others();
	return t;
}

/* ---- what a receiver gets in parts ------------------------------------------- */

static void connect_pair(int pair[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_OK(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(listen(listener, 1));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &size));
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(connect(pair[0], (struct sockaddr *)&address, sizeof(address)));
	pair[1] = accept(listener, NULL, NULL);
	CHECK(pair[1] >= 0);
	CHECK_OK(close(listener));
}

static void *receive_whole(void *arg)
{
	return (void *)recv(*(int *)arg, bytes, 8, MSG_WAITALL);
}

static void *receive_named(void *arg)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);

	return (void *)recvfrom(*(int *)arg, bytes, 8, MSG_WAITALL, (struct sockaddr *)&from, &size);
}

static void *receive_message(void *arg)
{
	char control[64];
	struct msghdr message = { .msg_iov = &(struct iovec){ bytes, 8 }, .msg_iovlen = 1,
				  .msg_control = control, .msg_controllen = sizeof(control) };

	return (void *)recvmsg(*(int *)arg, &message, MSG_WAITALL);
}

static void *receive_much(void *arg)
{
	return (void *)recv(*(int *)arg, bytes, sizeof(bytes), 0);
}

static void *receive_messages(void *arg)
{
	struct iovec parts[2] = { { bytes, 1 }, { bytes + 1, 1 } };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &parts[0], .msg_iovlen = 1 } },
				       { .msg_hdr = { .msg_iov = &parts[1], .msg_iovlen = 1 } } };

	return (void *)(intptr_t)recvmmsg(*(int *)arg, messages, 2, 0, NULL);
}

static void messages(void)
{
	int local[2];
	pthread_t t;

	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, local));
	t = begin_asleep(receive_messages, &local[0]);
	CHECK_INT(write(local[1], "a", 1), 1);
	await_others();
	CHECK_INT(write(local[1], "b", 1), 1);
	CHECK_INT((intptr_t)finish(t), 2);
	CHECK_OK(close(local[0]) || close(local[1]));
}

static void in_parts(void *(*receive)(void *), const int pair[2])
{
	int fd = pair[0];
	pthread_t t = begin_asleep(receive, &fd);

	CHECK_INT(write(pair[1], "abcd", 4), 4);
	await_others();
	CHECK_INT(write(pair[1], "ef", 2), 2);
	await_others();
	CHECK_INT(write(pair[1], "gh", 2), 2);
	CHECK_INT((intptr_t)finish(t), 8);
	CHECK_OK(memcmp(bytes, "abcdefgh", 8));
}

static void streams(void)
{
	const int mark = 8;
	int pair[2], local[2], unseen;
	pthread_t t;

	connect_pair(pair);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	in_parts(receive_whole, pair);
	in_parts(receive_whole, local);
	in_parts(receive_named, local);
	in_parts(receive_message, local);
	/* The library has not seen this number. */
	CHECK_OK(setsockopt(local[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	unseen = (int)transfer_raw(SYS_dup, local[0], NULL, 0);
	in_parts(receive_much, (int[]){ unseen, local[1] });
	/* The connection is reset after two parts. */
	t = begin_asleep(receive_whole, &pair[0]);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(write(pair[1], "ab", 2), 2);
		await_others();
	}
	CHECK_OK(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	CHECK_OK(close(pair[1]));
	CHECK_INT((intptr_t)finish(t), 4);
	CHECK_OK(close(pair[0]) || close(unseen) || close(local[0]) || close(local[1]));
	messages();
	puts("streams");
}

/* ---- peers that are not there -------------------------------------------------- */

static void *send_one(void *arg)
{
	CHECK_INT(send(*(int *)arg, "x", 1, MSG_NOSIGNAL), -1);
	CHECK(errno == EPIPE || errno == ECONNRESET);
	return arg;
}

static void *be_refused(void *arg)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int nobody = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_OK(bind(nobody, (struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(getsockname(nobody, (struct sockaddr *)&address, &size));
	CHECK_ERR(connect(fd, (struct sockaddr *)&address, sizeof(address)), ECONNREFUSED);
	CHECK_OK(close(nobody) || close(fd));
	return arg;
}

static void absent(void)
{
	static const char much[4096];
	int local[2];
	pthread_t t;

	finish(begin(be_refused, NULL));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	while (send(local[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		continue;
	CHECK_INT(errno, EAGAIN);
	t = begin_asleep(send_one, &local[0]);
	CHECK_OK(close(local[1]));
	finish(t);
	CHECK_OK(close(local[0]));
	puts("absent");
}

/* ---- FIFOs, devices, files ------------------------------------------------------ */

static void *read_fifo(void *arg)
{
	char c;
	int fd = open(arg, O_RDONLY);

	CHECK(fd >= 0);
	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_OK(close(fd));
	return arg;
}

static void *use_device(void *arg)
{
	char text[8];
	int fd = open("/dev/zero", O_RDWR);

	CHECK(fd >= 0);
	CHECK_INT(read(fd, text, sizeof(text)), sizeof(text));
	CHECK_INT(write(fd, text, sizeof(text)), sizeof(text));
	CHECK_OK(close(fd));
	return arg;
}

static void fifos(void)
{
	char name[32];
	pthread_t t;
	int fd;

	snprintf(name, sizeof(name), "odd.%d", (int)getpid());
	CHECK_OK(mkfifo(name, 0600));
	t = begin(read_fifo, name);
	fd = open(name, O_WRONLY);
	CHECK(fd >= 0);
	await_others();
	CHECK_INT(write(fd, "x", 1), 1);
	finish(t);
	CHECK_OK(close(fd) || unlink(name));
	finish(begin(use_device, NULL));
	puts("fifos");
}

/* In a process of its own. */
static void *write_at_limit(void *arg)
{
	const struct rlimit limit = { 5, RLIM_INFINITY };
	int fd = temp_file();

	signal(SIGXFSZ, SIG_IGN);
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
	CHECK_INT(write(fd, "0123456789", 10), 5);
	return arg;
}

/* ---- select ---------------------------------------------------------------------- */

static void *select_both(void *arg)
{
	fd_set set;

	(void)arg;
	FD_ZERO(&set);
	FD_SET(first[0], &set);
	FD_SET(second[0], &set);
	return (void *)(intptr_t)select(FD_SETSIZE, &set, NULL, NULL, NULL);
}

/* Beyond FD_SETSIZE, with a descriptor there that the library has not seen. */
static void *select_far(void *arg)
{
	enum { FAR = 1500, END = 2048 };
	unsigned long set[END / 8 / sizeof(long)] = { 0 };
	struct timeval none = { 0 };
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_cur <= FAR && limit.rlim_max > END) {
		limit.rlim_cur = END;
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	}
	transfer_raw(SYS_dup3, second[0], (void *)FAR, 0);
	CHECK_OK(select(END, (fd_set *)set, NULL, NULL, &none));
	transfer_raw(SYS_close, FAR, NULL, 0);
	return arg;
}

static void selects(void)
{
	pthread_t t = begin_asleep(select_both, NULL);
	char c;

	CHECK_OK(close(first[0]));
	CHECK_INT(write(second[1], "x", 1), 1);
	CHECK((intptr_t)finish(t) > 0);
	CHECK_INT(read(second[0], &c, 1), 1);
	CHECK_OK(close(first[1]) || pipe(first));
	finish(begin(select_far, NULL));
	puts("selects");
}

/* ---- inside the kernel ------------------------------------------------------------- */

static void *splice_five(void *arg)
{
	(void)arg;
	return (void *)splice(first[0], NULL, second[1], NULL, 5, 0);
}

static void *tee_five(void *arg)
{
	(void)arg;
	return (void *)tee(first[0], second[1], 5, 0);
}

static void *map_one(void *arg)
{
	(void)arg;
	return (void *)vmsplice(first[1], &(struct iovec){ "x", 1 }, 1, 0);
}

static void *to_socket(void *arg)
{
	int local[2], fd = temp_file();
	off_t at = 0;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	write_all(fd, "0123456789", 10);
	CHECK_INT(write(first[1], "hello", 5), 5);
	CHECK_INT(splice(first[0], NULL, local[0], NULL, 100, 0), 5);
	CHECK_INT(sendfile(local[0], fd, &at, 10), 10);
	CHECK_INT(read_all(local[1], bytes, 15), 15);
	CHECK_OK(memcmp(bytes, "hello0123456789", 15));
	CHECK_OK(close(fd) || close(local[0]) || close(local[1]));
	return arg;
}

static void splices(void)
{
	char page[65536];
	pthread_t t = begin_asleep(splice_five, NULL);
	ssize_t size;

	CHECK_INT(write(first[1], "hello", 5), 5);
	CHECK_INT((intptr_t)finish(t), 5);
	t = begin_asleep(tee_five, NULL);
	CHECK_INT(write(first[1], "hello", 5), 5);
	CHECK_INT((intptr_t)finish(t), 5);
	CHECK_INT(read_all(second[0], page, 10), 10);
	CHECK_INT(read_all(first[0], page, 5), 5);
	finish(begin(to_socket, NULL));
	size = fcntl(first[1], F_SETPIPE_SZ, 4096);
	CHECK(size > 0 && size <= (ssize_t)sizeof(page));
	write_all(first[1], page, (size_t)size);
	t = begin_asleep(map_one, NULL);
	CHECK_INT(read_all(first[0], page, (size_t)size), size);
	CHECK_INT((intptr_t)finish(t), 1);
	CHECK_INT(read(first[0], page, 1), 1);
	puts("splices");
}

/* ---- numbers ------------------------------------------------------------------------ */

/* The library moves what it has at these numbers. */
static void *take_numbers(void *arg)
{
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	for (int fd = 900; fd < 4096 && fd < (int)limit.rlim_cur; fd++) {
		if (fd == 1200)
			fd = 3000;
		/* EBUSY: as where another thread opens it. */
		CHECK(dup2(second[0], fd) == fd || errno == EBUSY);
		close(fd);
	}
	return arg;
}

#endif
