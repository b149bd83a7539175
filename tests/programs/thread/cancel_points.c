/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_points.c - the cancellation points of pthreads(7): a request
 * that is pending when a thread comes to one, whatever its arguments are, and one that
 * comes while it waits there.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static struct event ready = EVENT_INIT, go = EVENT_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t none, some;
static int empty[2], full[2], stream[2], stuffed[2], listener, counter, epoll, queue, file;
static pid_t child;
static pthread_t sleeper;
static char page[4096];
static int cleaned;

static struct timespec *far(clockid_t clock)
{
	static __thread struct timespec ts;

	ts = in(clock, 3600000 * MS);
	return &ts;
}

/* ---- what waits for ever ------------------------------------------------ */

static struct iovec *whole_page(void)
{
	static struct iovec iov = { page, sizeof(page) };

	return &iov;
}

static struct msghdr *message(void)
{
	static struct msghdr msg;

	msg.msg_iov = whole_page();
	msg.msg_iovlen = 1;
	return &msg;
}

static sigset_t *no_signal(void)
{
	static sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return &set;
}

static void do_accept(void) { accept(listener, NULL, NULL); }
static void do_accept4(void) { accept4(listener, NULL, NULL, SOCK_CLOEXEC); }
static void do_clock_nanosleep(void)
{
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, far(CLOCK_MONOTONIC), NULL);
}
static void do_cond_timedwait(void)
{
	pthread_cond_timedwait(&cond, &lock, far(CLOCK_REALTIME));
}
static void do_cond_wait(void) { pthread_cond_wait(&cond, &lock); }
static void do_epoll_pwait(void)
{
	struct epoll_event e;

	epoll_pwait(epoll, &e, 1, -1, NULL);
}
static void do_epoll_wait(void)
{
	struct epoll_event e;

	epoll_wait(epoll, &e, 1, -1);
}
static void do_join(void) { pthread_join(sleeper, NULL); }
static void do_msgrcv(void)
{
	struct { long type; char c; } m;

	msgrcv(queue, &m, 1, 0, 0);
}
static void do_nanosleep(void) { nanosleep(&(struct timespec){ 3600, 0 }, NULL); }
static void do_pause(void) { pause(); }
static void do_poll(void) { poll(&(struct pollfd){ empty[0], POLLIN, 0 }, 1, -1); }
static void do_ppoll(void) { ppoll(&(struct pollfd){ empty[0], POLLIN, 0 }, 1, NULL, NULL); }
static void do_pselect(void) { pselect(0, NULL, NULL, NULL, NULL, NULL); }
static void do_read(void) { read(empty[0], page, 1); }
static void do_read_event(void) { read(counter, page, 8); }
static void do_read_socket(void) { read(stream[0], page, 1); }
static void do_readv(void) { readv(empty[0], whole_page(), 1); }
static void do_recv(void) { recv(stream[0], page, 1, 0); }
static void do_recvfrom(void)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	recvfrom(stream[0], page, 1, 0, (struct sockaddr *)&a, &n);
}
static void do_recvmsg(void) { recvmsg(stream[0], message(), 0); }
static void do_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(empty[0], &set);
	select(empty[0] + 1, &set, NULL, NULL, NULL);
}
static void do_sem_timedwait(void) { sem_timedwait(&none, far(CLOCK_REALTIME)); }
static void do_sem_wait(void) { sem_wait(&none); }
static void do_send(void) { send(stuffed[0], page, sizeof(page), 0); }
static void do_sendmsg(void) { sendmsg(stuffed[0], message(), 0); }
static void do_sendto(void) { sendto(stuffed[0], page, sizeof(page), 0, NULL, 0); }
static void do_sigsuspend(void)
{
	sigset_t all;

	sigfillset(&all);
	sigsuspend(&all);
}
static void do_sigtimedwait(void)
{
	sigtimedwait(no_signal(), NULL, &(struct timespec){ 3600, 0 });
}
static void do_sigwait(void)
{
	int sig;

	sigwait(no_signal(), &sig);
}
static void do_sigwaitinfo(void) { sigwaitinfo(no_signal(), NULL); }
static void do_sleep(void) { sleep(3600); }
static void do_usleep(void) { usleep(900000000); }
static void do_wait4(void) { wait4(child, NULL, 0, NULL); }
static void do_waitid(void)
{
	siginfo_t info;

	waitid(P_PID, (id_t)child, &info, WEXITED);
}
static void do_waitpid(void) { waitpid(child, NULL, 0); }
static void do_write(void) { write(full[1], page, sizeof(page)); }
static void do_write_socket(void) { write(stuffed[0], page, sizeof(page)); }
static void do_writev(void) { writev(full[1], whole_page(), 1); }

