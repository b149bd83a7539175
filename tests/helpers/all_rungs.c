/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/all_rungs.c - a program that makes the library use all that it asks the kernel for, in
 * a quarter of a second: threads of each kind, each rung of the calls, signals, fork.  Prints a line
 * for each part, always the same.  A thread that is refused with EAGAIN is asked for again, and said
 * on stderr; after TRIES of them the program ends with REFUSED.  With RESTS in the environment it sleeps
 * 2.5 s after the first part, in which the library gives back the threads that have ended.
 */
#include "check.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { TRIES = 20, REFUSED = 11, PEERS = 3, CHUNK = 200000 };

static int is_refused(int err)
{
	static int refused;

	if (!err)
		return 0;
	CHECK_INT(err, EAGAIN);
	if (write(2, "EAGAIN\n", 7) < 0 || __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED) > TRIES)
		_exit(REFUSED);
	usleep(1000);
	return 1;
}

static pthread_t begin_as(const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	pthread_t t;

	while (is_refused(pthread_create(&t, attr, fn, arg)))
		continue;
	return t;
}

static pthread_t begin(void *(*fn)(void *), void *arg)
{
	return begin_as(NULL, fn, arg);
}

/* ---- threads ------------------------------------------------------------- */

static __thread int local = 7;

static void *touch(void *arg)
{
	CHECK_INT(local, 7);
	local = dig(10000);
	return arg;
}

/* Attributes of a thread that stays a kernel thread. */
static void bind_to_cpus(pthread_attr_t *attr)
{
	cpu_set_t cpus;

	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_OK(pthread_attr_setaffinity_np(attr, sizeof(cpus), &cpus));
}

static void threads(void)
{
	enum { N = 24 };
	pthread_t t[N];
	pthread_attr_t attr;
	long sum = 0;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, 1 << 20));
	for (int round = 0; round < 2; round++) {
		for (intptr_t i = 0; i < N; i++)
			t[i] = begin_as(i % 2 ? &attr : NULL, touch, (void *)i);
		for (int i = 0; i < N; i++)
			sum += (intptr_t)finish(t[i]);
	}
	bind_to_cpus(&attr);
	sum += (intptr_t)finish(begin_as(&attr, touch, (void *)1000));
	CHECK_OK(pthread_attr_destroy(&attr));
	CHECK_OK(pthread_detach(begin(touch, NULL)));
	printf("threads %ld\n", sum);
}

/* ---- locks --------------------------------------------------------------- */

static struct event ready = EVENT_INIT, turn = EVENT_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int counted;

static void *lock_all(void *arg)
{
	static uint32_t shared;
	const struct timespec moment = { .tv_nsec = 2 * MS };
	struct timespec late;

	event_post(&ready);
	event_wait(&turn, 1);
	for (int i = 0; i < 50; i++) {
		CHECK_OK(pthread_mutex_lock(&lock));
		counted++;
		if (i % 10 == 0)
			usleep(50);
		CHECK_OK(pthread_mutex_unlock(&lock));
		CHECK_OK(i % 8 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
		sched_yield();
		CHECK_OK(pthread_rwlock_unlock(&rwlock));
	}
	late = in(CLOCK_REALTIME, 2 * MS);
	CHECK_ERR(sem_timedwait(&semaphore, &late), ETIMEDOUT);
	while (syscall(SYS_futex, &shared, FUTEX_WAIT, 0, &moment, NULL, 0) && errno == EINTR)
		continue;
	CHECK_INT(errno, ETIMEDOUT);
	pthread_barrier_wait(&barrier);
	return arg;
}

static void locks(void)
{
	enum { N = 6 };
	pthread_t t[N];

	CHECK_OK(sem_init(&semaphore, 0, 0) || pthread_barrier_init(&barrier, NULL, N));
	for (int i = 0; i < N; i++)
		t[i] = begin(lock_all, NULL);
	event_wait(&ready, N);
	event_post(&turn);
	for (int i = 0; i < N; i++)
		finish(t[i]);
	printf("locks %d\n", counted);
}

/* ---- descriptors --------------------------------------------------------- */

static unsigned checksum(const unsigned char *bytes, size_t n)
{
	unsigned sum = 1;

	while (n--)
		sum = sum * 31 + *bytes++;
	return sum;
}

static struct sockaddr_in address;
static int listener, first[2], second[2];

static void *serve(void *arg)
{
	static char bytes[PEERS][CHUNK];
	char *mine = bytes[(intptr_t)arg];
	int fd = accept(listener, NULL, NULL);
	size_t n;

	CHECK(fd >= 0);
	settle();
	CHECK_INT(send(fd, "!", 1, 0), 1);
	n = read_all(fd, mine, CHUNK);
	write_all(fd, mine, n);
	CHECK_OK(close(fd));
	return NULL;
}

static void *ask(void *arg)
{
	static unsigned char bytes[PEERS][CHUNK];
	unsigned char *mine = bytes[(intptr_t)arg];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval limit = { .tv_sec = 30 };
	struct msghdr greeting = { .msg_iov = &(struct iovec){ mine, 1 }, .msg_iovlen = 1 };

	CHECK(fd >= 0);
	CHECK_OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK_INT(recvmsg(fd, &greeting, 0), 1);
	for (size_t i = 0; i < CHUNK; i++)
		mine[i] = (unsigned char)(i * (size_t)((intptr_t)arg + 3) >> 3);
	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	write_all(fd, mine, CHUNK);
	memset(mine, 0, CHUNK);
	CHECK_INT(read_all(fd, mine, CHUNK), CHUNK);
	CHECK_OK(close(fd));
	return (void *)(uintptr_t)checksum(mine, CHUNK);
}

static void sockets(void)
{
	socklen_t size = sizeof(address);
	pthread_t servers[PEERS], clients[PEERS];
	unsigned sum = 0;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(listen(listener, PEERS));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &size));
	for (intptr_t i = 0; i < PEERS; i++)
		servers[i] = begin(serve, (void *)i);
	settle();
	for (intptr_t i = 0; i < PEERS; i++)
		clients[i] = begin(ask, (void *)i);
	for (int i = 0; i < PEERS; i++) {
		sum += (unsigned)(uintptr_t)finish(clients[i]);
		finish(servers[i]);
	}
	CHECK_OK(close(listener));
	printf("sockets %08x\n", sum);
}

