/* SPDX-License-Identifier: MIT */
#ifndef TESTS_WAITS_H
#define TESTS_WAITS_H

/*
 * tests/programs/waits.h - the less usual ways to wait for ever: many descriptors, FIFOs,
 * terminals, locks of other processes, message queues; all of them cancellation points
 * (pthreads(7)).
 *
 * set_up_waits(), then points[i].call() from any thread: it posts to `waiting`, waits, and returns
 * what the call did, with errno.  tear_down_waits() at the end.
 */
#include "check.h"

#include <aio.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>

enum { MANY = 100 };

static struct event waiting = EVENT_INIT;
static char directory[] = "/tmp/waits.XXXXXX", name[64], page[65536];
static int empty[2], full[2], loaded[2], copies[MANY], stream[2], fifo, stuffed, primary, terminal,
	queue, locked, release, high;
static mqd_t mq_empty, mq_full;
static struct sockaddr_un busy = { .sun_family = AF_UNIX };
static pid_t owner;
static int owner_fd;
static sem_t *shared_sem;
static pthread_t sleeper;
static cnd_t cnd;
static mtx_t mtx;

static struct iovec *some_page(void)
{
	static struct iovec iov = { page, sizeof(page) };

	return &iov;
}

/* ---- the points ------------------------------------------------------------ */

