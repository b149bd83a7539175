/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/ipc_queues.c - the kernel's queues and semaphores, System V and POSIX: a
 * thread that waits lets the others run, and gets its normal result.
 */
#include "check.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

struct message {
	long type;
	char text[64];
};

static void *volatile nowhere = (void *)16, *volatile null;
static struct event begun = EVENT_INIT;
static int queue, sems;
static mqd_t posix_queue;

static void handler(int sig)
{
	(void)sig;
}

/* ---- System V ---- */

static void *receives(void *arg)
{
	long type = (long)(intptr_t)arg;
	struct message m;

	event_post(&begun);
	CHECK_KEEPS(msgrcv(queue, &m, sizeof(m.text), type, 0), 5);
	CHECK_INT(m.type, type);
	CHECK_OK(memcmp(m.text, "hello", 5));
	return NULL;
}

static void *fills(void *arg)
{
	struct message m = { .type = 77 };

	/* More than fits: the rest waits until somebody receives. */
	for (int i = 0; i < 400; i++)
		CHECK_KEEPS(msgsnd(queue, &m, sizeof(m.text), 0), 0);
	return arg;
}

static void *is_interrupted(void *arg)
{
	struct message m;
	struct sembuf down = { .sem_num = 1, .sem_op = -1 };

	event_post(&begun);
	if (arg)
		CHECK_ERR(msgrcv(queue, &m, sizeof(m.text), 99, 0), EINTR);
	else
		CHECK_ERR(semop(sems, &down, 1), EINTR);
	return NULL;
}

static void interrupt(void *(*fn)(void *), void *arg)
{
	int had = begun.count;
	pthread_t t = start(fn, arg);

	event_wait(&begun, had + 1);
	settle();
	/* It may not have got there yet: again until it has. */
	while (pthread_tryjoin_np(t, NULL) == EBUSY) {
		CHECK_OK(pthread_kill(t, SIGUSR1));
		settle();
	}
}

static void system_v_queue(void)
{
	struct message m = { .type = 1 };
	pthread_t t[4];
	void *value;

	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(queue >= 0);
	CHECK_ERR(msgrcv(queue, &m, 1, 0, IPC_NOWAIT), ENOMSG);
	CHECK_ERR(msgrcv(-1, &m, 1, 0, 0), EINVAL);
	CHECK_ERR(msgrcv(queue, &m, (size_t)-1, 0, 0), EINVAL);
	CHECK_ERR(msgsnd(queue, &m, 1 << 30, 0), EINVAL);
	CHECK_ERR(msgsnd(queue, nowhere, 1, 0), EFAULT);
	m.type = 0;
	CHECK_ERR(msgsnd(queue, &m, 1, 0), EINVAL);
	for (intptr_t i = 0; i < 4; i++)
		t[i] = start(receives, (void *)(i + 1));
	event_wait(&begun, 4);
	settle();
	memcpy(m.text, "hello", 5);
	for (m.type = 4; m.type > 0; m.type--)
		CHECK_KEEPS(msgsnd(queue, &m, 5, 0), 0);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	t[0] = start(fills, NULL);
	for (int i = 0; i < 400; i++) {
		CHECK_INT(msgrcv(queue, &m, sizeof(m.text), 77, 0), sizeof(m.text));
		CHECK_INT(m.type, 77);
	}
	finish(t[0]);
	/* Too long for the room: an error, or cut. */
	m.type = 5;
	CHECK_OK(msgsnd(queue, &m, 10, 0));
	CHECK_ERR(msgrcv(queue, &m, 5, 5, 0), E2BIG);
	CHECK_KEEPS(msgrcv(queue, &m, 5, 5, MSG_NOERROR), 5);
	interrupt(is_interrupted, "");
	/* Cancelled, and then the queue is removed under a waiter. */
	t[0] = start(receives, (void *)50);
	settle();
	CHECK_OK(pthread_cancel(t[0]));
	CHECK_OK(pthread_join(t[0], &value));
	CHECK(value == PTHREAD_CANCELED);
	CHECK_OK(msgctl(queue, IPC_RMID, NULL));
	CHECK_ERR(msgrcv(queue, &m, 5, 5, 0), EINVAL);
	puts("message queues");
}

static int turns, order;

static void *takes_turns(void *arg)
{
	struct sembuf down = { .sem_num = 0, .sem_op = -1 },
		      up = { .sem_num = 0, .sem_op = 1 };

	for (int i = 0; i < 50; i++) {
		CHECK_KEEPS(semop(sems, &down, 1), 0);
		CHECK_INT(__atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST), 1);
		order++;
		if (i % 10 == 0)
			usleep(100);
		CHECK_INT(__atomic_sub_fetch(&turns, 1, __ATOMIC_SEQ_CST), 0);
		CHECK_KEEPS(semop(sems, &up, 1), 0);
	}
	return arg;
}