static void *wait_for_both(void *arg)
{
	struct pollfd p[2] = { { .fd = first[0], .events = POLLIN }, { .fd = second[0], .events = POLLIN } };
	struct timeval limit = { .tv_usec = 2000 };
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0);
	fd_set set;
	char c, unused;
	const struct iovec parts[2] = { { &c, 1 }, { &unused, 1 } };

	FD_ZERO(&set);
	FD_SET(first[0], &set);
	CHECK_OK(select(first[0] + 1, &set, NULL, NULL, &limit));
	CHECK_OK(poll(p, 2, 1));
	event_post(&turn);
	CHECK(poll(p, 2, -1) > 0);
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, first[0], &event));
	CHECK_INT(epoll_wait(epoll, &event, 1, -1), 1);
	CHECK_INT(read(first[0], &c, 1), 1);
	event_post(&turn);
	CHECK_INT(readv(second[0], parts, 2), 1);
	CHECK_OK(close(epoll));
	return arg;
}

/* A read that the library does not see. */
static void *read_unseen(void *arg)
{
	char c;

	CHECK_INT(read_raw(second[0], &c, 1), 1);
	return arg;
}

static void readiness(void)
{
	pthread_t t = begin(wait_for_both, NULL);

	event_wait(&turn, 2);
	settle();
	CHECK_INT(write(first[1], "a", 1), 1);
	event_wait(&turn, 3);
	settle();
	CHECK_INT(write(second[1], "b", 1), 1);
	finish(t);
	t = begin(read_unseen, NULL);
	settle();
	CHECK_INT(write(second[1], "c", 1), 1);
	finish(t);
	puts("readiness");
}

static void *use_file(void *arg)
{
	int fd = *(int *)arg, other = open("/proc/self/comm", O_RDONLY);
	char text[64];
	const struct iovec parts[2] = { { text, 4 }, { text + 4, 6 } };

	CHECK(other >= 0);
	CHECK(read(other, text, sizeof(text)) > 0);
	CHECK_OK(close(other));
	CHECK_OK(flock(fd, LOCK_EX));
	write_all(fd, "0123456789", 10);
	CHECK_OK(fsync(fd));
	CHECK_INT(pread(fd, text, 10, 0), 10);
	CHECK_INT(pwrite(fd, text, 10, 0), 10);
	/* Where the kernel refuses a request, the library makes the next one only for the call after the next. */
	for (int i = 0; i < 2; i++)
		CHECK_INT(pwritev(fd, parts, 2, 0), 10);
	CHECK_OK(flock(fd, LOCK_UN));
	return NULL;
}

