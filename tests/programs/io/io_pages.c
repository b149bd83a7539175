/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_pages.c - calls whose memory another thread must fill in first
 * (userfaultfd): each waits for its page, and nobody else does.
 */
#include "sockets.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { PAGE = 4096, MOST = 64 };

static char contents[MOST][PAGE];	/* what comes into each page */
static char *pages;
static int faults, ended[2];	/* ended: a pipe */
static struct event begun = EVENT_INIT;

struct fixture {
	const struct kind *kind;
	char *page, *content;
	int fd[2];
	pid_t child;
};

struct kind {
	const char *name;
	void (*prepare)(struct fixture *f);
	void (*call)(struct fixture *f);
	/* begins before there is a userfaultfd, and waits then, until this */
	void (*late)(struct fixture *f);
};

/* What the page will hold: the text, or a structure. */
static void text(struct fixture *f)
{
	strcpy(f->content, "hello");
}

static void arrives(struct fixture *f, long sent)
{
	char got[5];

	CHECK_INT(sent, 5);
	CHECK_INT(recv(f->fd[1], got, 5, MSG_WAITALL), 5);
	CHECK_OK(memcmp(got, "hello", 5));
}

static void do_send(struct fixture *f)
{
	arrives(f, send(f->fd[0], f->page, 5, 0));
}

static void do_write(struct fixture *f)
{
	arrives(f, write(f->fd[0], f->page, 5));
}

static void do_writev(struct fixture *f)
{
	struct iovec iov[2] = { { f->page, 2 }, { f->page + 2, 3 } };

	arrives(f, writev(f->fd[0], iov, 2));
}

static void vector(struct fixture *f)
{
	struct iovec iov[2] = { { (char *)"hel", 3 }, { (char *)"lo", 2 } };

	memcpy(f->content, iov, sizeof(iov));
}

static void do_vector(struct fixture *f)
{
	arrives(f, writev(f->fd[0], (struct iovec *)(void *)f->page, 2));
}

static void message(struct fixture *f)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(void *)(f->page + 1024),
			      .msg_iovlen = 2 };

	memcpy(f->content, &msg, sizeof(msg));
	f->content += 1024;
	vector(f);
}

static void do_message(struct fixture *f)
{
	arrives(f, sendmsg(f->fd[0], (struct msghdr *)(void *)f->page, 0));
}

static void incoming(struct fixture *f)
{
	CHECK_INT(send(f->fd[1], "hello", 5, 0), 5);
}

static void do_recv(struct fixture *f)
{
	CHECK_INT(recv(f->fd[0], f->page, 5, 0), 5);
	CHECK_OK(memcmp(f->page, "hello", 5));
}

static void do_read(struct fixture *f)
{
	CHECK_INT(read(f->fd[0], f->page, 5), 5);
	CHECK_OK(memcmp(f->page, "hello", 5));
}

static void do_recvmsg(struct fixture *f)
{
	struct iovec iov = { f->page, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	CHECK_INT(recvmsg(f->fd[0], &msg, 0), 5);
	CHECK_OK(memcmp(f->page, "hello", 5));
}

/* The address comes into the page. */
static void listens(struct fixture *f)
{
	struct sockaddr_in address;
	int n = listening_socket(0, &address);

	CHECK_OK(close(f->fd[0]));
	CHECK_OK(close(f->fd[1]));
	f->fd[0] = n;
	f->fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(f->fd[1] >= 0);
}

static void connects(struct fixture *f)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	CHECK_OK(getsockname(f->fd[0], (struct sockaddr *)&address, &size));
	CHECK_OK(connect(f->fd[1], (struct sockaddr *)&address, size));
}

static void do_accept(struct fixture *f)
{
	socklen_t size = sizeof(struct sockaddr_in);
	int fd = accept(f->fd[0], (struct sockaddr *)(void *)f->page, &size);

	CHECK(fd >= 0);
	CHECK_INT(((struct sockaddr_in *)(void *)f->page)->sin_family, AF_INET);
	CHECK_OK(close(fd));
}

/* What a child left behind comes into the page; it ends when the other end of its socket does. */
static void bears(struct fixture *f)
{
	char c;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		CHECK_OK(close(f->fd[1]));
		_exit(read(f->fd[0], &c, 1) == 0 ? 7 : 1);
	}
	f->child = child;
}

static void lets_go(struct fixture *f)
{
	CHECK_OK(shutdown(f->fd[1], SHUT_WR));
}

static void do_waitid(struct fixture *f)
{
	siginfo_t *info = (void *)f->page;

	CHECK_OK(waitid(P_PID, (id_t)f->child, info, WEXITED));
	CHECK_INT(info->si_status, 7);
}

static void wanted(struct fixture *f)
{
	struct pollfd p = { .fd = f->fd[0], .events = POLLOUT };

	memcpy(f->content, &p, sizeof(p));
}

static void do_poll(struct fixture *f)
{
	CHECK_INT(poll((struct pollfd *)(void *)f->page, 1, 10000), 1);
}

static void set(struct fixture *f)
{
	FD_SET(f->fd[0], (fd_set *)(void *)f->content);
}

