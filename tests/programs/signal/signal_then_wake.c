/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_then_wake.c [ROUNDS] - another process sends a signal and then ends the wait of the thread
 * that must take it, being the only one that accepts it, main or not: the handler has run when the wait ends.
 */
#include "check.h"

#include <mqueue.h>
#include <poll.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>

enum { SIG = 42 };

static int rounds = 10;
static _Atomic int got;
static int ready[2];		/* a byte: the thread is about to wait */
static int done[2];		/* a byte: it has waited */
static int stream[2];		/* what it waits for, if that is a descriptor */
static int queue, semaphore, epoll;
static mqd_t posix_queue;
static char file_name[] = "/tmp/signal_then_wake.XXXXXX";

static struct shared {
	sem_t sem;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_rwlock_t lock;
	pthread_barrier_t barrier;
	_Atomic int word;
	int told;
} *shared;

static void handler(int sig)
{
	(void)sig;
	got++;
}

/*
 * Wait until all threads of the process sleep, as the kernel knows them, at three looks: also the one that is about to wait.
 * In a fast path without a system call nothing says when a signal is handled.
 */
static void await_sleeping(pid_t process)
{
	for (int i = 0; i < 3; i++) {
		find_asleep_in(process);
		usleep(1000);
	}
}

static void tell(int fd)
{
	CHECK_INT(write(fd, "x", 1), 1);
}

static bool hear(int fd)
{
	char byte;
	const ssize_t n = TEMP_FAILURE_RETRY(read(fd, &byte, 1));

	CHECK(n >= 0);
	return n == 1;
}

/* ---- the waits, and what ends them ------------------------------------------------ */

static void wait_read(void)
{
	CHECK(hear(stream[0]));
}

static void wait_recv(void)
{
	char byte;
	CHECK_INT(TEMP_FAILURE_RETRY(recv(stream[0], &byte, 1, 0)), 1);
}

static void wait_poll(void)
{
	struct pollfd p = { .fd = stream[0], .events = POLLIN };
	CHECK_INT(TEMP_FAILURE_RETRY(poll(&p, 1, -1)), 1);
}

static void wait_epoll(void)
{
	struct epoll_event event;
	CHECK_INT(TEMP_FAILURE_RETRY(epoll_wait(epoll, &event, 1, -1)), 1);
}

static void after_poll(void)
{
	CHECK(hear(stream[0]));
}

static void end_stream(void)
{
	tell(stream[1]);
}

static void wait_sem(void)
{
	CHECK_OK(TEMP_FAILURE_RETRY(sem_wait(&shared->sem)));
}

static void end_sem(void)
{
	CHECK_OK(sem_post(&shared->sem));
}

static void before_cond(void)
{
	shared->told = 0;
}

static void wait_cond(void)
{
	CHECK_OK(pthread_mutex_lock(&shared->mutex));
	while (!shared->told)
		CHECK_OK(pthread_cond_wait(&shared->cond, &shared->mutex));
	CHECK_OK(pthread_mutex_unlock(&shared->mutex));
}

static void end_cond(void)
{
	CHECK_OK(pthread_mutex_lock(&shared->mutex));
	shared->told = 1;
	CHECK_OK(pthread_cond_signal(&shared->cond));
	CHECK_OK(pthread_mutex_unlock(&shared->mutex));
}

