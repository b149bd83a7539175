/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/misc_calls.c - terminals, eventfd's functions, asynchronous I/O, random
 * bytes, and sockets that linger or are shut down under a reader.
 */
#include "sockets.h"

#include <poll.h>
#include <aio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <termios.h>

static void *volatile nowhere = (void *)16;
static volatile size_t too_many = 257;

static void *reads_terminal(void *arg)
{
	int master = (int)(intptr_t)arg;
	char buf[64];
	ssize_t n = 0;

	while (n < 6) {
		ssize_t r = read(master, buf + n, sizeof(buf) - (size_t)n);

		CHECK(r > 0);
		n += r;
	}
	CHECK_OK(memcmp(buf, "text\r\n", 6));
	return NULL;
}

static void *terminals(void *arg)
{
	struct termios t;
	struct winsize size = { .ws_row = 7, .ws_col = 9 };
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave, p[2];
	char buf[64];
	pthread_t reader;

	CHECK(master >= 0);
	CHECK_OK(grantpt(master));
	CHECK_OK(unlockpt(master));
	CHECK_OK(ptsname_r(master, buf, sizeof(buf)));
	slave = open(buf, O_RDWR | O_NOCTTY);
	CHECK(slave >= 0);
	CHECK_OK(tcgetattr(slave, &t));
	t.c_lflag &= ~(tcflag_t)ECHO;
	CHECK_KEEPS(tcsetattr(slave, TCSANOW, &t), 0);
	CHECK_KEEPS(tcsetattr(slave, TCSADRAIN, &t), 0);
	CHECK_KEEPS(tcsetattr(slave, TCSAFLUSH, &t), 0);
	CHECK_ERR(tcsetattr(slave, 77, &t), EINVAL);
	CHECK_ERR(tcsetattr(-1, TCSANOW, &t), EBADF);
	reader = start(reads_terminal, (void *)(intptr_t)master);
	CHECK_INT(write(slave, "text\n", 5), 5);
	CHECK_KEEPS(tcdrain(slave), 0);
	finish(reader);
	CHECK_KEEPS(tcflow(slave, TCOON), 0);
	CHECK_ERR(tcflow(slave, 77), EINVAL);
	CHECK_KEEPS(tcsendbreak(slave, 0), 0);
	CHECK_KEEPS(ioctl(slave, TIOCSWINSZ, &size), 0);
	memset(&size, 0, sizeof(size));
	CHECK_KEEPS(ioctl(slave, TIOCGWINSZ, &size), 0);
	CHECK_INT(size.ws_col, 9);
	CHECK_OK(pipe(p));
	CHECK_ERR(tcdrain(p[0]), ENOTTY);
	CHECK_ERR(tcdrain(-1), EBADF);
	CHECK_ERR(tcsendbreak(-1, 0), EBADF);
	CHECK_ERR(ioctl(p[0], TIOCGWINSZ, &size), ENOTTY);
	CHECK_ERR(ioctl(-1, FIONREAD, &size), EBADF);
	CHECK_ERR(ioctl(p[0], FIONREAD, nowhere), EFAULT);
	close(p[0]);
	close(p[1]);
	close(slave);
	close(master);
	return arg;
}

static void *posts(void *arg)
{
	settle();
	CHECK_KEEPS(eventfd_write((int)(intptr_t)arg, 3), 0);
	return NULL;
}

static void *eventfds(void *arg)
{
	int fd = eventfd(0, 0), other = eventfd(0, EFD_NONBLOCK);
	eventfd_t value = 0;
	pthread_t t = start(posts, (void *)(intptr_t)fd);

	CHECK_KEEPS(eventfd_read(fd, &value), 0);
	CHECK_INT(value, 3);
	finish(t);
	CHECK_ERR(eventfd_read(other, &value), EAGAIN);
	CHECK_ERR(eventfd_read(-1, &value), EBADF);
	CHECK_ERR(eventfd_write(-1, 1), EBADF);
	CHECK_ERR(eventfd_write(other, UINT64_MAX), EINVAL);
	CHECK_KEEPS(eventfd_write(other, UINT64_MAX - 1), 0);
	CHECK_ERR(eventfd_write(other, 1), EAGAIN);
	close(fd);
	close(other);
	return arg;
}

