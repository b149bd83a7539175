/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_big.c - transfers of more bytes than the kernel moves in one call: they
 * wait like others, and a cancellation ends them; sizes and addresses that the kernel refuses.
 * And data that opens a TCP connection (MSG_FASTOPEN).
 */
#include "sockets.h"

#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/uio.h>

#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif

enum { READ, RECV, READV, READV_MANY, RECVMSG, WRITE, SEND, WRITEV, WRITEV_MANY, SENDMSG, CALLS };

static const size_t huge = (size_t)3 << 30;
static char page[1 << 16];

struct transfer {
	struct event begun;
	int fd[2], call;
};

static long make(int call, int fd, void *buf, size_t n)
{
	/* Several that begin with an empty one, or a short one. */
	struct iovec iov[3] = { { buf, 0 }, { buf, 1 }, { buf, n } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };

	switch (call) {
	case READ: return read(fd, buf, n);
	case RECV: return recv(fd, buf, n, 0);
	case READV: return readv(fd, iov + 2, 1);
	case READV_MANY: return readv(fd, iov, 3);
	case RECVMSG: return recvmsg(fd, &msg, 0);
	case WRITE: return write(fd, buf, n);
	case WRITEV: return writev(fd, iov + 2, 1);
	case WRITEV_MANY: return writev(fd, iov, 3);
	case SENDMSG: return sendmsg(fd, &msg, 0);
	default: return send(fd, buf, n, 0);
	}
}

static bool is_for_sockets(int call)
{
	return call == RECV || call == RECVMSG || call == SEND || call == SENDMSG;
}

enum { PARTS = 1000, MOST = 0x7ffff000 };

/* All parts are one buffer.  More than a call transfers. */
static struct iovec *make_parts(void)
{
	static struct iovec parts[PARTS];
	const size_t size = 3 << 20;
	char *buf = calloc(1, size);

	CHECK(buf);
	for (int i = 0; i < PARTS; i++)
		parts[i] = (struct iovec){ buf, size - (size_t)i };
	return parts;
}

/* A call transfers no more than the kernel does at once, even if it goes on by parts. */
static void most(void)
{
	const int zero = open("/dev/zero", O_RDONLY), file = memfd_create("io_big", 0);
	struct iovec *parts = make_parts();

	CHECK(zero >= 0 && file >= 0);
	CHECK_ERR(readv(zero, &(struct iovec){ page, (size_t)-1 }, 1), EINVAL);
	CHECK_INT(readv(zero, parts, PARTS), MOST);
	CHECK_OK(ftruncate(file, (off_t)3 << 30));
	CHECK_INT(readv(file, parts, PARTS), MOST);
	CHECK_INT(lseek(file, 0, SEEK_CUR), MOST);
	CHECK_INT(preadv(file, parts, PARTS, 0), MOST);
	CHECK_OK(close(zero) | close(file));
	free(parts[0].iov_base);
	puts("most");
}

static void *transfers(void *arg)
{
	struct transfer *t = arg;

	event_post(&t->begun);
	return (void *)make(t->call, t->fd[t->call >= WRITE], page, huge);
}

static void set_up(struct transfer *t, enum pair_kind kind)
{
	make_pair(kind, t->fd);
	if (t->call < WRITE)
		return;
	CHECK_OK(fcntl(t->fd[1], F_SETFL, O_NONBLOCK));
	for (size_t n = sizeof(page); n; n /= 2)
		while (write(t->fd[1], page, n) > 0)
			continue;
	CHECK_OK(fcntl(t->fd[1], F_SETFL, 0));
}

static void transfer(enum pair_kind kind, int call, int cancel)
{
	struct transfer f = { .begun = EVENT_INIT, .call = call };
	pthread_t t;
	void *result;

	set_up(&f, kind);
	t = start(transfers, &f);
	event_wait(&f.begun, 1);
	settle();
	if (cancel)
		CHECK_OK(pthread_cancel(t));
	else if (call < WRITE)
		CHECK_INT(write(f.fd[1], "abc", 3), 3);
	else
		CHECK_OK(close(f.fd[0]));
	result = finish(t);
	if (cancel)
		CHECK(result == PTHREAD_CANCELED);
	else
		CHECK_INT((long)result, call < WRITE ? 3 : -1);
	if (cancel || call < WRITE)
		CHECK_OK(close(f.fd[0]));
	CHECK_OK(close(f.fd[1]));
}

/* At once, whatever the descriptor is. */
static void refused(enum pair_kind kind, int call)
{
	static const size_t sizes[] = { (size_t)-1, (size_t)1 << 63, (size_t)1 << 62 };
	int p[2];

	make_pair(kind, p);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		long n;

		errno = 0;
		n = make(call, p[call >= WRITE], page, sizes[i]);
		printf("kind %d, call %d, size %zu: %ld, %s\n", kind, call, i, n,
		       strerrorname_np(errno));
	}
	CHECK_OK(close(p[0]));
	CHECK_OK(close(p[1]));
}

static void *opens(void *arg)
{
	struct sockaddr_in *to = arg;
	struct iovec iov = { page, 5 };
	struct mmsghdr msg = { .msg_hdr = { .msg_name = to, .msg_namelen = sizeof(*to),
					    .msg_iov = &iov, .msg_iovlen = 1 } };
	const int one = 1;

	for (int way = 0; way < 4; way++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		switch (way) {
		case 0:
			CHECK_INT(sendto(fd, page, 5, MSG_FASTOPEN, (struct sockaddr *)to,
					 sizeof(*to)), 5);
			break;
		case 1:
			CHECK_INT(sendmsg(fd, &msg.msg_hdr, MSG_FASTOPEN), 5);
			break;
		case 2:
			CHECK_INT(sendmmsg(fd, &msg, 1, MSG_FASTOPEN), 1);
			CHECK_INT(msg.msg_len, 5);
			break;
		case 3:
			CHECK_OK(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one,
					    sizeof(one)));
			CHECK_OK(connect(fd, (struct sockaddr *)to, sizeof(*to)));
			CHECK_INT(write(fd, page, 5), 5);
			break;
		}
		CHECK_OK(close(fd));
		/* Nobody there: that is the answer, too. */
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (way == 0)
			CHECK_ERR(sendto(fd, page, 5, MSG_FASTOPEN, (struct sockaddr *)(to + 1),
					 sizeof(*to)), ECONNREFUSED);
		CHECK_OK(close(fd));
	}
	return NULL;
}

static void fast_open(int queue)
{
	struct sockaddr_in to[2];
	int nobody = bound_socket(SOCK_STREAM, &to[1]);
	int l = listening_socket(0, &to[0]);

	/* Ignored where the system does not let servers do that. */
	if (queue)
		CHECK_OK(setsockopt(l, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue)));
	finish(start(opens, to));
	CHECK_OK(close(l));
	CHECK_OK(close(nobody));
}

static void *all(void *arg)
{
	for (int kind = 0; kind < KINDS; kind++) {
		for (int call = 0; call < CALLS; call++) {
			if (kind == PIPE && is_for_sockets(call))
				continue;
			transfer(kind, call, 0);
			transfer(kind, call, 1);
			if (call == READ || call == WRITE)
				refused(kind, call);
		}
	}
	most();
	fast_open(0);
	fast_open(5);
	return arg;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	finish(start(all, NULL));
	return success();
}
