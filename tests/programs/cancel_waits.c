/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/cancel_waits.c - a thread is cancelled while it waits in one of the less usual
 * cancellation points of pthreads(7), or the usual with unusual arguments: many
 * descriptors, FIFOs, terminals, locks of other processes, message queues.
 */
#include "check.h"

#include <aio.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
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

static struct event ready = EVENT_INIT;
static char directory[] = "/tmp/cancel_waits.XXXXXX", name[64], page[65536];
static int empty[2], full[2], loaded[2], copies[MANY], stream[2], fifo, stuffed, primary, terminal, queue,
	locked, release;
static mqd_t mq_empty, mq_full;
static struct sockaddr_un busy = { .sun_family = AF_UNIX };
static pid_t owner;
static pthread_t sleeper;
static cnd_t cnd;
static mtx_t mtx;
static int cleaned;

static struct iovec *some_page(void)
{
	static struct iovec iov = { page, sizeof(page) };

	return &iov;
}

/* ---- the points ------------------------------------------------------------ */

static void do_aio_suspend(void)
{
	static struct aiocb cb;
	const struct aiocb *list[] = { &cb };

	cb.aio_fildes = empty[0];
	cb.aio_buf = page;
	cb.aio_nbytes = 1;
	CHECK_OK(aio_read(&cb));
	event_post(&ready);
	aio_suspend(list, 1, NULL);
}
static void do_cnd_wait(void)
{
	mtx_lock(&mtx);
	pthread_cleanup_push((void (*)(void *))mtx_unlock, &mtx);
	cnd_wait(&cnd, &mtx);
	pthread_cleanup_pop(1);
}
static void do_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	connect(fd, (struct sockaddr *)&busy, sizeof(busy));
}
static void do_epoll_many(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	for (int i = 0; i < MANY; i++)
		CHECK_OK(epoll_ctl(fd, EPOLL_CTL_ADD, copies[i], &e));
	epoll_wait(fd, &e, 1, -1);
}
static void do_fcntl(void)
{
	fcntl(locked, F_SETLKW, &(struct flock){ .l_type = F_WRLCK });
}
static void do_fcntl_ofd(void)
{
	fcntl(locked, F_OFD_SETLKW, &(struct flock){ .l_type = F_WRLCK });
}
static void do_lockf(void) { lockf(locked, F_LOCK, 1); }
static void do_mq_receive(void) { mq_receive(mq_empty, page, sizeof(page), NULL); }
static void do_mq_timedreceive(void)
{
	struct timespec late = in(CLOCK_REALTIME, 3600000 * MS);

	mq_timedreceive(mq_empty, page, sizeof(page), NULL, &late);
}
static void do_mq_send(void) { mq_send(mq_full, page, 1, 0); }
static void do_msgsnd(void)
{
	struct { long type; char text[8192]; } m = { .type = 1 };

	while (!msgsnd(queue, &m, sizeof(m.text), 0))
		continue;
}
static void do_open_fifo(void) { open(name, O_RDONLY); }
static void do_poll_fifo(void) { poll(&(struct pollfd){ fifo, POLLIN, 0 }, 1, -1); }
static void do_poll_many(void)
{
	struct pollfd fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = (struct pollfd){ copies[i], POLLIN, 0 };
	poll(fds, MANY, -1);
}
static void do_poll_terminal(void) { poll(&(struct pollfd){ terminal, POLLIN, 0 }, 1, -1); }
static void do_preadv2(void) { preadv2(empty[0], some_page(), 1, -1, 0); }
static void do_pwritev2(void) { pwritev2(full[1], some_page(), 1, -1, 0); }
static void do_read_fifo(void) { read(fifo, page, 1); }
static void do_read_terminal(void) { read(terminal, page, 1); }
static void do_recv_all(void) { recv(stream[0], page, sizeof(page), MSG_WAITALL); }
static void do_recvmmsg(void)
{
	struct mmsghdr m = { .msg_hdr = { .msg_iov = some_page(), .msg_iovlen = 1 } };

	recvmmsg(stream[0], &m, 1, 0, NULL);
}
static void do_recvmsg_all(void)
{
	struct msghdr m = { .msg_iov = some_page(), .msg_iovlen = 1 };

	recvmsg(stream[0], &m, MSG_WAITALL);
}
static void do_select_high(void)
{
	/* More than an fd_set has room for. */
	static unsigned long set[8192 / 8 / sizeof(long)];
	int high = fcntl(empty[0], F_DUPFD, 4000);

	set[high / (8 * (int)sizeof(long))] = 1UL << high % (8 * (int)sizeof(long));
	select(high + 1, (fd_set *)(void *)set, NULL, NULL, NULL);
}
static void do_select_many(void)
{
	fd_set set;

	FD_ZERO(&set);
	for (int i = 0; i < MANY; i++)
		FD_SET(copies[i], &set);
	select(copies[MANY - 1] + 1, &set, NULL, NULL, NULL);
}
static void do_splice(void) { splice(empty[0], NULL, full[1], NULL, 1, 0); }
static void do_splice_full(void) { splice(loaded[0], NULL, full[1], NULL, 1, 0); }
static void do_system(void) { system("exec sleep 3600"); }
static void do_tee(void) { tee(empty[0], full[1], 1, 0); }
static void do_timedjoin(void)
{
	struct timespec late = in(CLOCK_REALTIME, 3600000 * MS);

	pthread_timedjoin_np(sleeper, NULL, &late);
}
static void do_thrd_join(void) { thrd_join(sleeper, NULL); }
static void do_thrd_sleep(void) { thrd_sleep(&(struct timespec){ 3600, 0 }, NULL); }
static void do_vmsplice(void) { vmsplice(full[1], some_page(), 1, 0); }
static void do_wait(void) { wait(NULL); }
static void do_wait3(void) { wait3(NULL, 0, NULL); }
static void do_write_fifo(void) { write(stuffed, page, 1); }
static void do_write_fifo_much(void) { write(stuffed, page, sizeof(page)); }
static void do_write_terminal(void)
{
	for (;;)
		if (write(terminal, page, 1000) < 0)
			break;
}