static void *asynchronous(void *arg)
{
	char buf[64] = "", text[] = "asynchronous";
	struct aiocb one = { .aio_buf = text, .aio_nbytes = 12 },
		     two = { .aio_buf = buf, .aio_nbytes = 1 },
		     three = { .aio_buf = buf, .aio_nbytes = 1 };
	const struct aiocb *const both[] = { NULL, &two };
	struct aiocb *const list[] = { &one }, *const some[] = { &two, &three };
	struct timespec ts = { 0, 5 * MS };
	int fd = temp_file(), p[2];
	pthread_t t;

	CHECK_OK(pipe(p));
	one.aio_fildes = fd;
	one.aio_lio_opcode = LIO_WRITE;
	two.aio_fildes = p[0];
	one.aio_sigevent.sigev_notify = two.aio_sigevent.sigev_notify = SIGEV_NONE;
	CHECK_OK(lio_listio(LIO_WAIT, list, 1, NULL));
	CHECK_INT(aio_error(&one), 0);
	CHECK_INT(aio_return(&one), 12);
	CHECK_ERR(lio_listio(77, list, 1, NULL), EINVAL);
	/* One request is refused; the call waits for the other all the same. */
	three.aio_fildes = p[0];
	three.aio_lio_opcode = two.aio_lio_opcode = LIO_READ;
	three.aio_reqprio = -1;
	t = start(posts, (void *)(intptr_t)p[1]);
	CHECK_ERR(lio_listio(LIO_WAIT, some, 2, NULL), EIO);
	CHECK_INT(aio_error(&two), 0);
	CHECK_INT(aio_return(&two), 1);
	finish(t);
	CHECK_INT(read(p[0], buf, 8), 7);
	CHECK_ERR(lio_listio(LIO_WAIT, some + 1, 1, NULL), EINVAL);
	/* The other fails, perhaps before the call looks at it. */
	two.aio_fildes = -1;
	for (int i = 0; i < 100; i++) {
		CHECK_ERR(lio_listio(LIO_WAIT, some, 2, NULL), EIO);
		CHECK_INT(aio_error(&two), EBADF);
		CHECK_INT(aio_return(&two), -1);
	}
	two.aio_fildes = p[0];
	CHECK_OK(aio_read(&two));
	CHECK_ERR(aio_suspend(both, 2, &ts), EAGAIN);
	CHECK_INT(aio_error(&two), EINPROGRESS);
	t = start(posts, (void *)(intptr_t)p[1]);
	CHECK_OK(aio_suspend(both, 2, NULL));
	finish(t);
	CHECK_INT(aio_error(&two), 0);
	CHECK_INT(aio_return(&two), 1);
	CHECK_INT(buf[0], 3);
	close(p[0]);
	close(p[1]);
	close(fd);
	return arg;
}

static void *random_bytes(void *arg)
{
	char a[64] = "", b[64] = "";

	CHECK_KEEPS(getrandom(a, sizeof(a), 0), sizeof(a));
	CHECK_KEEPS(getentropy(b, sizeof(b)), 0);
	CHECK(memcmp(a, b, sizeof(a)) != 0);
	CHECK_ERR(getrandom(nowhere, 1, 0), EFAULT);
	CHECK_ERR(getrandom(a, 1, 0x8000), EINVAL);
	CHECK_ERR(getentropy(a, too_many), EIO);
	/* Not a type of klogctl(). */
	CHECK_ERR(klogctl(77, a, 0), EINVAL);
	return arg;
}

static void *notifies(void *arg)
{
	char name[] = "/tmp/check-XXXXXX";
	_Alignas(struct inotify_event) char room[4096];
	int fd = inotify_init1(0), file = mkstemp(name);
	sigset_t set;
	struct signalfd_siginfo info;

	CHECK(fd >= 0 && file >= 0);
	CHECK(inotify_add_watch(fd, name, IN_DELETE_SELF) >= 0);
	CHECK_OK(unlink(name));
	close(file);
	CHECK(read(fd, room, sizeof(room)) >= (ssize_t)sizeof(struct inotify_event));
	CHECK(((struct inotify_event *)room)->mask & IN_DELETE_SELF);
	close(fd);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	CHECK(fd >= 0);
	CHECK_ERR(read(fd, &info, sizeof(info)), EAGAIN);
	close(fd);
	return arg;
}

static void *reads_one(void *arg)
{
	char c;

	CHECK_INT(recv((int)(intptr_t)arg, &c, 1, 0), 0);
	return NULL;
}