static long do_aio_suspend(void)
{
	static struct aiocb cbs[8];
	static int used;
	struct aiocb *cb = &cbs[used++ % 8];
	const struct aiocb *list[] = { cb };

	cb->aio_fildes = empty[0];
	cb->aio_buf = page;
	cb->aio_nbytes = 1;
	CHECK_OK(aio_read(cb));
	event_post(&waiting);
	return aio_suspend(list, 1, NULL);
}
static long do_aio_suspend_timed(void)
{
	static struct aiocb cb;
	const struct aiocb *list[] = { &cb };

	if (aio_error(&cb) != EINPROGRESS) {
		cb = (struct aiocb){ .aio_fildes = empty[0], .aio_buf = page, .aio_nbytes = 1 };
		CHECK_OK(aio_read(&cb));
	}
	return aio_suspend(list, 1, &(struct timespec){ 3600, 0 });
}
/* A clock for which there is no sleep but libc's. */
static long do_sleep_in_kernel(void)
{
	errno = clock_nanosleep(CLOCK_BOOTTIME, 0, &(struct timespec){ 3600, 0 }, NULL);
	return errno ? -1 : 0;
}
static long do_sleep_in_kernel_until(void)
{
	struct timespec late = in(CLOCK_BOOTTIME, 3600000 * MS);

	errno = clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &late, NULL);
	return errno ? -1 : 0;
}
static long do_cnd_wait(void)
{
	int ret;

	mtx_lock(&mtx);
	pthread_cleanup_push((void (*)(void *))mtx_unlock, &mtx);
	ret = cnd_wait(&cnd, &mtx);
	pthread_cleanup_pop(1);
	return ret;
}
static long do_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&busy, sizeof(busy));
}
static long do_epoll_many(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	for (int i = 0; i < MANY; i++)
		CHECK_OK(epoll_ctl(fd, EPOLL_CTL_ADD, copies[i], &e));
	return epoll_wait(fd, &e, 1, -1);
}
static long do_fcntl(void)
{
	return fcntl(locked, F_SETLKW, &(struct flock){ .l_type = F_WRLCK });
}
static long do_fcntl_ofd(void)
{
	return fcntl(locked, F_OFD_SETLKW, &(struct flock){ .l_type = F_WRLCK });
}
static long do_lockf(void) { return lockf(locked, F_LOCK, 1); }
static long do_mq_receive(void) { return mq_receive(mq_empty, page, sizeof(page), NULL); }
static long do_mq_timedreceive(void)
{
	struct timespec late = in(CLOCK_REALTIME, 3600000 * MS);

	return mq_timedreceive(mq_empty, page, sizeof(page), NULL, &late);
}
static long do_mq_send(void) { return mq_send(mq_full, page, 1, 0); }
static long do_msgsnd(void)
{
	struct { long type; char text[8192]; } m = { .type = 1 };

	int ret;

	do
		ret = msgsnd(queue, &m, sizeof(m.text), 0);
	while (!ret);
	return ret;
}
static long do_msgrcv(void)
{
	struct { long type; char text[8]; } m;

	/* No message has this type. */
	return msgrcv(queue, &m, sizeof(m.text), 77, 0);
}
static long do_open_fifo(void) { return open(name, O_RDONLY); }
static long do_poll_fifo(void) { return poll(&(struct pollfd){ fifo, POLLIN, 0 }, 1, -1); }
static long do_poll_many(void)
{
	struct pollfd fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = (struct pollfd){ copies[i], POLLIN, 0 };
	return poll(fds, MANY, -1);
}
static long do_poll_terminal(void) { return poll(&(struct pollfd){ terminal, POLLIN, 0 }, 1, -1); }
static long do_preadv2(void) { return preadv2(empty[0], some_page(), 1, -1, 0); }
static long do_preadv2_hipri(void) { return preadv2(empty[0], some_page(), 1, -1, RWF_HIPRI); }
static long do_pwritev2(void) { return pwritev2(full[1], some_page(), 1, -1, 0); }
static long do_read_fifo(void) { return read(fifo, page, 1); }
static long do_read_terminal(void) { return read(terminal, page, 1); }
static long do_recv_all(void) { return recv(stream[0], page, sizeof(page), MSG_WAITALL); }
static long do_recvmmsg(void)
{
	struct mmsghdr m = { .msg_hdr = { .msg_iov = some_page(), .msg_iovlen = 1 } };

	return recvmmsg(stream[0], &m, 1, 0, NULL);
}
static long do_recvmsg_all(void)
{
	struct msghdr m = { .msg_iov = some_page(), .msg_iovlen = 1 };

	return recvmsg(stream[0], &m, MSG_WAITALL);
}
static long do_select_high(void)
{
	/* More than an fd_set has room for. */
	static unsigned long set[8192 / 8 / sizeof(long)];

	memset(set, 0, sizeof(set));
	set[high / (8 * (int)sizeof(long))] = 1UL << high % (8 * (int)sizeof(long));
	return select(high + 1, (fd_set *)(void *)set, NULL, NULL, NULL);
}
static long do_select_many(void)
{
	fd_set set;

	FD_ZERO(&set);
	for (int i = 0; i < MANY; i++)
		FD_SET(copies[i], &set);
	return select(copies[MANY - 1] + 1, &set, NULL, NULL, NULL);
}
static long do_shared_clockwait(void)
{
	struct timespec late = in(CLOCK_MONOTONIC, 3600000 * MS);

	return sem_clockwait(shared_sem, CLOCK_MONOTONIC, &late);
}
static long do_shared_timedwait(void)
{
	struct timespec late = in(CLOCK_REALTIME, 3600000 * MS);

	return sem_timedwait(shared_sem, &late);
}
static long do_shared_wait(void) { return sem_wait(shared_sem); }
static long do_splice(void) { return splice(empty[0], NULL, full[1], NULL, 1, 0); }
static long do_splice_full(void) { return splice(loaded[0], NULL, full[1], NULL, 1, 0); }
static long do_system(void) { return system("exec sleep 3600"); }
static long do_tee(void) { return tee(empty[0], full[1], 1, 0); }
static long do_timedjoin(void)
{
	struct timespec late = in(CLOCK_REALTIME, 3600000 * MS);

	return pthread_timedjoin_np(sleeper, NULL, &late);
}
static long do_thrd_join(void) { return thrd_join(sleeper, NULL); }
static long do_thrd_sleep(void) { return thrd_sleep(&(struct timespec){ 3600, 0 }, NULL); }
static long do_vmsplice(void) { return vmsplice(full[1], some_page(), 1, 0); }
static long do_wait(void) { return wait(NULL); }
static long do_wait3(void) { return wait3(NULL, 0, NULL); }
static long do_waitid_pidfd(void)
{
	siginfo_t info;

	return waitid(P_PIDFD, (id_t)owner_fd, &info, WEXITED);
}
static long do_write_fifo(void) { return write(stuffed, page, 1); }
static long do_write_fifo_much(void) { return write(stuffed, page, sizeof(page)); }
static long do_write_terminal(void) { return write(terminal, page, 1); }

