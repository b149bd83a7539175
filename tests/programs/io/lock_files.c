/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/lock_files.c - flock, lockf and fcntl locks that another process or thread
 * holds.
 */
#include "check.h"

#include <sys/file.h>
#include <sys/wait.h>

enum { FLOCK, POSIX, OFD, LOCKF, KINDS };

static char name[] = "/tmp/check-XXXXXX";
static struct event waiting = EVENT_INIT;
static int inside;

static struct flock whole(short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET };
}

static int lock(int fd, int kind, int wait)
{
	struct flock l = whole(F_WRLCK);

	switch (kind) {
	case FLOCK:	return flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
	case POSIX:	return fcntl(fd, wait ? F_SETLKW : F_SETLK, &l);
	case OFD:	return fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l);
	default:	return lockf(fd, wait ? F_LOCK : F_TLOCK, 0);
	}
}

static int unlock(int fd, int kind)
{
	struct flock l = whole(F_UNLCK);

	switch (kind) {
	case FLOCK:	return flock(fd, LOCK_UN);
	case POSIX:	return fcntl(fd, F_SETLK, &l);
	case OFD:	return fcntl(fd, F_OFD_SETLK, &l);
	default:	return lockf(fd, F_ULOCK, 0);
	}
}

/* Locks of an open file: threads that opened it themselves exclude each other. */
static void *takes_turns(void *arg)
{
	int kind = (int)(intptr_t)arg, fd = open(name, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	for (int i = 0; i < 20; i++) {
		CHECK_KEEPS(lock(fd, kind, 1), 0);
		CHECK_INT(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST), 1);
		if (i % 5 == 0)
			usleep(100);
		CHECK_INT(__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST), 0);
		CHECK_KEEPS(unlock(fd, kind), 0);
	}
	close(fd);
	return NULL;
}

struct other {
	pid_t pid;
	int go;
};

/* Another process that has the lock until it is told. */
static struct other holder(int kind)
{
	struct other o;
	int ready[2], go[2];
	char c;

	CHECK_OK(pipe2(ready, O_CLOEXEC));
	CHECK_OK(pipe2(go, O_CLOEXEC));
	o.pid = fork();
	CHECK(o.pid >= 0);
	if (o.pid == 0) {
		int fd = open(name, O_RDWR);

		close(go[1]);
		if (fd < 0 || lock(fd, kind, 1) != 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		if (read(go[0], &c, 1) != 0)
			_exit(2);
		_exit(0);
	}
	close(go[0]);
	close(ready[1]);
	CHECK_INT(read(ready[0], &c, 1), 1);
	close(ready[0]);
	o.go = go[1];
	return o;
}

static void *wants(void *arg)
{
	int kind = (int)(intptr_t)arg, fd = open(name, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	errno = 0;
	CHECK_INT(lock(fd, kind, 0), -1);
	CHECK(errno == EAGAIN || errno == EACCES);
	event_post(&waiting);
	CHECK_KEEPS(lock(fd, kind, 1), 0);
	CHECK_KEEPS(unlock(fd, kind), 0);
	close(fd);
	return NULL;
}

static void *wants_interrupted(void *arg)
{
	int kind = (int)(intptr_t)arg, fd = open(name, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	event_post(&waiting);
	CHECK_ERR(lock(fd, kind, 1), EINTR);
	close(fd);
	return NULL;
}

static void handler(int sig)
{
	(void)sig;
}

static void other_process(int kind)
{
	struct other o = holder(kind);
	int had = waiting.count, status;
	pthread_t t, u;

	t = start(wants, (void *)(intptr_t)kind);
	u = start(wants_interrupted, (void *)(intptr_t)kind);
	event_wait(&waiting, had + 2);
	settle();
	/* It may not have got there yet: again until it has. */
	while (pthread_tryjoin_np(u, NULL) == EBUSY) {
		CHECK_OK(pthread_kill(u, SIGUSR1));
		settle();
	}
	CHECK_INT(pthread_tryjoin_np(t, NULL), EBUSY);
	close(o.go);
	finish(t);
	CHECK_INT(waitpid(o.pid, &status, 0), o.pid);
	CHECK_INT(status, 0);
}

static void *errors(void *arg)
{
	struct flock l = whole(F_WRLCK);
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	CHECK_ERR(flock(-1, LOCK_EX), EBADF);
	CHECK_ERR(flock(fd, 0), EINVAL);
	CHECK_ERR(flock(fd, LOCK_EX | LOCK_SH), EINVAL);
	CHECK_ERR(fcntl(fd, F_SETLKW, &l), EBADF);
	CHECK_ERR(fcntl(fd, F_OFD_SETLKW, &l), EBADF);
	CHECK_ERR(fcntl(-1, F_SETLKW, &l), EBADF);
	CHECK_ERR(fcntl(fd, F_SETLKW, (void *)16), EFAULT);
	l.l_pid = 1;
	l.l_type = F_RDLCK;
	CHECK_ERR(fcntl(fd, F_OFD_SETLKW, &l), EINVAL);
	l.l_pid = 0;
	l.l_type = 77;
	CHECK_ERR(fcntl(fd, F_SETLKW, &l), EINVAL);
	CHECK_ERR(lockf(fd, F_LOCK, 0), EBADF);
	CHECK_ERR(lockf(fd, 77, 0), EINVAL);
	/* Shared ones do not exclude each other. */
	int again = open(name, O_RDONLY | O_CLOEXEC);
	CHECK_KEEPS(flock(fd, LOCK_SH), 0);
	CHECK_KEEPS(flock(again, LOCK_SH), 0);
	CHECK_ERR(flock(again, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	close(fd);
	CHECK_KEEPS(flock(again, LOCK_EX), 0);
	close(again);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t[6];
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	close(fd);
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	finish(start(errors, NULL));
	errors(NULL);
	puts("errors");
	for (int kind = FLOCK; kind <= OFD; kind += OFD - FLOCK) {
		for (int i = 0; i < 6; i++)
			t[i] = start(takes_turns, (void *)(intptr_t)kind);
		for (int i = 0; i < 6; i++)
			finish(t[i]);
	}
	puts("turns");
	for (int kind = 0; kind < KINDS; kind++)
		other_process(kind);
	CHECK_OK(unlink(name));
	return success();
}