static void *drains_later(void *arg)
{
	static char sink[1 << 16];
	int fd = (int)(intptr_t)arg;

	settle();
	while (recv(fd, sink, sizeof(sink), 0) > 0)
		;
	return NULL;
}

static _Atomic int polls;

static void *polls_one(void *arg)
{
	struct pollfd p[2] = { { .fd = (int)(intptr_t)arg, .events = POLLIN }, { .events = POLLIN } };
	int pipes[2];

	CHECK_OK(pipe(pipes));
	p[1].fd = pipes[0];
	polls = 1;
	CHECK_INT(poll(p, 2, -1), 1);
	CHECK_OK(close(pipes[0]) | close(pipes[1]));
	return NULL;
}

static void *receives_end(void *arg)
{
	char c;

	polls++;
	/* Unless it comes too late. */
	if (recv((int)(intptr_t)arg, &c, 1, 0) != 0)
		CHECK_INT(errno, EBADF);
	return NULL;
}

static void *drains_in_time(void *arg)
{
	for (int i = 0; i < 20; i++)
		settle();
	return drains_later(arg);
}

/*
 * A socket that lingers is closed while threads wait for it.  The last wait that ends may last until the data are on
 * their way: a thread that reads them must run meanwhile.
 */
static void lingers_later(void *(*call)(void *), int calls)
{
	const struct linger linger = { 1, 10000 };
	static char big[1 << 16];
	pthread_t waits[4], reads;
	int p[2];

	tcp_pair(p);
	CHECK_OK(setsockopt(p[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(p[0], big, sizeof(big), MSG_DONTWAIT) > 0)
		;
	CHECK_INT(errno, EAGAIN);
	polls = 0;
	for (int i = 0; i < calls; i++)
		waits[i] = start(call, (void *)(intptr_t)p[0]);
	while (polls < calls)
		sched_yield();
	settle();
	reads = start(drains_in_time, (void *)(intptr_t)p[1]);
	CHECK_OK(close(p[0]));
	/* Not by data: a socket with data that nobody has read does not linger. */
	CHECK_OK(shutdown(p[1], SHUT_WR));
	for (int i = 0; i < calls; i++)
		finish(waits[i]);
	finish(reads);
	close(p[1]);
}

static void *sockets(void *arg)
{
	struct linger linger = { 1, 20 };
	static char big[1 << 16];
	int p[2];
	char c[4];
	pthread_t t;

	tcp_pair(p);
	/* A reader whose socket is shut down finds the end. */
	t = start(reads_one, (void *)(intptr_t)p[0]);
	settle();
	CHECK_OK(shutdown(p[0], SHUT_RD));
	finish(t);
	CHECK_ERR(shutdown(-1, SHUT_RD), EBADF);
	CHECK_ERR(shutdown(p[0], 77), EINVAL);
	/* Looked at, not taken; all or nothing; without waiting. */
	CHECK_ERR(recv(p[1], c, 4, MSG_DONTWAIT), EAGAIN);
	CHECK_ERR(recv(p[1], c, 4, MSG_ERRQUEUE), EAGAIN);
	CHECK_INT(send(p[0], "ab", 2, 0), 2);
	CHECK_INT(recv(p[1], c, 4, MSG_PEEK), 2);
	CHECK_INT(send(p[0], "cd", 2, 0), 2);
	CHECK_INT(recv(p[1], c, 4, MSG_WAITALL), 4);
	CHECK_OK(memcmp(c, "abcd", 4));
	/* close waits for what has not been delivered. */
	CHECK_OK(setsockopt(p[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(p[0], big, sizeof(big), MSG_DONTWAIT) > 0)
		;
	CHECK_INT(errno, EAGAIN);
	t = start(drains_later, (void *)(intptr_t)p[1]);
	CHECK_OK(close(p[0]));
	finish(t);
	close(p[1]);
	CHECK_ERR(close(p[1]), EBADF);
	lingers_later(polls_one, 1);
	lingers_later(receives_end, 3);
	return arg;
}

int main(void)
{
	void *(*const all[])(void *) = { terminals, eventfds, asynchronous, random_bytes,
					 notifies };
	pthread_t t[10];

	for (int i = 0; i < 10; i++)
		t[i] = start(all[i % 5], NULL);
	for (int i = 0; i < 10; i++)
		finish(t[i]);
	/* Closes the same number twice: alone. */
	finish(start(sockets, NULL));
	sockets(NULL);
	return success();
}