static const struct point {
	const char *name;
	void (*call)(void);
} points[] = {
	{ "aio_suspend", do_aio_suspend }, { "cnd_wait", do_cnd_wait },
	{ "connect", do_connect }, { "epoll_wait, many", do_epoll_many },
	{ "fcntl", do_fcntl }, { "fcntl, OFD", do_fcntl_ofd }, { "lockf", do_lockf },
	{ "mq_receive", do_mq_receive }, { "mq_send", do_mq_send },
	{ "mq_timedreceive", do_mq_timedreceive }, { "msgsnd", do_msgsnd },
	{ "open, FIFO", do_open_fifo }, { "poll, FIFO", do_poll_fifo },
	{ "poll, many", do_poll_many }, { "poll, terminal", do_poll_terminal },
	{ "preadv2", do_preadv2 }, { "pthread_timedjoin_np", do_timedjoin },
	{ "pwritev2", do_pwritev2 }, { "read, FIFO", do_read_fifo },
	{ "read, terminal", do_read_terminal }, { "recv, all", do_recv_all },
	{ "recvmmsg", do_recvmmsg }, { "recvmsg, all", do_recvmsg_all },
	{ "select, high", do_select_high }, { "select, many", do_select_many },
	{ "splice", do_splice }, { "splice, full", do_splice_full }, { "system", do_system },
	{ "tee", do_tee }, { "thrd_join", do_thrd_join }, { "thrd_sleep", do_thrd_sleep },
	{ "vmsplice", do_vmsplice }, { "wait", do_wait }, { "wait3", do_wait3 },
	{ "write, FIFO", do_write_fifo }, { "write, FIFO, much", do_write_fifo_much },
	{ "write, terminal", do_write_terminal },
};

/* ---- being cancelled there ------------------------------------------------- */

static void cleanup(void *arg)
{
	cleaned++;
	(void)arg;
}

static void *waits_in(void *arg)
{
	const struct point *p = arg;

	pthread_cleanup_push(cleanup, NULL);
	event_post(&ready);
	p->call();
	printf("%s has not waited: %d\n", p->name, errno);
	pthread_cleanup_pop(1);
	return NULL;
}

static void cancel_in(const struct point *p)
{
	pthread_t t;

	cleaned = ready.count = 0;
	t = start(waits_in, (void *)p);
	event_wait(&ready, 1);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 1);
}

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

	snprintf(path, sizeof(path), "/cancel_waits.%d.%s", (int)getpid(), suffix);
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
	return fd;
}

static void set_up(void)
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
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	mq_empty = message_queue("empty");
	mq_full = message_queue("full");
	CHECK_OK(mq_send(mq_full, page, 1, 0));
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(queue >= 0);
	terminal = open_terminal();
	busy_listener();
	lock_file();
	CHECK_INT(mtx_init(&mtx, mtx_plain), thrd_success);
	CHECK_INT(cnd_init(&cnd), thrd_success);
	sleeper = start(sleeps, NULL);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	set_up();
	for (size_t i = 0; i < COUNT(points); i++) {
		cancel_in(&points[i]);
		printf("%s\n", points[i].name);
	}
	CHECK_OK(pthread_cancel(sleeper));
	CHECK(finish(sleeper) == PTHREAD_CANCELED);
	CHECK_OK(close(release));
	CHECK_INT(waitpid(owner, NULL, 0), owner);
	CHECK_OK(msgctl(queue, IPC_RMID, NULL));
	CHECK_OK(unlink(name));
	CHECK_OK(unlink(busy.sun_path));
	CHECK_OK(rmdir(directory));
	return success();
}
