/* SPDX-License-Identifier: MIT */
/* tests/programs/io/io_close.c - descriptors that come, go and change under threads. */
#include "check.h"

#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct event ready = EVENT_INIT;

static void *read_one(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char c = 0;
	ssize_t r;

	event_post(&ready);
	r = read(fd, &c, 1);
	if (r < 0)
		CHECK_INT(errno, EBADF);
	return (void *)(intptr_t)(r == 1 ? c : r);
}

/*
 * Closed while another thread reads: natively the reader goes on with what it
 * had opened, unless it came too late.
 */
static void close_under_reader(int kind)
{
	intptr_t got;
	pthread_t t;
	int p[2];

	CHECK_OK(kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, p) : pipe(p));
	ready.count = 0;
	t = start(read_one, (void *)(intptr_t)p[0]);
	event_wait(&ready, 1);
	settle();
	CHECK_OK(close(p[0]));
	signal(SIGPIPE, SIG_IGN);
	/* For a reader that came too late there is nobody to write to. */
	if (write(p[1], "x", 1) < 0)
		CHECK_INT(errno, EPIPE);
	close(p[1]);
	got = (intptr_t)finish(t);
	CHECK(got == 'x' || got == -1 || got == 0);
	CHECK_ERR(close(p[0]), EBADF);
}

/* The number is used again for something of another kind. */
static void reuse(void)
{
	char c;

	for (int i = 0; i < 60; i++) {
		int p[2], number, other;

		CHECK_OK(pipe(p));
		number = p[0];
		close_under_reader(i % 2 ? 1 : 0);
		CHECK_INT(write(p[1], "a", 1), 1);
		CHECK_INT(read(number, &c, 1), 1);
		CHECK_OK(close(number));
		CHECK_OK(close(p[1]));
		CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM | (i % 3 ? SOCK_NONBLOCK : 0),
				    0, p));
		CHECK_INT(p[0], number);
		if (i % 3)
			CHECK_ERR(read(number, &c, 1), EAGAIN);
		CHECK_INT(write(p[1], "b", 1), 1);
		CHECK_INT(read(number, &c, 1), 1);
		CHECK_INT(c, 'b');
		/* And replaced without a close. */
		other = open("/dev/zero", O_RDONLY);
		CHECK_INT(dup2(other, number), number);
		CHECK_INT(read(number, &c, 1), 1);
		CHECK_INT(c, 0);
		close(other);
		close(p[0]);
		close(p[1]);
	}
	puts("reuse");
}

static void *reuse_thread(void *arg)
{
	reuse();
	return arg;
}

static void duplicates(void)
{
	int p[2], d[5];
	char c;

	CHECK_OK(pipe(p));
	d[0] = dup(p[0]);
	d[1] = dup2(p[0], 100);
	CHECK_INT(d[1], 100);
	d[2] = dup3(p[0], 101, O_CLOEXEC);
	CHECK_INT(d[2], 101);
	CHECK_INT(fcntl(101, F_GETFD), FD_CLOEXEC);
	d[3] = fcntl(p[0], F_DUPFD, 200);
	CHECK_INT(d[3], 200);
	d[4] = fcntl(p[0], F_DUPFD_CLOEXEC, 200);
	CHECK_INT(d[4], 201);
	CHECK_ERR(dup3(p[0], p[0], 0), EINVAL);
	CHECK_INT(dup2(p[0], p[0]), p[0]);
	CHECK_ERR(dup2(99, 99), EBADF);
	CHECK_ERR(dup2(99, 100), EBADF);
	CHECK_ERR(dup(-1), EBADF);
	CHECK_ERR(dup2(p[0], -1), EBADF);
	for (int i = 0; i < 5; i++) {
		pthread_t t = start(read_one, (void *)(intptr_t)d[i]);

		CHECK_INT(write(p[1], "d", 1), 1);
		CHECK((intptr_t)finish(t) == 'd');
	}
	/* O_NONBLOCK belongs to what they all share. */
	CHECK_OK(fcntl(d[0], F_SETFL, O_NONBLOCK));
	CHECK_ERR(read(p[0], &c, 1), EAGAIN);
	CHECK_ERR(read(d[4], &c, 1), EAGAIN);
	CHECK_OK(fcntl(p[0], F_SETFL, 0));
	close(p[0]);
	CHECK_INT(write(p[1], "e", 1), 1);
	CHECK((intptr_t)finish(start(read_one, (void *)(intptr_t)d[3])) == 'e');
	for (int i = 0; i < 5; i++)
		CHECK_OK(close(d[i]));
	close(p[1]);
	puts("duplicates");
}

/* What must work whatever was closed. */
static void *works(void *arg)
{
	struct pollfd set;
	pthread_t t;
	int p[2];

	for (int i = 0; i < 5; i++) {
		CHECK_OK(pipe(p));
		t = start(read_one, (void *)(intptr_t)p[0]);
		usleep(500);
		CHECK_INT(write(p[1], "w", 1), 1);
		CHECK((intptr_t)finish(t) == 'w');
		set.fd = p[0];
		set.events = POLLIN;
		CHECK_OK(poll(&set, 1, 1));
		close(p[0]);
		close(p[1]);
	}
	return arg;
}

static void *closes_all(void *arg)
{
	DIR *dir;
	struct dirent *entry;

	switch ((intptr_t)arg) {
	case 0:
		for (int fd = 3; fd < 2048; fd++)
			close(fd);
		break;
	case 1:
		closefrom(3);
		break;
	case 2:
		CHECK_OK(close_range(3, ~0U, 0));
		break;
	case 3:
		dir = opendir("/proc/self/fd");
		CHECK(dir != NULL);
		while ((entry = readdir(dir)))
			if (atoi(entry->d_name) > 2 &&
			    atoi(entry->d_name) != dirfd(dir))
				close(atoi(entry->d_name));
		closedir(dir);
		break;
	case 4:
		CHECK_OK(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
		break;
	case 5: {
		struct rlimit limit;

		/* As daemons do it. */
		CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
		for (rlim_t fd = 3; fd < limit.rlim_cur && fd < 70000; fd++)
			close((int)fd);
		break;
	}
	case 6:
		for (int fd = 3; fd < 1500; fd++) {
			if (fcntl(fd, F_GETFD) >= 0)
				continue;
			CHECK_INT(dup2(0, fd), fd);
			CHECK_OK(close(fd));
		}
		break;
	}
	return NULL;
}

static void *asleep(void *arg)
{
	usleep(20000);
	return arg;
}

int main(void)
{
	pthread_t t, sleeper;
	int status;
	pid_t pid;

	CHECK_ERR(close(-1), EBADF);
	CHECK_ERR(close(12345), EBADF);
	close_under_reader(0);
	close_under_reader(1);
	reuse();
	t = start(reuse_thread, NULL);
	finish(t);
	duplicates();
	for (intptr_t how = 0; how < 7; how++) {
		sleeper = start(asleep, NULL);
		works(NULL);
		closes_all((void *)how);
		works(NULL);
		finish(start(works, NULL));
		finish(start(closes_all, (void *)how));
		finish(start(works, NULL));
		finish(sleeper);
		printf("closed all, way %d\n", (int)how);
	}
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		closefrom(3);
		works(NULL);
		finish(start(works, NULL));
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_OK(status);
	return success();
}