/* What a handler does to a call. */
enum interruption { GOES_ON, RESTARTS /* with SA_RESTART */, ENDS };

static const struct point {
	const char *name;
	long (*call)(void);
	enum interruption interrupted;
} points[] = {
	{ "aio_suspend", do_aio_suspend, RESTARTS },
	{ "aio_suspend, timed", do_aio_suspend_timed, ENDS },
	{ "clock_nanosleep", do_sleep_in_kernel, ENDS },
	{ "clock_nanosleep, until", do_sleep_in_kernel_until, ENDS },
	{ "cnd_wait", do_cnd_wait, GOES_ON },
	{ "connect", do_connect, RESTARTS },
	{ "epoll_wait, many", do_epoll_many, ENDS },
	{ "fcntl", do_fcntl, RESTARTS },
	{ "fcntl, OFD", do_fcntl_ofd, RESTARTS },
	{ "lockf", do_lockf, RESTARTS },
	{ "mq_receive", do_mq_receive, RESTARTS },
	{ "mq_send", do_mq_send, RESTARTS },
	{ "mq_timedreceive", do_mq_timedreceive, RESTARTS },
	{ "msgrcv", do_msgrcv, ENDS },
	{ "msgsnd", do_msgsnd, ENDS },
	{ "open, FIFO", do_open_fifo, RESTARTS },
	{ "poll, FIFO", do_poll_fifo, ENDS },
	{ "poll, many", do_poll_many, ENDS },
	{ "poll, terminal", do_poll_terminal, ENDS },
	{ "preadv2", do_preadv2, RESTARTS },
	{ "preadv2, RWF_HIPRI", do_preadv2_hipri, RESTARTS },
	{ "pthread_timedjoin_np", do_timedjoin, GOES_ON },
	{ "pwritev2", do_pwritev2, RESTARTS },
	{ "read, FIFO", do_read_fifo, RESTARTS },
	{ "read, terminal", do_read_terminal, RESTARTS },
	{ "recv, all", do_recv_all, RESTARTS },
	{ "recvmmsg", do_recvmmsg, RESTARTS },
	{ "recvmsg, all", do_recvmsg_all, RESTARTS },
	{ "select, high", do_select_high, ENDS },
	{ "select, many", do_select_many, ENDS },
	{ "sem_clockwait, shared", do_shared_clockwait, ENDS },
	{ "sem_timedwait, shared", do_shared_timedwait, ENDS },
	{ "sem_wait, shared", do_shared_wait, RESTARTS },
	{ "splice", do_splice, RESTARTS },
	{ "splice, full", do_splice_full, RESTARTS },
	{ "system", do_system, GOES_ON },
	{ "tee", do_tee, RESTARTS },
	{ "thrd_join", do_thrd_join, GOES_ON },
	{ "thrd_sleep", do_thrd_sleep, ENDS },
	{ "vmsplice", do_vmsplice, RESTARTS },
	{ "wait", do_wait, RESTARTS },
	{ "wait3", do_wait3, RESTARTS },
	{ "waitid, pidfd", do_waitid_pidfd, RESTARTS },
	{ "write, FIFO", do_write_fifo, RESTARTS },
	{ "write, FIFO, much", do_write_fifo_much, RESTARTS },
	{ "write, terminal", do_write_terminal, RESTARTS },
};

/* ---- what they wait for ---------------------------------------------------- */

static void *sleeps(void *arg)
{
	pause();
	return arg;
}