/* ---- what need not wait, or fails --------------------------------------- */

static void do_close(void) { close(-1); }
static void do_connect(void) { connect(-1, NULL, 0); }
static void do_creat(void) { creat("/nowhere/at/all", 0600); }
static void do_fcntl(void) { fcntl(file, F_SETLKW, &(struct flock){ .l_type = F_WRLCK }); }
static void do_fdatasync(void) { fdatasync(file); }
static void do_fsync(void) { fsync(file); }
static void do_lockf(void) { lockf(file, F_LOCK, 1); }
static void do_msync(void) { msync(NULL, 0, MS_SYNC); }
static void do_open(void) { open("/nowhere/at/all", O_RDONLY); }
static void do_openat(void) { openat(AT_FDCWD, "/nowhere/at/all", O_RDONLY); }
static void do_poll_now(void) { poll(NULL, 0, 0); }
static void do_pread(void) { pread(file, page, 1, 0); }
static void do_preadv(void) { preadv(file, whole_page(), 1, 0); }
static void do_pwrite(void) { pwrite(file, page, 1, 0); }
static void do_pwritev(void) { pwritev(file, whole_page(), 1, 0); }
static void do_read_bad(void) { read(-1, page, 1); }
static void do_read_file(void) { read(file, page, 1); }
static void do_recv_bad(void) { recv(-1, page, 1, 0); }
static void do_recv_now(void) { recv(stream[0], page, 1, MSG_DONTWAIT); }
static void do_sem_free(void) { sem_wait(&some); }
static void do_send_bad(void) { send(-1, page, 1, 0); }
static void do_sleep_0(void) { sleep(0); }
static void do_testcancel(void) { pthread_testcancel(); }
static void do_write_bad(void) { write(-1, page, 1); }
static void do_write_file(void) { write(file, page, 1); }

static const struct point {
	const char *name;
	void (*call)(void);
	int waits;
} points[] = {
	{ "accept", do_accept, 1 }, { "accept4", do_accept4, 1 },
	{ "clock_nanosleep", do_clock_nanosleep, 1 }, { "close", do_close, 0 },
	{ "connect", do_connect, 0 }, { "creat", do_creat, 0 },
	{ "epoll_pwait", do_epoll_pwait, 1 }, { "epoll_wait", do_epoll_wait, 1 },
	{ "fcntl", do_fcntl, 0 }, { "fdatasync", do_fdatasync, 0 }, { "fsync", do_fsync, 0 },
	{ "lockf", do_lockf, 0 }, { "msgrcv", do_msgrcv, 1 }, { "msync", do_msync, 0 },
	{ "nanosleep", do_nanosleep, 1 }, { "open", do_open, 0 }, { "openat", do_openat, 0 },
	{ "pause", do_pause, 1 }, { "poll", do_poll, 1 }, { "poll, no time", do_poll_now, 0 },
	{ "ppoll", do_ppoll, 1 }, { "pread", do_pread, 0 }, { "preadv", do_preadv, 0 },
	{ "pselect", do_pselect, 1 }, { "pthread_cond_timedwait", do_cond_timedwait, 1 },
	{ "pthread_cond_wait", do_cond_wait, 1 }, { "pthread_join", do_join, 1 },
	{ "pthread_testcancel", do_testcancel, 0 }, { "pwrite", do_pwrite, 0 },
	{ "pwritev", do_pwritev, 0 }, { "read", do_read, 1 }, { "read, bad", do_read_bad, 0 },
	{ "read, eventfd", do_read_event, 1 }, { "read, file", do_read_file, 0 },
	{ "read, socket", do_read_socket, 1 }, { "readv", do_readv, 1 },
	{ "recv", do_recv, 1 }, { "recv, bad", do_recv_bad, 0 },
	{ "recv, no wait", do_recv_now, 0 }, { "recvfrom", do_recvfrom, 1 },
	{ "recvmsg", do_recvmsg, 1 }, { "select", do_select, 1 },
	{ "sem_timedwait", do_sem_timedwait, 1 }, { "sem_wait", do_sem_wait, 1 },
	{ "sem_wait, free", do_sem_free, 0 }, { "send", do_send, 1 },
	{ "send, bad", do_send_bad, 0 }, { "sendmsg", do_sendmsg, 1 },
	{ "sendto", do_sendto, 1 }, { "sigsuspend", do_sigsuspend, 1 },
	{ "sigtimedwait", do_sigtimedwait, 1 }, { "sigwait", do_sigwait, 1 },
	{ "sigwaitinfo", do_sigwaitinfo, 1 }, { "sleep", do_sleep, 1 },
	{ "sleep, no time", do_sleep_0, 0 }, { "usleep", do_usleep, 1 },
	{ "wait4", do_wait4, 1 }, { "waitid", do_waitid, 1 }, { "waitpid", do_waitpid, 1 },
	{ "write", do_write, 1 }, { "write, bad", do_write_bad, 0 },
	{ "write, file", do_write_file, 0 }, { "write, socket", do_write_socket, 1 },
	{ "writev", do_writev, 1 },
};