static void system_v_semaphores(void)
{
	struct sembuf up = { .sem_num = 0, .sem_op = 1 },
		      down = { .sem_num = 1, .sem_op = -1 },
		      nowait = { .sem_num = 1, .sem_op = -1, .sem_flg = IPC_NOWAIT },
		      bad = { .sem_num = 9, .sem_op = -1 };
	struct timespec ts = { 0, 10 * MS }, wrong = { 0, 1000 * MS };
	pthread_t t[6];
	long long t0;

	sems = semget(IPC_PRIVATE, 2, 0600);
	CHECK(sems >= 0);
	CHECK_KEEPS(semop(sems, &up, 1), 0);
	for (int i = 0; i < 6; i++)
		t[i] = start(takes_turns, NULL);
	for (int i = 0; i < 6; i++)
		finish(t[i]);
	CHECK_INT(order, 300);
	CHECK_ERR(semop(sems, &nowait, 1), EAGAIN);
	CHECK_ERR(semop(sems, &bad, 1), EFBIG);
	CHECK_ERR(semop(sems, &up, 0), EINVAL);
	CHECK_ERR(semop(sems, nowhere, 1), EFAULT);
	CHECK_ERR(semop(-1, &up, 1), EINVAL);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_ERR(semtimedop(sems, &down, 1, &ts), EAGAIN);
	CHECK(now(CLOCK_MONOTONIC) - t0 >= 10 * MS);
	CHECK_ERR(semtimedop(sems, &down, 1, &wrong), EINVAL);
	CHECK_ERR(semtimedop(sems, &down, 1, nowhere), EFAULT);
	CHECK_KEEPS(semtimedop(sems, &up, 1, &ts), 0);
	CHECK_KEEPS(semtimedop(sems, &up, 1, NULL), 0);
	interrupt(is_interrupted, NULL);
	CHECK_OK(semctl(sems, 0, IPC_RMID));
	puts("semaphores");
}

/* ---- POSIX ---- */

static void *mq_receives(void *arg)
{
	char buf[64];
	unsigned priority = 99;

	event_post(&begun);
	CHECK_KEEPS(mq_receive(posix_queue, buf, sizeof(buf), &priority), 5);
	CHECK_INT(priority, 3);
	return arg;
}

static void *mq_sends(void *arg)
{
	/* Room for two: the others wait. */
	for (int i = 0; i < 10; i++)
		CHECK_KEEPS(mq_send(posix_queue, "x", 1, 0), 0);
	return arg;
}

static void *mq_interrupted(void *arg)
{
	char buf[64];

	event_post(&begun);
	CHECK_ERR(mq_receive(posix_queue, buf, sizeof(buf), NULL), EINTR);
	return arg;
}

static void posix(void)
{
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 64 };
	struct timespec ts, wrong = { 0, 1000 * MS };
	char name[64], buf[64];
	pthread_t t[3];
	long long t0;

	snprintf(name, sizeof(name), "/check-%d", (int)getpid());
	posix_queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	/* Not every kernel has them. */
	if (posix_queue == (mqd_t)-1 && errno == ENOSYS)
		return;
	CHECK(posix_queue >= 0);
	CHECK_OK(mq_unlink(name));
	CHECK_ERR(mq_receive(posix_queue, buf, 1, NULL), EMSGSIZE);
	CHECK_ERR(mq_receive((mqd_t)-1, buf, 64, NULL), EBADF);
	CHECK_ERR(mq_send(posix_queue, buf, 65, 0), EMSGSIZE);
	CHECK_ERR(mq_send(posix_queue, buf, 1, 1 << 20), EINVAL);
	CHECK_ERR(mq_send(posix_queue, nowhere, 1, 0), EFAULT);
	t[0] = start(mq_receives, NULL);
	t[1] = start(mq_receives, NULL);
	settle();
	CHECK_KEEPS(mq_send(posix_queue, "12345", 5, 3), 0);
	CHECK_KEEPS(mq_send(posix_queue, "12345", 5, 3), 0);
	finish(t[0]);
	finish(t[1]);
	t[0] = start(mq_sends, NULL);
	for (int i = 0; i < 10; i++)
		CHECK_INT(mq_receive(posix_queue, buf, sizeof(buf), NULL), 1);
	finish(t[0]);
	ts = in(CLOCK_REALTIME, 10 * MS);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_ERR(mq_timedreceive(posix_queue, buf, 64, NULL, &ts), ETIMEDOUT);
	/* Set by the other clock, which may run a little differently. */
	CHECK(now(CLOCK_MONOTONIC) - t0 >= 9 * MS);
	CHECK_ERR(mq_timedreceive(posix_queue, buf, 64, NULL, &wrong), EINVAL);
	CHECK_ERR(mq_timedreceive(posix_queue, buf, 64, NULL, nowhere), EFAULT);
	ts = (struct timespec){ 0, 0 };
	CHECK_ERR(mq_timedreceive(posix_queue, buf, 64, NULL, &ts), ETIMEDOUT);
	CHECK_KEEPS(mq_timedsend(posix_queue, "a", 1, 1, &ts), 0);
	CHECK_KEEPS(mq_timedsend(posix_queue, "b", 1, 2, null), 0);
	CHECK_ERR(mq_timedsend(posix_queue, "c", 1, 1, &ts), ETIMEDOUT);
	CHECK_ERR(mq_timedsend(posix_queue, "c", 1, 1, &wrong), EINVAL);
	/* The most urgent first. */
	CHECK_KEEPS(mq_timedreceive(posix_queue, buf, 64, NULL, null), 1);
	CHECK_INT(buf[0], 'b');
	CHECK_KEEPS(mq_receive(posix_queue, buf, 64, NULL), 1);
	interrupt(mq_interrupted, NULL);
	/* With O_NONBLOCK nothing waits. */
	attr.mq_flags = O_NONBLOCK;
	CHECK_OK(mq_setattr(posix_queue, &attr, NULL));
	CHECK_ERR(mq_receive(posix_queue, buf, 64, NULL), EAGAIN);
	CHECK_OK(mq_close(posix_queue));
}

static void *all(void *arg)
{
	system_v_queue();
	system_v_semaphores();
	posix();
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	finish(start(all, NULL));
	order = 0;
	all(NULL);
	return success();
}