static void files(void)
{
	pthread_t t[3];
	int fd = temp_file();

	for (int i = 0; i < 3; i++)
		t[i] = begin(use_file, &fd);
	for (int i = 0; i < 3; i++)
		finish(t[i]);
	printf("files %ld\n", (long)lseek(fd, 0, SEEK_END));
	CHECK_OK(close(fd));
	/* As a daemon does: what the library has there moves. */
	CHECK_INT(dup2(1, 100), 100);
	for (fd = 64; fd < 1024; fd++)
		close(fd);
}

/* ---- signals and cancellation -------------------------------------------- */

static volatile sig_atomic_t handled;

static void handle(int sig)
{
	(void)sig;
	handled++;
}

static void *be_interrupted(void *arg)
{
	sigset_t set;
	char c;
	int sig;

	event_post(&turn);
	CHECK_ERR(read(first[0], &c, 1), EINTR);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	event_post(&turn);
	CHECK_OK(sigwait(&set, &sig));
	CHECK_INT(sig, SIGUSR2);
	return arg;
}

static void *compute(void *arg)
{
	while (!handled)
		continue;
	return arg;
}

static void *be_cancelled(void *arg)
{
	char c;

	event_post(&turn);
	if (arg)
		event_wait(&turn, 1000);
	while (read(second[0], &c, 1) >= 0)
		continue;
	return arg;
}

static void signals(void)
{
	const struct sigaction action = { .sa_handler = handle };
	struct itimerspec soon = { .it_value.tv_nsec = 2 * MS };
	pthread_t t;
	timer_t timer;

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	t = begin(be_interrupted, NULL);
	event_wait(&turn, 4);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	event_wait(&turn, 5);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR2));
	finish(t);
	handled = 0;
	t = begin(compute, NULL);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
	handled = 0;
	CHECK_OK(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL,
							   .sigev_signo = SIGUSR1 }, &timer));
	CHECK_OK(timer_settime(timer, 0, &soon, NULL));
	while (!handled)
		usleep(500);
	CHECK_OK(timer_delete(timer));
	for (intptr_t i = 0; i < 2; i++) {
		t = begin(be_cancelled, i ? &ready : NULL);
		event_wait(&turn, 6 + (int)i);
		settle();
		CHECK_OK(pthread_cancel(t));
		CHECK(finish(t) == PTHREAD_CANCELED);
	}
	puts("signals");
}

static pthread_t readers[6];
static struct event reading = EVENT_INIT;

static void *read_for_ever(void *arg)
{
	char c;

	event_post(&reading);
	while (read(second[0], &c, 1) >= 0)
		continue;
	return arg;
}

static void *cancel_readers(void *arg)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		CHECK_OK(pthread_cancel(readers[i]));
	return arg;
}

/* By a kernel thread: they may go on elsewhere than where their requests are. */
static void cancellation(void)
{
	const int n = sizeof(readers) / sizeof(readers[0]);
	pthread_attr_t attr;

	CHECK_OK(pthread_attr_init(&attr));
	bind_to_cpus(&attr);
	for (int i = 0; i < n; i++)
		readers[i] = begin(read_for_ever, NULL);
	event_wait(&reading, n);
	settle();
	finish(begin_as(&attr, cancel_readers, NULL));
	for (int i = 0; i < n; i++)
		CHECK(finish(readers[i]) == PTHREAD_CANCELED);
	CHECK_OK(pthread_attr_destroy(&attr));
	puts("cancellation");
}

/* ---- processes ----------------------------------------------------------- */

static void *wire(void *arg)
{
	struct timespec used;

	prctl(PR_SET_TIMERSLACK, 1000);
	CHECK_OK(pthread_setname_np(pthread_self(), "wired"));
	usleep(1000);
	CHECK_OK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used));
	return arg;
}

static void *wait_for_child(void *arg)
{
	int status;

	CHECK_INT(waitpid(*(pid_t *)arg, &status, 0), *(pid_t *)arg);
	return (void *)(intptr_t)status;
}

static void processes(void)
{
	const pid_t child = fork();
	pid_t mine = child;
	intptr_t status;

	if (!child) {
		finish(begin(touch, NULL));
		usleep(1000);
		_exit(3);
	}
	status = (intptr_t)finish(begin(wait_for_child, &mine));
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == REFUSED)
		_exit(REFUSED);
	finish(begin(wire, NULL));
	printf("processes %d\n", (int)WEXITSTATUS(status));
}

int main(void)
{
	CHECK_OK(pipe(first) || pipe(second));
	threads();
	if (getenv("RESTS"))
		usleep(2500000);
	locks();
	turn.count = 1;
	sockets();
	readiness();
	files();
	signals();
	cancellation();
	processes();
	return success();
}