static void do_select(struct fixture *f)
{
	CHECK_INT(select(f->fd[0] + 1, NULL, (fd_set *)(void *)f->page, NULL, NULL), 1);
}

static void do_epoll(struct fixture *f)
{
	struct epoll_event event = { .events = EPOLLOUT }, *out = (void *)f->page;
	int e = epoll_create1(0);

	CHECK_OK(epoll_ctl(e, EPOLL_CTL_ADD, f->fd[0], &event));
	CHECK_INT(epoll_wait(e, out, 1, -1), 1);
	CHECK_OK(close(e));
}

static void moment(struct fixture *f)
{
	struct timespec ts = { 0, 1000000 };

	memcpy(f->content, &ts, sizeof(ts));
}

static void do_sleep(struct fixture *f)
{
	CHECK_OK(nanosleep((struct timespec *)(void *)f->page, NULL));
}

static void do_mutex(struct fixture *f)
{
	pthread_mutex_t *m = (void *)f->page;

	CHECK_OK(pthread_mutex_lock(m));
	CHECK_OK(pthread_mutex_unlock(m));
}

static void do_file(struct fixture *f)
{
	int fd = temp_file();

	CHECK_INT(pwrite(fd, f->page, 5, 0), 5);
	CHECK_INT(pread(fd, f->page, 5, 0), 5);
	CHECK_OK(memcmp(f->page, "hello", 5));
	CHECK_OK(close(fd));
}

static void nothing(struct fixture *f)
{
	(void)f;
}

static const struct kind kinds[] = {
	{ "recv, waiting", nothing, do_recv, incoming },
	{ "read, waiting", nothing, do_read, incoming },
	{ "recvmsg, waiting", nothing, do_recvmsg, incoming },
	{ "accept, waiting", listens, do_accept, connects },
	{ "waitid, waiting", bears, do_waitid, lets_go },
	{ "send", text, do_send, NULL },
	{ "send", text, do_send, NULL },
	{ "write", text, do_write, NULL },
	{ "writev", text, do_writev, NULL },
	{ "array of writev", vector, do_vector, NULL },
	{ "header of sendmsg", message, do_message, NULL },
	{ "recv", incoming, do_recv, NULL },
	{ "read", incoming, do_read, NULL },
	{ "recvmsg", incoming, do_recvmsg, NULL },
	{ "array of poll", wanted, do_poll, NULL },
	{ "set of select", set, do_select, NULL },
	{ "events of epoll", nothing, do_epoll, NULL },
	{ "nanosleep", moment, do_sleep, NULL },
	{ "mutex", nothing, do_mutex, NULL },
	{ "file", text, do_file, NULL },
};

static void *calls(void *arg)
{
	struct fixture *f = arg;

	event_post(&begun);
	f->kind->call(f);
	return NULL;
}

static void *resolves(void *arg)
{
	struct pollfd p[2] = { { .fd = faults, .events = POLLIN },
			       { .fd = ended[0], .events = POLLIN } };
	struct uffd_msg m;

	for (;;) {
		struct uffdio_copy copy = { .len = PAGE };

		CHECK(poll(p, 2, -1) > 0);
		if (p[1].revents)
			break;
		if (read(faults, &m, sizeof(m)) != sizeof(m))
			continue;
		/* As if it came from a disk. */
		usleep(1000);
		copy.dst = m.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
		copy.src = (uintptr_t)contents[(copy.dst - (uintptr_t)pages) / PAGE];
		/* Two threads of the kernel may have asked for it. */
		if (ioctl(faults, UFFDIO_COPY, &copy))
			CHECK_INT(errno, EEXIST);
	}
	return arg;
}

/* Returns false where the system does not let us. */
static int begin(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)pages, MOST * PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (faults < 0)
		return 0;
	CHECK_OK(ioctl(faults, UFFDIO_API, &api));
	CHECK_OK(ioctl(faults, UFFDIO_REGISTER, &range));
	return 1;
}

int main(void)
{
	struct fixture f[COUNT(kinds)];
	pthread_t t[COUNT(kinds)], r;
	int early = 0;

	pages = mmap(NULL, MOST * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		f[i] = (struct fixture){ &kinds[i], pages + i * PAGE, contents[i], { 0, 0 }, 0 };
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, f[i].fd));
		f[i].kind->prepare(&f[i]);
		if (f[i].kind->late) {
			t[i] = start(calls, &f[i]);
			early++;
		}
	}
	event_wait(&begun, early);
	settle();
	if (!begin()) {
		for (int i = 0; i < early; i++)
			f[i].kind->late(&f[i]);
		for (int i = 0; i < early; i++)
			finish(t[i]);
		return success();
	}
	settle();
	CHECK_OK(pipe(ended));
	r = start(resolves, NULL);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (f[i].kind->late)
			f[i].kind->late(&f[i]);
		else
			t[i] = start(calls, &f[i]);
	}
	for (size_t i = 0; i < COUNT(kinds); i++)
		finish(t[i]);
	CHECK_INT(write(ended[1], "x", 1), 1);
	finish(r);
	return success();
}
