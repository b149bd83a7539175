/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_wired_main.c - main takes a robust mutex, for which the kernel must know it, while
 * other threads wait for data. Each of main's waits then goes on until what it waits for comes, whatever comes
 * for the others meanwhile: no EINTR, no short count.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>

enum { READERS = 8, WAITS = 4, BYTES = 1 << 18 };

/* Makes main's wait end; and the wait itself. */
struct wait {
	void (*end)(void);
	void (*begin)(void);
};

static int data[WAITS * READERS][2], event, set, stream[2], tube[2];
static char bytes[BYTES];
static sem_t served;

static void *reader(void *arg)
{
	int fd = data[(intptr_t)arg][0];
	char c;

	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_OK(sem_post(&served));
	return NULL;
}

static void write_event(void)
{
	CHECK_OK(eventfd_write(event, 1));
}

static void wait_epoll(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int epoll = epoll_create1(0);

	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e));
	CHECK_INT(epoll_wait(epoll, &e, 1, -1), 1);
	CHECK_OK(close(epoll));
}

static void change_semaphore(short by)
{
	struct sembuf op = { .sem_op = by };

	CHECK_OK(semop(set, &op, 1));
}

static void post_semaphore(void)
{
	change_semaphore(1);
}

static void wait_semaphore(void)
{
	change_semaphore(-1);
}

static void send_byte(void)
{
	CHECK_INT(write(stream[1], "x", 1), 1);
}

static void wait_byte(void)
{
	char c;

	CHECK_INT(read(stream[0], &c, 1), 1);
}

static void drain(void)
{
	static char into[BYTES];

	for (size_t n = 0; n < BYTES;) {
		ssize_t got = read(tube[0], into, BYTES - n);

		CHECK(got > 0);
		n += (size_t)got;
	}
}

static void fill(void)
{
	CHECK_INT(write(tube[1], bytes, BYTES), BYTES);
}

static const struct wait waits[WAITS] = {
	{ write_event, wait_epoll },
	{ post_semaphore, wait_semaphore },
	{ send_byte, wait_byte },
	{ drain, fill },
};

/* While main waits, READERS threads that read since before main's mutex get a byte; only then what main waits for comes. */
static void *serve(void *arg)
{
	const struct wait *w = arg;

	await_others();
	for (int i = 0; i < READERS; i++) {
		CHECK_INT(write(data[(w - waits) * READERS + i][1], "x", 1), 1);
		CHECK_OK(sem_wait(&served));
	}
	w->end();
	return NULL;
}

int main(void)
{
	struct timeval limit = { .tv_sec = 1000 };
	pthread_t readers[WAITS * READERS], server;
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	CHECK_OK(sem_init(&served, 0, 0));
	event = eventfd(0, 0);
	set = semget(IPC_PRIVATE, 1, 0600);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	CHECK_OK(setsockopt(stream[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	CHECK_OK(pipe(tube));
	for (int i = 0; i < WAITS * READERS; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, data[i]));
		CHECK_OK(pthread_create(&readers[i], NULL, reader, (void *)(intptr_t)i));
	}
	await_others();
	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK_OK(pthread_mutex_init(&mutex, &attr));
	CHECK_OK(pthread_mutex_lock(&mutex));
	for (int i = 0; i < WAITS; i++) {
		CHECK_OK(pthread_create(&server, NULL, serve, (void *)&waits[i]));
		waits[i].begin();
		CHECK_OK(pthread_join(server, NULL));
	}
	CHECK_OK(pthread_mutex_unlock(&mutex));
	for (int i = 0; i < WAITS * READERS; i++)
		CHECK_OK(pthread_join(readers[i], NULL));
	CHECK_OK(semctl(set, 0, IPC_RMID));
	return success();
}