/* ---- being cancelled there ---------------------------------------------- */

static void cleanup(void *arg)
{
	cleaned++;
	/* Whoever waits for a condition owns the mutex here, others have it too. */
	if (arg)
		CHECK_OK(pthread_mutex_unlock(arg));
}

static void *comes_to(void *arg)
{
	const struct point *p = arg;

	CHECK_OK(pthread_mutex_lock(&lock));
	pthread_cleanup_push(cleanup, &lock);
	CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	event_post(&ready);
	event_wait(&go, 1);
	CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	p->call();
	printf("%s is no cancellation point\n", p->name);
	pthread_cleanup_pop(1);
	return NULL;
}

static void *waits_in(void *arg)
{
	const struct point *p = arg;

	CHECK_OK(pthread_mutex_lock(&lock));
	pthread_cleanup_push(cleanup, &lock);
	event_post(&ready);
	for (;;)
		p->call();
	pthread_cleanup_pop(1);
	return NULL;
}

static void cancel_in(const struct point *p, int pending)
{
	pthread_t t;

	cleaned = ready.count = go.count = 0;
	t = start(pending ? comes_to : waits_in, (void *)p);
	event_wait(&ready, 1);
	if (!pending)
		settle();
	CHECK_OK(pthread_cancel(t));
	event_post(&go);
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(cleaned, 1);
}

static void *sleeps(void *arg)
{
	pause();
	return arg;
}

static void stuff(int fd)
{
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	while (write(fd, page, sizeof(page)) > 0)
		continue;
	while (write(fd, page, 1) > 0)
		continue;
	CHECK_OK(fcntl(fd, F_SETFL, 0));
}

int main(void)
{
	sigset_t set = *no_signal();

	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(sem_init(&none, 0, 0));
	CHECK_OK(sem_init(&some, 0, 1));
	CHECK_OK(pipe(empty));
	CHECK_OK(pipe(full));
	stuff(full[1]);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stuffed));
	stuff(stuffed[0]);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(listen(listener, 1));
	counter = eventfd(0, 0);
	epoll = epoll_create1(0);
	CHECK(listener >= 0 && counter >= 0 && epoll >= 0);
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(queue >= 0);
	file = temp_file();
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	sleeper = start(sleeps, NULL);

	for (size_t i = 0; i < COUNT(points); i++) {
		cancel_in(&points[i], 1);
		if (points[i].waits)
			cancel_in(&points[i], 0);
		printf("%s\n", points[i].name);
	}
	/* Nothing was taken, nobody was joined. */
	CHECK_OK(sem_trywait(&some));
	CHECK_OK(lseek(file, 0, SEEK_CUR));
	CHECK_OK(pthread_cancel(sleeper));
	CHECK(finish(sleeper) == PTHREAD_CANCELED);
	CHECK_OK(kill(child, SIGKILL));
	CHECK_INT(waitpid(child, NULL, 0), child);
	CHECK_OK(msgctl(queue, IPC_RMID, NULL));
	return success();
}