static void wait_barrier(void)
{
	const int err = pthread_barrier_wait(&shared->barrier);

	CHECK(err == 0 || err == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void lock_mutex(void)
{
	CHECK_OK(pthread_mutex_lock(&shared->mutex));
}

static void end_mutex(void)
{
	CHECK_OK(pthread_mutex_unlock(&shared->mutex));
}

static void hold_lock(void)
{
	CHECK_OK(pthread_rwlock_wrlock(&shared->lock));
}

static void wait_lock(void)
{
	CHECK_OK(pthread_rwlock_rdlock(&shared->lock));
}

static void end_lock(void)
{
	CHECK_OK(pthread_rwlock_unlock(&shared->lock));
}

static void before_futex(void)
{
	shared->word = 0;
}

static void wait_futex(void)
{
	while (!shared->word)
		CHECK(!syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0) || errno == EINTR ||
		      errno == EAGAIN);
}

static void end_futex(void)
{
	shared->word = 1;
	CHECK(syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
}

struct message {
	long type;
	char byte;
};

static void wait_message(void)
{
	struct message m;
	CHECK_INT(TEMP_FAILURE_RETRY(msgrcv(queue, &m, 1, 0, 0)), 1);
}

static void end_message(void)
{
	CHECK_OK(msgsnd(queue, &(struct message){ 1, 'x' }, 1, 0));
}

static void wait_semop(void)
{
	CHECK_OK(TEMP_FAILURE_RETRY(semop(semaphore, &(struct sembuf){ 0, -1, 0 }, 1)));
}

static void end_semop(void)
{
	CHECK_OK(semop(semaphore, &(struct sembuf){ 0, 1, 0 }, 1));
}

static void wait_posix(void)
{
	char byte;
	CHECK_INT(TEMP_FAILURE_RETRY(mq_receive(posix_queue, &byte, 1, NULL)), 1);
}

static void end_posix(void)
{
	CHECK_OK(mq_send(posix_queue, "x", 1, 1));
}

static int file = -1;

static void open_file(void)
{
	if (file < 0)
		file = open(file_name, O_RDWR);
	CHECK(file >= 0);
}

static void lock_file(void)
{
	open_file();
	CHECK_OK(TEMP_FAILURE_RETRY(flock(file, LOCK_EX)));
}

static void end_flock(void)
{
	CHECK_OK(flock(file, LOCK_UN));
}

static void change_record(int command, short type)
{
	open_file();
	CHECK_OK(TEMP_FAILURE_RETRY(fcntl(file, command, &(struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_len = 1 })));
}

static void lock_record(void)
{
	change_record(F_SETLKW, F_WRLCK);
}

static void end_record(void)
{
	change_record(F_SETLK, F_UNLCK);
}

static const struct kind {
	const char *name;
	void (*before)(void);	/* by the thread */
	void (*hold)(void);	/* by the process */
	void (*wait)(void);	/* by the thread */
	void (*end)(void);	/* by the process */
	void (*after)(void);	/* by the thread */
} kinds[] = {
	{ "read", NULL, NULL, wait_read, end_stream, NULL },
	{ "recv", NULL, NULL, wait_recv, end_stream, NULL },
	{ "poll", NULL, NULL, wait_poll, end_stream, after_poll },
	{ "epoll_wait", NULL, NULL, wait_epoll, end_stream, after_poll },
	{ "sem_wait", NULL, NULL, wait_sem, end_sem, NULL },
	{ "pthread_cond_wait", before_cond, NULL, wait_cond, end_cond, NULL },
	{ "pthread_barrier_wait", NULL, NULL, wait_barrier, wait_barrier, NULL },
	{ "pthread_mutex_lock", NULL, lock_mutex, lock_mutex, end_mutex, end_mutex },
	{ "pthread_rwlock_rdlock", NULL, hold_lock, wait_lock, end_lock, end_lock },
	{ "futex", before_futex, NULL, wait_futex, end_futex, NULL },
	{ "msgrcv", NULL, NULL, wait_message, end_message, NULL },
	{ "semop", NULL, NULL, wait_semop, end_semop, NULL },
	{ "mq_receive", NULL, NULL, wait_posix, end_posix, NULL },
	{ "flock", NULL, lock_file, lock_file, end_flock, end_flock },
	{ "fcntl", NULL, lock_record, lock_record, end_record, end_record },
};

/* ---- a round ------------------------------------------------------------------ */

/* The process that ends the waits. */
static void serve(const struct kind *kind, pid_t waiter)
{
	CHECK_OK(close(done[1]));
	for (int i = 0; i < rounds; i++) {
		if (kind->hold)
			kind->hold();
		tell(stream[1]);
		CHECK(hear(ready[0]));
		await_sleeping(waiter);
		CHECK_OK(kill(waiter, SIG));
		kind->end();
		CHECK(hear(done[0]));
	}
	_exit(0);
}

static void use(const struct kind *kind)
{
	const pid_t waiter = getpid(), child = fork();
	int status, late = 0;

	CHECK(child >= 0);
	if (child == 0)
		serve(kind, waiter);
	for (int i = 0; i < rounds; i++) {
		const int before = got;

		CHECK(hear(stream[0]));
		if (kind->before)
			kind->before();
		tell(ready[1]);
		kind->wait();
		late += got != before + 1;
		/* If it is late, it must come even so. */
		while (got == before)
			usleep(100);
		if (kind->after)
			kind->after();
		tell(done[1]);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	if (late)
		fail(__FILE__, __LINE__, "%s: %d of %d waits ended before the handler\n", kind->name, late, rounds);
	if (file >= 0)
		CHECK_OK(close(file));
	file = -1;
}

/* A child that sends a signal and ends. */
static void await_child(void)
{
	for (int i = 0; i < rounds; i++) {
		const pid_t waiter = getpid();
		const int before = got;
		const pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0) {
			CHECK_OK(kill(waiter, SIG));
			_exit(0);
		}
		CHECK_INT(waitpid(child, NULL, 0), child);
		CHECK_INT(got, before + 1);
	}
}

static void *use_all(void *arg)
{
	mask_signal(SIG_UNBLOCK, SIG);
	for (size_t i = 0; i < COUNT(kinds); i++)
		use(&kinds[i]);
	await_child();
	mask_signal(SIG_BLOCK, SIG);
	return arg;
}

static void *idle(void *arg)
{
	CHECK(!hear(*(int *)arg));
	return NULL;
}

static void prepare(void)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;
	pthread_rwlockattr_t lock;
	pthread_barrierattr_t barrier;
	char name[64];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK_OK(sem_init(&shared->sem, 1, 0));
	CHECK_OK(pthread_mutexattr_init(&mutex));
	CHECK_OK(pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_mutex_init(&shared->mutex, &mutex));
	CHECK_OK(pthread_condattr_init(&cond));
	CHECK_OK(pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_cond_init(&shared->cond, &cond));
	CHECK_OK(pthread_rwlockattr_init(&lock));
	CHECK_OK(pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_rwlock_init(&shared->lock, &lock));
	CHECK_OK(pthread_barrierattr_init(&barrier));
	CHECK_OK(pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_barrier_init(&shared->barrier, &barrier, 2));
	CHECK_OK(pipe(ready));
	CHECK_OK(pipe(done));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	CHECK((epoll = epoll_create1(0)) >= 0);
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, stream[0], &(struct epoll_event){ .events = EPOLLIN }));
	CHECK((queue = msgget(IPC_PRIVATE, 0600)) >= 0);
	CHECK((semaphore = semget(IPC_PRIVATE, 1, 0600)) >= 0);
	snprintf(name, sizeof(name), "/signal_then_wake-%d", (int)getpid());
	posix_queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600,
			      &(struct mq_attr){ .mq_maxmsg = 1, .mq_msgsize = 1 });
	CHECK(posix_queue >= 0);
	CHECK_OK(mq_unlink(name));
	CHECK((file = mkstemp(file_name)) >= 0);
	CHECK_OK(close(file));
	file = -1;
}

static void clean(void)
{
	CHECK_OK(unlink(file_name));
	CHECK_OK(msgctl(queue, IPC_RMID, NULL));
	CHECK_OK(semctl(semaphore, 0, IPC_RMID));
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	int never[2];
	pthread_t waits;

	if (argc > 1)
		rounds = atoi(argv[1]);
	prepare();
	CHECK_OK(pipe(never));
	mask_signal(SIG_BLOCK, SIG);
	waits = start(idle, &never[0]);
	CHECK_OK(sigaction(SIG, &action, NULL));
	use_all(NULL);
	CHECK_OK(pthread_join(start(use_all, NULL), NULL));
	CHECK_OK(close(never[1]));
	CHECK_OK(pthread_join(waits, NULL));
	clean();
	return success();
}
