/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_fuse.c - calls whose memory is a mapping of a file that a thread of the same
 * process serves (FUSE): each waits for its page, and nobody else does.  The server opens its
 * device by open; in another process by fopen, where "c" makes that no cancellation point, and does
 * not read and write it by libc.
 */
#include "fuse.h"
#include "sockets.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/uio.h>

enum { EARLY = 8 };

static char *pages;
static int device;

struct fixture {
	void (*call)(struct fixture *f);
	char *page;
	int fd[2];
};

/* What page i of the file holds. */
static int letter(const struct fixture *f)
{
	return 'A' + (int)((f->page - pages) / FUSE_PAGE) % 26;
}

static void arrives(struct fixture *f, long sent)
{
	char got[5];

	CHECK_INT(sent, 5);
	CHECK_INT(recv(f->fd[1], got, 5, MSG_WAITALL), 5);
	for (int i = 0; i < 5; i++)
		CHECK_INT(got[i], letter(f));
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

static void do_sendmsg(struct fixture *f)
{
	struct iovec iov = { f->page, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	arrives(f, sendmsg(f->fd[0], &msg, 0));
}

/* What came is at the page's begin, and the rest is the file's. */
static void has_arrived(struct fixture *f, long n)
{
	CHECK_INT(n, 5);
	CHECK_OK(memcmp(f->page, "hello", 5));
	CHECK_INT(f->page[5], letter(f));
}

static void do_recv(struct fixture *f)
{
	CHECK_INT(send(f->fd[1], "hello", 5, 0), 5);
	has_arrived(f, recv(f->fd[0], f->page, 5, 0));
}

static void do_read(struct fixture *f)
{
	CHECK_INT(send(f->fd[1], "hello", 5, 0), 5);
	has_arrived(f, read(f->fd[0], f->page, 5));
}

static void do_recvmsg(struct fixture *f)
{
	struct iovec iov = { f->page, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	CHECK_INT(send(f->fd[1], "hello", 5, 0), 5);
	has_arrived(f, recvmsg(f->fd[0], &msg, 0));
}

static void do_select(struct fixture *f)
{
	/* Of the letters' bits, those below fd[0] + 1 are closed descriptors, or not. */
	int n = select(0, (fd_set *)(void *)f->page, NULL, NULL, &(struct timeval){ 0, 1000 });

	CHECK_INT(n, 0);
}

static void do_file(struct fixture *f)
{
	int fd = temp_file();
	char got[5];

	CHECK_INT(pwrite(fd, f->page, 5, 0), 5);
	CHECK_INT(pread(fd, got, 5, 0), 5);
	for (int i = 0; i < 5; i++)
		CHECK_INT(got[i], letter(f));
	CHECK_OK(close(fd));
}

static void do_touch(struct fixture *f)
{
	CHECK_INT(*(volatile char *)f->page, letter(f));
}

static void (*const kinds[])(struct fixture *f) = {
	do_send, do_write, do_writev, do_sendmsg, do_recv, do_read, do_recvmsg, do_select, do_file,
	do_touch, do_send, do_recv,
};

static void *calls(void *arg)
{
	struct fixture *f = arg;

	f->call(f);
	return NULL;
}

static void *serves(void *arg)
{
	static struct fuse_request r;

	while (!fuse_next(device, &r)) {
		/* As if it came from a disk. */
		usleep(1000);
		fuse_handle(device, &r, 0);
	}
	return arg;
}

/* A call that has begun before there is such memory. */
static void *waits(void *arg)
{
	char c;

	CHECK_INT(recv(*(int *)arg, &c, 1, 0), 1);
	return NULL;
}

static int test(bool by_stdio)
{
	pthread_t server, t[COUNT(kinds)], early[EARLY];
	struct fixture f[COUNT(kinds)];
	char dir[] = "/tmp/check-XXXXXX", path[64];
	int s[EARLY][2], fd;
	FILE *file = NULL;
	pid_t guard;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	guard = fuse_guard(dir);
	for (int i = 0; i < EARLY; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s[i]));
		early[i] = start(waits, &s[i][0]);
	}
	settle();
	fuse_unseen = by_stdio;
	if (by_stdio) {
		file = fopen("/dev/fuse", "r+ce");
		CHECK(file);
		device = fileno(file);
		fuse_mount_by(device, dir);
	} else {
		device = fuse_mount(dir);
	}
	server = start(serves, NULL);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	pages = mmap(NULL, FUSE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(pages != MAP_FAILED);
	/* No page comes before it is needed. */
	CHECK_OK(madvise(pages, FUSE_SIZE, MADV_RANDOM));
	for (size_t i = 0; i < COUNT(kinds); i++) {
		f[i] = (struct fixture){ kinds[i], pages + i * FUSE_PAGE, { 0, 0 } };
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, f[i].fd));
		t[i] = start(calls, &f[i]);
	}
	for (int i = 0; i < EARLY; i++)
		CHECK_INT(write(s[i][1], "x", 1), 1);
	for (size_t i = 0; i < COUNT(kinds); i++)
		finish(t[i]);
	for (int i = 0; i < EARLY; i++)
		finish(early[i]);
	CHECK_OK(munmap(pages, FUSE_SIZE));
	CHECK_OK(close(fd));
	fuse_end(dir, guard);
	finish(server);
	CHECK_OK(by_stdio ? fclose(file) : close(device));
	CHECK_OK(rmdir(dir));
	return 0;
}

int main(void)
{
	int status;
	pid_t pid;

	fuse_prepare();
	/* Each process of its own: before it has threads. */
	for (int by_stdio = 0; by_stdio < 2; by_stdio++) {
		pid = fork();
		if (!pid)
			exit(test(by_stdio));
		CHECK(pid > 0);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			return 77;
		CHECK_INT(status, 0);
	}
	return success();
}
