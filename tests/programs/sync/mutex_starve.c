/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/mutex_starve.c - threads that hold a lock nearly all the time, and wait
 * while they hold it, do not starve others: a mutex, the mutex of a condition variable, the
 * lock of a FILE, a semaphore, a reader-writer lock, a lock made of a futex.
 */
#include "check.h"

#include <stdatomic.h>
#include <stdbool.h>

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/*
 * Who starves does so for ever.  The limit is a minute of rounds: natively, libc's locks are
 * as unfair as the machine is busy.  If it is reached natively, there is nothing to compare with;
 * otherwise the exit status differs from the native one.
 */
enum { TIMES = 5, GREEDY = 2, MOST_ROUNDS = 200000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static atomic_int futex;
static FILE *file;
static int token[2], event;

static void lock_mutex(void)
{
	CHECK_INT(pthread_mutex_lock(&mutex), 0);
}

static void unlock_mutex(void)
{
	CHECK_INT(pthread_mutex_unlock(&mutex), 0);
}

static void lock_after_wait(void)
{
	struct timespec soon;

	lock_mutex();
	clock_gettime(CLOCK_REALTIME, &soon);
	CHECK_INT(pthread_cond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
}

/* Again and again, never for long. */
static void lock_in_time(void)
{
	struct timespec soon;

	do {
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += 1000000;
		if (soon.tv_nsec >= 1000000000) {
			soon.tv_nsec -= 1000000000;
			soon.tv_sec++;
		}
	} while (pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
}

static void lock_file(void)
{
	flockfile(file);
}

static void lock_semaphore(void)
{
	CHECK_OK(sem_wait(&semaphore));
}

static void unlock_semaphore(void)
{
	CHECK_OK(sem_post(&semaphore));
}

static void lock_rwlock(void)
{
	CHECK_INT(pthread_rwlock_wrlock(&rwlock), 0);
}

static void unlock_rwlock(void)
{
	CHECK_INT(pthread_rwlock_unlock(&rwlock), 0);
}

/* As runtimes of other languages have it, which spin before they wait. */
static void lock_futex(void)
{
	if (atomic_compare_exchange_strong(&futex, &(int){ 0 }, 1))
		return;
	for (;;) {
		for (int i = 0; i < 100; i++)
			if (atomic_load(&futex) == 0)
				break;
		if (atomic_exchange(&futex, 2) == 0)
			return;
		syscall(SYS_futex, &futex, FUTEX_WAIT_PRIVATE, 2, NULL);
	}
}

static void unlock_futex(void)
{
	if (atomic_exchange(&futex, 0) == 2)
		syscall(SYS_futex, &futex, FUTEX_WAKE_PRIVATE, 1);
}

static void unlock_file(void)
{
	funlockfile(file);
}

static void lock_token(void)
{
	char c;

	CHECK_INT(read(token[0], &c, 1), 1);
}

static void unlock_token(void)
{
	CHECK_INT(write(token[1], "t", 1), 1);
}

static void lock_eventfd(void)
{
	uint64_t n;

	CHECK_INT(read(event, &n, sizeof(n)), sizeof(n));
}

static void unlock_eventfd(void)
{
	uint64_t n = 1;

	CHECK_INT(write(event, &n, sizeof(n)), sizeof(n));
}

struct way {
	const char *name;
	void (*lock)(void), (*unlock)(void);
	void (*lock_modestly)(void);
	atomic_bool done;
	long rounds;	/* of the greedy ones; by who has the lock */
};

static void *greedy(void *arg)
{
	struct way *w = arg;

	while (!atomic_load(&w->done)) {
		long round;

		w->lock();
		round = ++w->rounds;
		usleep(300);
		w->unlock();
		if (round == MOST_ROUNDS)
			_exit(77);
	}
	return NULL;
}

static void try_way(struct way *w)
{
	pthread_t threads[GREEDY];

	for (int i = 0; i < GREEDY; i++)
		threads[i] = start(greedy, w);
	usleep(2000);
	for (int i = 0; i < TIMES; i++) {
		w->lock_modestly();
		w->unlock();
		usleep(1000);
	}
	atomic_store(&w->done, true);
	for (int i = 0; i < GREEDY; i++)
		finish(threads[i]);
	printf("%s: had it %d times\n", w->name, TIMES);
}

int main(void)
{
	struct way ways[] = {
		{ .name = "mutex", .lock = lock_mutex, .unlock = unlock_mutex,
		  .lock_modestly = lock_mutex },
		{ .name = "timed", .lock = lock_mutex, .unlock = unlock_mutex,
		  .lock_modestly = lock_in_time },
		{ .name = "condition", .lock = lock_mutex, .unlock = unlock_mutex,
		  .lock_modestly = lock_after_wait },
		{ .name = "file", .lock = lock_file, .unlock = unlock_file,
		  .lock_modestly = lock_file },
		{ .name = "semaphore", .lock = lock_semaphore, .unlock = unlock_semaphore,
		  .lock_modestly = lock_semaphore },
		{ .name = "rwlock", .lock = lock_rwlock, .unlock = unlock_rwlock,
		  .lock_modestly = lock_rwlock },
		{ .name = "futex", .lock = lock_futex, .unlock = unlock_futex,
		  .lock_modestly = lock_futex },
		{ .name = "pipe", .lock = lock_token, .unlock = unlock_token,
		  .lock_modestly = lock_token },
		{ .name = "eventfd", .lock = lock_eventfd, .unlock = unlock_eventfd,
		  .lock_modestly = lock_eventfd },
		{ .name = "socket", .lock = lock_token, .unlock = unlock_token,
		  .lock_modestly = lock_token },
	};

	file = tmpfile();
	CHECK(file != NULL);
	event = eventfd(1, EFD_SEMAPHORE);
	CHECK(event >= 0);
	CHECK_OK(sem_init(&semaphore, 0, 1));
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
	{
		if (strcmp(ways[i].name, "pipe") == 0)
			CHECK_OK(pipe(token));
		if (strcmp(ways[i].name, "socket") == 0)
			CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, token));
		if (ways[i].lock == lock_token)
			unlock_token();
		try_way(&ways[i]);
	}
	return success();
}
