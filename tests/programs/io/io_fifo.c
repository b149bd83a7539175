/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_fifo.c - FIFOs, and pipes that were opened by name or spliced: ends that
 * come and go, no writer yet, reading and writing what has to wait.
 */
#include "check.h"

#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { ROUNDS = 200, PAIRS = 8, BIG = 300000 };

static char directory[] = "/tmp/check-XXXXXX", name[64];
static struct event blocked = EVENT_INIT;

static int opened(int flags)
{
	int fd = open(name, flags | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static void set_blocking(int fd)
{
	CHECK_OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
}

/* ---- nobody has it open after close() ------------------------------------ */

struct pair {
	char name[64];
	sem_t go;
	int w;
};

static void *writes_one(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(sem_wait(&p->go));
		if (i % 3)
			sched_yield();
		if (i % 3 == 2)
			usleep(50);
		CHECK_INT(write(p->w, "x", 1), 1);
		if (i % 2)
			CHECK_OK(close(p->w));
	}
	return NULL;
}

static void *reads_one(void *arg)
{
	struct pair p;
	pthread_t t;
	char c;

	snprintf(p.name, sizeof(p.name), "%s/%d", directory, (int)(intptr_t)arg);
	CHECK_OK(mkfifo(p.name, 0600));
	CHECK_OK(sem_init(&p.go, 0, 0));
	t = start(writes_one, &p);
	for (int i = 0; i < ROUNDS; i++) {
		int r = open(p.name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		CHECK(r >= 0);
		p.w = open(p.name, O_WRONLY | O_CLOEXEC);
		CHECK(p.w >= 0);
		set_blocking(r);
		CHECK_OK(sem_post(&p.go));
		CHECK_INT(read(r, &c, 1), 1);
		/* Every other time to its end. */
		if (i % 2)
			CHECK_INT(read(r, &c, 1), 0);
		CHECK_OK(close(r));
		CHECK_ERR(open(p.name, O_WRONLY | O_NONBLOCK), ENXIO);
		if (i % 2)
			continue;
		CHECK_ERR(write(p.w, "y", 1), EPIPE);
		CHECK_OK(close(p.w));
	}
	finish(t);
	CHECK_OK(unlink(p.name));
	CHECK_OK(sem_destroy(&p.go));
	return NULL;
}

static void *ends_go(void *arg)
{
	pthread_t t[PAIRS];

	for (intptr_t i = 0; i < PAIRS; i++)
		t[i] = start(reads_one, (void *)i);
	for (int i = 0; i < PAIRS; i++)
		finish(t[i]);
	return arg;
}

/* ---- no writer ------------------------------------------------------------ */

static void *never_written(void *arg)
{
	struct iovec iov[2];
	char buf[8];
	int fd = opened(O_RDONLY | O_NONBLOCK), w;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	iov[0] = iov[1] = (struct iovec){ buf, 4 };
	CHECK_KEEPS(read(fd, buf, 1), 0);
	set_blocking(fd);
	CHECK_KEEPS(read(fd, buf, 1), 0);
	CHECK_KEEPS(readv(fd, iov, 2), 0);
	CHECK_INT(poll(&p, 1, 0), 0);
	CHECK_KEEPS(read(fd, buf, sizeof(buf)), 0);
	/* One comes, and goes. */
	w = opened(O_WRONLY);
	CHECK_INT(write(w, "abcdef", 6), 6);
	CHECK_KEEPS(read(fd, buf, 1), 1);
	CHECK_KEEPS(readv(fd, iov, 2), 5);
	CHECK_OK(close(w));
	CHECK_KEEPS(read(fd, buf, 1), 0);
	CHECK_INT(poll(&p, 1, 0), 1);
	CHECK_INT(p.revents, POLLHUP);
	CHECK_ERR(write(fd, "x", 1), EBADF);
	CHECK_OK(close(fd));
	return arg;
}

static void *closes_late(void *arg)
{
	event_wait(&blocked, 1);
	settle();
	CHECK_OK(close((int)(intptr_t)arg));
	return NULL;
}

static void *writes_late(void *arg)
{
	event_wait(&blocked, 1);
	settle();
	CHECK_INT(write((int)(intptr_t)arg, "late", 4), 4);
	return NULL;
}

static void *has_to_wait(void *arg)
{
	int fd = opened(O_RDONLY | O_NONBLOCK), w = opened(O_WRONLY);
	char buf[8];
	pthread_t t;

	CHECK_ERR(read(fd, buf, 1), EAGAIN);
	set_blocking(fd);
	for (int i = 0; i < 5; i++) {
		blocked.count = 0;
		t = start(writes_late, (void *)(intptr_t)w);
		event_post(&blocked);
		CHECK_KEEPS(read(fd, buf, sizeof(buf)), 4);
		finish(t);
	}
	blocked.count = 0;
	t = start(closes_late, (void *)(intptr_t)w);
	event_post(&blocked);
	CHECK_KEEPS(read(fd, buf, 1), 0);
	finish(t);
	CHECK_OK(close(fd));
	return arg;
}

static void *asks_for_nothing(void *arg)
{
	int fd = opened(O_RDWR);
	char buf[8];
	struct iovec iov[2] = { { buf, 0 }, { buf, 0 } };

	/* It is known by now that it is a FIFO. */
	CHECK_INT(write(fd, "a", 1), 1);
	CHECK_INT(read(fd, buf, 1), 1);
	CHECK_KEEPS(readv(fd, iov, 2), 0);
	CHECK_KEEPS(readv(fd, iov, 1), 0);
	CHECK_KEEPS(read(fd, buf, 0), 0);
	CHECK_OK(close(fd));
	return arg;
}

struct reuse {
	int fd;
	ssize_t n;
	char buf[16];
};

static void *reads_what_is_closed(void *arg)
{
	struct reuse *r = arg;

	event_post(&blocked);
	r->n = read(r->fd, r->buf, sizeof(r->buf));
	if (r->n < 0)
		CHECK_INT(errno, EBADF);
	return NULL;
}

/* A thread that waits has nothing to do with what gets the number meanwhile. */
static void *number_reused(void *arg)
{
	int w = opened(O_RDWR), other;
	struct reuse r = { .fd = opened(O_RDONLY) };
	char path[80];
	pthread_t t;

	blocked.count = 0;
	t = start(reads_what_is_closed, &r);
	event_wait(&blocked, 1);
	settle();
	CHECK_OK(close(r.fd));
	snprintf(path, sizeof(path), "%s/other", directory);
	other = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(other, r.fd);
	CHECK_INT(pwrite(other, "other's", 7, 0), 7);
	CHECK_INT(write(w, "own", 3), 3);
	finish(t);
	/* Natively 3, but on a busy machine it may come after the close. */
	CHECK(r.n < 0 || (r.n == 3 && memcmp(r.buf, "own", 3) == 0) || r.n == 7);
	if (r.n != 7)
		CHECK_INT(lseek(other, 0, SEEK_CUR), 0);
	else
		fputs("read another file\n", stderr);
	CHECK_OK(close(other));
	CHECK_OK(close(w));
	CHECK_OK(unlink(path));
	return arg;
}

/* One descriptor for both: it is never at its end. */
static void *both_ways(void *arg)
{
	int fd = opened(O_RDWR);
	char buf[8];
	pthread_t t;

	CHECK_KEEPS(write(fd, "ab", 2), 2);
	CHECK_KEEPS(read(fd, buf, 1), 1);
	CHECK_KEEPS(read(fd, buf, 8), 1);
	CHECK_INT(buf[0], 'b');
	for (int i = 0; i < 5; i++) {
		blocked.count = 0;
		t = start(writes_late, (void *)(intptr_t)fd);
		event_post(&blocked);
		CHECK_KEEPS(read(fd, buf, sizeof(buf)), 4);
		finish(t);
		CHECK_OK(memcmp(buf, "late", 4));
	}
	CHECK_OK(close(fd));
	return arg;
}

/* ---- ended by something else ---------------------------------------------- */

static void handler(int sig)
{
	(void)sig;
}

static void *reads_interrupted(void *arg)
{
	char c;

	event_post(&blocked);
	CHECK_ERR(read((int)(intptr_t)arg, &c, 1), EINTR);
	return NULL;
}

static void *reads_for_ever(void *arg)
{
	char c;

	event_post(&blocked);
	read((int)(intptr_t)arg, &c, 1);
	fail(__FILE__, __LINE__, "read returned\n");
	return NULL;
}

static void *ended(void *arg)
{
	struct sigaction sa = { .sa_handler = handler };
	int flags[] = { O_RDONLY, O_RDWR }, fd, w;
	void *value;
	pthread_t t;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	for (int i = 0; i < 2; i++) {
		fd = opened(flags[i] | O_NONBLOCK);
		w = opened(O_WRONLY);
		set_blocking(fd);
		blocked.count = 0;
		t = start(reads_interrupted, (void *)(intptr_t)fd);
		event_wait(&blocked, 1);
		do {
			settle();
			CHECK_OK(pthread_kill(t, SIGUSR1));
			settle();
		} while (pthread_tryjoin_np(t, NULL) == EBUSY);
		t = start(reads_for_ever, (void *)(intptr_t)fd);
		event_wait(&blocked, 2);
		settle();
		CHECK_OK(pthread_cancel(t));
		CHECK_OK(pthread_join(t, &value));
		CHECK(value == PTHREAD_CANCELED);
		CHECK_OK(close(fd));
		CHECK_ERR(open(name, O_WRONLY | O_NONBLOCK), ENXIO);
		CHECK_OK(close(w));
	}
	return arg;
}

/* ---- writing --------------------------------------------------------------- */

static void *drains(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[10000];
	size_t have = 0;

	while (have < BIG) {
		ssize_t n = read(fd, buf, sizeof(buf));

		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i += 97)
			CHECK_INT(buf[i], (char)((have + (size_t)i) / 3));
		have += (size_t)n;
	}
	return NULL;
}

static void *writes(void *arg)
{
	int fd = opened(O_RDONLY | O_NONBLOCK), w = opened(O_WRONLY);
	char *big = malloc(BIG), one[PIPE_BUF] = { 0 };
	struct iovec iov[2];
	int size = fcntl(w, F_GETPIPE_SZ), pages = 0;
	pthread_t t;

	for (int i = 0; i < BIG; i++)
		big[i] = (char)(i / 3);
	set_blocking(fd);
	t = start(drains, (void *)(intptr_t)fd);
	CHECK_KEEPS(write(w, big, BIG), BIG);
	finish(t);
	t = start(drains, (void *)(intptr_t)fd);
	iov[0] = (struct iovec){ big, 1001 };
	iov[1] = (struct iovec){ big + 1001, BIG - 1001 };
	CHECK_KEEPS(writev(w, iov, 2), BIG);
	finish(t);
	/* Full of pages, the last one of which has room for bytes. */
	CHECK_OK(fcntl(w, F_SETFL, O_NONBLOCK));
	while (write(w, one, sizeof(one)) == sizeof(one))
		pages++;
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(pages, size / PIPE_BUF);
	CHECK_INT(read(fd, one, sizeof(one)), sizeof(one));
	set_blocking(w);
	for (int i = 0; i < 100; i++)
		CHECK_KEEPS(write(w, one, 3), 3);
	for (int i = 0; i < pages - 1; i++)
		CHECK_INT(read(fd, one, sizeof(one)), sizeof(one));
	CHECK_INT(read(fd, one, sizeof(one)), 300);
	CHECK_OK(close(fd));
	CHECK_ERR(write(w, one, 1), EPIPE);
	CHECK_ERR(write(w, big, BIG), EPIPE);
	CHECK_ERR(read(w, one, 1), EBADF);
	CHECK_OK(close(w));
	free(big);
	return arg;
}

int main(void)
{
	static const struct {
		const char *what;
		void *(*fn)(void *);
	} parts[] = {
		{ "ends go", ends_go }, { "never written", never_written },
		{ "has to wait", has_to_wait }, { "asks for nothing", asks_for_nothing },
		{ "number reused", number_reused }, { "both ways", both_ways },
		{ "ended", ended }, { "writes", writes },
	};

	signal(SIGPIPE, SIG_IGN);
	CHECK(mkdtemp(directory) != NULL);
	snprintf(name, sizeof(name), "%s/fifo", directory);
	CHECK_OK(mkfifo(name, 0600));
	for (size_t i = 0; i < COUNT(parts); i++) {
		finish(start(parts[i].fn, NULL));
		puts(parts[i].what);
	}
	CHECK_OK(unlink(name));
	CHECK_OK(rmdir(directory));
	return success();
}