static void stuff(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	CHECK_OK(fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	while (write(fd, page, sizeof(page)) > 0)
		continue;
	while (write(fd, page, 1) > 0)
		continue;
	CHECK_OK(fcntl(fd, F_SETFL, flags));
}

static mqd_t message_queue(const char *suffix)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char path[64];
	mqd_t mq;

	snprintf(path, sizeof(path), "/waits.%d.%s", (int)getpid(), suffix);
	mq = mq_open(path, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	CHECK(mq != (mqd_t)-1);
	CHECK_OK(mq_unlink(path));
	return mq;
}

/* A listener whose queue is full. */
static int busy_listener(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), c;

	snprintf(busy.sun_path, sizeof(busy.sun_path), "%s/socket", directory);
	CHECK_OK(bind(fd, (struct sockaddr *)&busy, sizeof(busy)));
	CHECK_OK(listen(fd, 0));
	do
		c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	while (!connect(c, (struct sockaddr *)&busy, sizeof(busy)));
	CHECK_OK(close(c));
	return fd;
}

/* A file that a process of its own has locked, in both ways. */
static void lock_file(void)
{
	char path[8];
	int said[2], life[2];

	locked = temp_file();
	CHECK_OK(pipe(said));
	CHECK_OK(pipe2(life, O_CLOEXEC));
	owner = fork();
	if (!owner) {
		struct flock all = { .l_type = F_WRLCK };

		if (fcntl(locked, F_SETLK, &all) || write(said[1], "x", 1) != 1)
			_exit(1);
		/* Until the other end is closed. */
		CHECK_OK(close(life[1]));
		_exit((int)read(life[0], path, 1));
	}
	owner_fd = (int)syscall(SYS_pidfd_open, owner, 0);
	CHECK(owner_fd >= 0);
	release = life[1];
	CHECK_INT(read(said[0], path, 1), 1);
	CHECK_OK(close(life[0]));
	CHECK_OK(close(said[0]));
	CHECK_OK(close(said[1]));
}

static int open_terminal(void)
{
	struct termios t;
	int fd;

	primary = posix_openpt(O_RDWR | O_NOCTTY);
	CHECK_OK(grantpt(primary));
	CHECK_OK(unlockpt(primary));
	fd = open(ptsname(primary), O_RDWR | O_NOCTTY);
	CHECK(fd >= 0);
	CHECK_OK(tcgetattr(fd, &t));
	cfmakeraw(&t);
	CHECK_OK(tcsetattr(fd, TCSANOW, &t));
	CHECK_OK(tcflow(fd, TCOOFF));
	return fd;
}

static void set_up_waits(void)
{
	CHECK(mkdtemp(directory) != NULL);
	snprintf(name, sizeof(name), "%s/fifo", directory);
	CHECK_OK(mkfifo(name, 0600));
	fifo = open(name, O_RDWR);
	CHECK_OK(unlink(name));
	CHECK_OK(mkfifo(name, 0600));
	stuffed = open(name, O_RDWR);
	stuff(stuffed);
	CHECK_OK(unlink(name));
	CHECK_OK(mkfifo(name, 0600));
	CHECK_OK(pipe(empty));
	CHECK_OK(pipe(full));
	stuff(full[1]);
	CHECK_OK(pipe(loaded));
	stuff(loaded[1]);
	for (int i = 0; i < MANY; i++)
		copies[i] = dup(empty[0]);
	high = fcntl(empty[0], F_DUPFD, 4000);
	CHECK(high >= 4000);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	mq_empty = message_queue("empty");
	mq_full = message_queue("full");
	CHECK_OK(mq_send(mq_full, page, 1, 0));
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(queue >= 0);
	terminal = open_terminal();
	busy_listener();
	lock_file();
	shared_sem = mmap(NULL, sizeof(*shared_sem), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared_sem != MAP_FAILED);
	CHECK_OK(sem_init(shared_sem, 1, 0));
	CHECK_INT(mtx_init(&mtx, mtx_plain), thrd_success);
	CHECK_INT(cnd_init(&cnd), thrd_success);
	sleeper = start(sleeps, NULL);
}

static void tear_down_waits(void)
{
	CHECK_OK(pthread_cancel(sleeper));
	CHECK(finish(sleeper) == PTHREAD_CANCELED);
	CHECK_OK(close(release));
	CHECK_INT(waitpid(owner, NULL, 0), owner);
	CHECK_OK(msgctl(queue, IPC_RMID, NULL));
	CHECK_OK(unlink(name));
	CHECK_OK(unlink(busy.sun_path));
	CHECK_OK(rmdir(directory));
}

#endif
