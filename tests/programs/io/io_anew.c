/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_anew.c - while a call waits, another thread sets O_NONBLOCK or a timeout on its descriptor, or puts
 * another file there, and sends the waiting thread a signal whose handler has SA_RESTART: the call begins anew, with what the
 * descriptor has then.
 */
#include "sockets.h"

#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum way { BY_FCNTL, BY_IOCTL, TIMEOUT, REPLACED, WAYS };
enum { BYTES = 1 << 16 };

/* A descriptor, whom it talks to, and another descriptor. */
struct ends {
	int fd, peer, more;
	struct sockaddr_in address;
};

static char page[BYTES];

/* ---- descriptors on which calls wait -------------------------------------- */

static void make_two(struct ends *e, int domain, int type)
{
	int p[2];

	if (domain < 0)
		CHECK_OK(pipe(p));
	else
		CHECK_OK(socketpair(domain, type, 0, p));
	e->fd = p[0];
	e->peer = p[1];
}

static void make_stream(struct ends *e) { make_two(e, AF_UNIX, SOCK_STREAM); }
static void make_datagrams(struct ends *e) { make_two(e, AF_UNIX, SOCK_DGRAM); }
static void make_pipe(struct ends *e) { make_two(e, -1, 0); }

static void make_tcp(struct ends *e)
{
	int p[2];

	tcp_pair(p);
	e->fd = p[0];
	e->peer = p[1];
}

static void make_fifo(struct ends *e)
{
	char directory[] = "/tmp/anew.XXXXXX", name[64];

	CHECK(mkdtemp(directory));
	snprintf(name, sizeof(name), "%s/fifo", directory);
	CHECK_OK(mkfifo(name, 0600));
	e->more = open(name, O_RDWR);
	e->fd = open(name, O_RDONLY);
	e->peer = open(name, O_WRONLY);
	CHECK(e->more >= 0 && e->fd >= 0 && e->peer >= 0);
	CHECK_OK(close(e->more));
	e->more = -1;
	CHECK_OK(unlink(name));
	CHECK_OK(rmdir(directory));
}

static void make_eventfd(struct ends *e)
{
	e->fd = eventfd(0, 0);
	CHECK(e->fd >= 0);
}

static void make_listener(struct ends *e)
{
	e->fd = listening_socket(0, &e->address);
}

/* Nobody is let in by the listener any more. */
static void make_dialler(struct ends *e)
{
	e->peer = bound_socket(SOCK_STREAM, &e->address);
	CHECK_OK(listen(e->peer, 0));
	e->more = dial(&e->address);
	e->fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(e->fd >= 0);
}

static void fill(int fd)
{
	while (send(fd, page, BYTES, MSG_DONTWAIT) > 0)
		continue;
	while (send(fd, page, 1, MSG_DONTWAIT) > 0)
		continue;
}

static void make_full_stream(struct ends *e)
{
	make_stream(e);
	fill(e->fd);
}

static void make_full_datagrams(struct ends *e)
{
	make_datagrams(e);
	fill(e->fd);
}

/* With buffers whose sizes stay as they are. */
static void make_full_tcp(struct ends *e)
{
	const int size = BYTES, listener = bound_socket(SOCK_STREAM, &e->address);

	CHECK_OK(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)));
	CHECK_OK(listen(listener, 1));
	e->fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(setsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
	CHECK_OK(connect(e->fd, (struct sockaddr *)&e->address, sizeof(e->address)));
	e->peer = accept(listener, NULL, NULL);
	CHECK(e->peer >= 0);
	CHECK_OK(close(listener));
	/* A late acknowledgement makes room for more. */
	for (int sent = 1; sent; usleep(300000))
		for (sent = 0; send(e->fd, page, BYTES, MSG_DONTWAIT) > 0; sent = 1)
			continue;
	e->more = temp_file();
	CHECK_INT(write(e->more, page, BYTES), BYTES);
}

static void make_full_pipe(struct ends *e)
{
	int p[2];

	CHECK_OK(pipe(p));
	CHECK_INT(write(p[1], page, BYTES), BYTES);
	e->fd = p[1];
	e->peer = p[0];
}

/* To splice to; its other end stays open. */
static void add_pipe(struct ends *e)
{
	int p[2];

	CHECK_OK(pipe(p));
	e->more = p[1];
}

static void make_two_pipes(struct ends *e)
{
	make_pipe(e);
	add_pipe(e);
}

static void make_stream_and_pipe(struct ends *e)
{
	make_stream(e);
	add_pipe(e);
}

/* ---- calls ------------------------------------------------------------------ */

static struct msghdr one_byte(struct iovec *iov)
{
	iov->iov_base = page;
	iov->iov_len = 1;
	return (struct msghdr){ .msg_iov = iov, .msg_iovlen = 1 };
}

static long reads(struct ends *e) { return read(e->fd, page, 8); }
static long receives(struct ends *e) { return recv(e->fd, page, 8, 0); }
static long receives_all(struct ends *e) { return recv(e->fd, page, 2, MSG_WAITALL); }

static long reads_several(struct ends *e)
{
	struct iovec iov[2] = { { page, 4 }, { page + 4, 4 } };

	return readv(e->fd, iov, 2);
}

static long receives_from(struct ends *e)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);

	return recvfrom(e->fd, page, 8, 0, (struct sockaddr *)&from, &size);
}

static long receives_message(struct ends *e)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov;
	struct msghdr msg = one_byte(&iov);

	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	return recvmsg(e->fd, &msg, 0);
}

static long receives_messages(struct ends *e)
{
	struct iovec iov;
	struct mmsghdr msg = { .msg_hdr = one_byte(&iov) };

	return recvmmsg(e->fd, &msg, 1, 0, NULL);
}

