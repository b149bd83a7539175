/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/stress_churn.c - a storm of short threads, by seed.
 *
 *	stress_churn [SEED [THREADS]]
 *
 * Each thread does a few random things that others may have to wait for, and
 * may make threads itself, joined or detached.  At the end all sums are right.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>

#define ACCOUNTS 8
#define ROOM 50

static struct {
	pthread_mutex_t lock;
	long balance;
} account[ACCOUNTS];

static pthread_mutex_t tally_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tally_cond = PTHREAD_COND_INITIALIZER;
static long alive, made, limit = 1500;
static sem_t room;
static __thread long mine = 11;
static pthread_key_t key;
static long destroyed;

static void on_destroy(void *value)
{
	(void)value;
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static void transfer(uint64_t *seed)
{
	size_t a = random_next(seed) % ACCOUNTS, b = random_next(seed) % ACCOUNTS;
	long amount = (long)(random_next(seed) % 100);

	if (a == b)
		return;
	CHECK_OK(pthread_mutex_lock(&account[a < b ? a : b].lock));
	if (amount % 7 == 0)
		sched_yield();
	CHECK_OK(pthread_mutex_lock(&account[a < b ? b : a].lock));
	account[a].balance -= amount;
	account[b].balance += amount;
	CHECK_OK(pthread_mutex_unlock(&account[a].lock));
	CHECK_OK(pthread_mutex_unlock(&account[b].lock));
}

struct chat {
	int fd;
	uint64_t seed;
};

static void *answers(void *arg)
{
	struct chat *chat = arg;
	uint32_t n;

	while (read_all(chat->fd, &n, sizeof(n)) == sizeof(n)) {
		n++;
		write_all(chat->fd, &n, sizeof(n));
	}
	close(chat->fd);
	return (void *)(intptr_t)chat->seed;
}

static void talk(uint64_t *seed)
{
	uint64_t r = random_next(seed);
	struct chat chat;
	struct pollfd p;
	pthread_t t;
	int s[2];

	CHECK_OK(r % 2 ? socketpair(AF_UNIX, SOCK_STREAM, 0, s) :
			 socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	chat = (struct chat){ s[1], r >> 40 };
	t = start(answers, &chat);
	for (uint32_t i = 0; i < 1 + r / 2 % 5; i++) {
		uint32_t n = (uint32_t)random_next(seed), got;

		write_all(s[0], &n, sizeof(n));
		if (n % 3 == 0) {
			p = (struct pollfd){ s[0], POLLIN, 0 };
			CHECK_INT(poll(&p, 1, 30000), 1);
			CHECK_INT(p.revents, POLLIN);
		}
		CHECK_INT(read_all(s[0], &got, sizeof(got)), sizeof(got));
		CHECK_INT(got, n + 1);
	}
	close(s[0]);
	CHECK_INT((intptr_t)finish(t), chat.seed);
}

static void *body(void *arg);

static void spawn(uint64_t *seed)
{
	uint64_t r = random_next(seed);
	pthread_attr_t attr;
	pthread_t t;
	int detach = r % 2;

	CHECK_OK(pthread_mutex_lock(&tally_lock));
	if (made >= limit) {
		CHECK_OK(pthread_mutex_unlock(&tally_lock));
		return;
	}
	made++;
	alive++;
	CHECK_OK(pthread_mutex_unlock(&tally_lock));
	CHECK_OK(pthread_attr_init(&attr));
	if (r % 5 == 0)
		CHECK_OK(pthread_attr_setstacksize(&attr,
				(size_t)65536 << (r >> 8) % 6));
	if (detach && r % 4 == 1)
		CHECK_OK(pthread_attr_setdetachstate(&attr,
						     PTHREAD_CREATE_DETACHED));
	CHECK_OK(pthread_create(&t, &attr, body, (void *)(uintptr_t)(r | 1)));
	CHECK_OK(pthread_attr_destroy(&attr));
	if (detach && r % 4 != 1)
		CHECK_OK(pthread_detach(t));
	if (!detach) {
		void *value;

		CHECK_OK(pthread_join(t, &value));
		CHECK((uintptr_t)value == (uintptr_t)(r | 1));
	}
}

static void *body(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg;
	int steps = (int)(random_next(&seed) % 6) + 1;
	struct timespec ts;

	CHECK_INT(mine, 11);
	mine = (long)(uintptr_t)arg;
	CHECK(pthread_getspecific(key) == NULL);
	CHECK_OK(pthread_setspecific(key, arg));
	while (steps--) {
		switch (random_next(&seed) % 9) {
		case 0:
			transfer(&seed);
			transfer(&seed);
			break;
		case 1:
			talk(&seed);
			break;
		case 2:
			spawn(&seed);
			break;
		case 3:
			usleep((useconds_t)(random_next(&seed) % 300));
			break;
		case 4:
			sched_yield();
			break;
		case 5:
			/* May or may not be in time. */
			ts = in(CLOCK_REALTIME, 100000);
			if (!sem_timedwait(&room, &ts)) {
				sched_yield();
				CHECK_OK(sem_post(&room));
			} else {
				CHECK_INT(errno, ETIMEDOUT);
			}
			break;
		case 6:
			CHECK_OK(sem_wait(&room));
			transfer(&seed);
			CHECK_OK(sem_post(&room));
			break;
		case 7:
			CHECK_OK(poll(NULL, 0, 0));
			break;
		case 8:
			for (volatile int i = 0; i < 3000; i++)
				;
			break;
		}
		CHECK_INT(mine, (long)(uintptr_t)arg);
		CHECK(pthread_getspecific(key) == arg);
	}
	CHECK_OK(pthread_mutex_lock(&tally_lock));
	if (!--alive)
		CHECK_OK(pthread_cond_broadcast(&tally_cond));
	CHECK_OK(pthread_mutex_unlock(&tally_lock));
	if (random_next(&seed) % 4 == 0)
		pthread_exit(arg);
	return arg;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	pthread_t t[ROOM];
	long sum = 0;
	int v;

	if (argc > 2)
		limit = atol(argv[2]);
	seed = seed * 2654435761u + 88172645463325252u;
	CHECK_OK(pthread_key_create(&key, on_destroy));
	CHECK_OK(sem_init(&room, 0, 3));
	for (int i = 0; i < ACCOUNTS; i++) {
		CHECK_OK(pthread_mutex_init(&account[i].lock, NULL));
		account[i].balance = 1000;
	}
	while (made < limit) {
		int n = 0;

		CHECK_OK(pthread_mutex_lock(&tally_lock));
		while (n < ROOM && made < limit) {
			made++;
			alive++;
			n++;
		}
		CHECK_OK(pthread_mutex_unlock(&tally_lock));
		for (int i = 0; i < n; i++)
			t[i] = start(body,
				     (void *)(uintptr_t)(random_next(&seed) | 1));
		for (int i = 0; i < n; i++)
			finish(t[i]);
		/* Those that were detached, and theirs. */
		CHECK_OK(pthread_mutex_lock(&tally_lock));
		while (alive)
			CHECK_OK(pthread_cond_wait(&tally_cond, &tally_lock));
		CHECK_OK(pthread_mutex_unlock(&tally_lock));
	}
	for (int i = 0; i < ACCOUNTS; i++)
		sum += account[i].balance;
	CHECK_INT(sum, ACCOUNTS * 1000);
	CHECK_OK(sem_getvalue(&room, &v));
	CHECK_INT(v, 3);
	/* Detached ones may still be on their way out. */
	while (__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) < made)
		usleep(100);
	CHECK_INT(destroyed, made);
	return success();
}