static long accepts(struct ends *e) { return accept(e->fd, NULL, NULL); }
static long writes(struct ends *e) { return write(e->fd, page, 1); }
static long sends(struct ends *e) { return send(e->fd, page, 1, 0); }

static long sends_message(struct ends *e)
{
	struct iovec iov;
	struct msghdr msg = one_byte(&iov);

	return sendmsg(e->fd, &msg, 0);
}

static long sends_messages(struct ends *e)
{
	struct iovec iov;
	struct mmsghdr msg = { .msg_hdr = one_byte(&iov) };

	return sendmmsg(e->fd, &msg, 1, 0);
}

static long writes_several(struct ends *e)
{
	struct iovec iov[2] = { { page, 1 }, { page, 1 } };

	return writev(e->fd, iov, 2);
}

static long splices(struct ends *e) { return splice(e->fd, NULL, e->more, NULL, 8, 0); }
static long tees(struct ends *e) { return tee(e->fd, e->more, 8, 0); }
static long sends_file(struct ends *e) { return sendfile(e->fd, e->more, &(off_t){ 0 }, BYTES); }

static long connects(struct ends *e)
{
	return connect(e->fd, (struct sockaddr *)&e->address, sizeof(e->address));
}

static const struct call {
	const char *name;
	void (*make)(struct ends *e);
	long (*call)(struct ends *e);
	int error;
	int ways;	/* bits, beside those of O_NONBLOCK */
} calls[] = {
	{ "read, stream", make_stream, reads, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "recv", make_stream, receives, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "recv, TCP", make_tcp, receives, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "recv, all", make_stream, receives_all, EAGAIN, 1 << TIMEOUT },
	{ "readv", make_stream, reads_several, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "recvfrom", make_datagrams, receives_from, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "recvmsg", make_stream, receives_message, EAGAIN, 1 << TIMEOUT },
	{ "recvmmsg", make_datagrams, receives_messages, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "accept", make_listener, accepts, EAGAIN, 1 << TIMEOUT },
	{ "read, pipe", make_pipe, reads, EAGAIN, 1 << REPLACED },
	{ "readv, pipe", make_pipe, reads_several, EAGAIN, 1 << REPLACED },
	{ "read, FIFO", make_fifo, reads, EAGAIN, 1 << REPLACED },
	{ "read, eventfd", make_eventfd, reads, EAGAIN, 1 << REPLACED },
	{ "write, pipe", make_full_pipe, writes, EAGAIN, 1 << REPLACED },
	{ "write, stream", make_full_stream, writes, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "send", make_full_stream, sends, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "send, datagram", make_full_datagrams, sends, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "sendmsg", make_full_stream, sends_message, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "sendmmsg", make_full_datagrams, sends_messages, EAGAIN, 1 << TIMEOUT | 1 << REPLACED },
	{ "writev", make_full_stream, writes_several, EAGAIN, 1 << TIMEOUT },
	{ "splice, stream", make_stream_and_pipe, splices, EAGAIN, 1 << TIMEOUT },
	{ "splice, pipe", make_two_pipes, splices, EAGAIN, 0 },
	{ "tee", make_two_pipes, tees, EAGAIN, 0 },
	{ "sendfile", make_full_tcp, sends_file, EAGAIN, 1 << TIMEOUT },
	{ "connect", make_dialler, connects, EALREADY, 1 << TIMEOUT },
};

/* ---- what happens meanwhile -------------------------------------------------- */

struct waiting {
	const struct call *call;
	struct ends ends;
	long ret;
	int error;
};

static void *waits(void *arg)
{
	struct waiting *w = arg;

	event_post(&will_sleep);
	w->ret = w->call->call(&w->ends);
	w->error = errno;
	return NULL;
}

/* On the number there is now one of a pair of sockets, with a byte to receive, and with room. */
static void replace(struct ends *e)
{
	int s[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_INT(write(s[1], "y", 1), 1);
	CHECK_INT(dup2(s[0], e->fd), e->fd);
	CHECK_OK(close(s[0]));
}

static void change(struct ends *e, enum way way)
{
	int on = 1;

	switch (way) {
	case BY_FCNTL: CHECK_OK(fcntl(e->fd, F_SETFL, fcntl(e->fd, F_GETFL) | O_NONBLOCK)); break;
	case BY_IOCTL: CHECK_OK(ioctl(e->fd, FIONBIO, &on)); break;
	case TIMEOUT:
		set_timeout(e->fd, SO_RCVTIMEO, 20);
		set_timeout(e->fd, SO_SNDTIMEO, 20);
		break;
	default: replace(e); break;
	}
}

static void try_call(const struct call *c, enum way way)
{
	struct waiting w = { .call = c, .ends = { -1, -1, -1, { 0 } } };
	pthread_t t;

	c->make(&w.ends);
	t = start_asleep(waits, &w);
	change(&w.ends, way);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
	if (way == REPLACED ? w.ret != 1 : w.ret != -1 || w.error != c->error)
		fail(__FILE__, __LINE__, "%s, changed by way %d: %ld, errno %d\n", c->name, way, w.ret, w.error);
	CHECK_OK(close(w.ends.fd));
	if (w.ends.peer >= 0)
		CHECK_OK(close(w.ends.peer));
	if (w.ends.more >= 0)
		CHECK_OK(close(w.ends.more));
}

static void handle(int sig)
{
	(void)sig;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handle, .sa_flags = SA_RESTART };

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	for (size_t i = 0; i < COUNT(calls); i++)
		for (int way = 0; way < WAYS; way++)
			if (way < TIMEOUT || calls[i].ways >> way & 1)
				try_call(&calls[i], (enum way)way);
	return success();
}
