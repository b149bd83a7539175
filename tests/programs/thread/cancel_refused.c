/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/cancel_refused.c - calls that the kernel or libc refuses or answers at once, by a thread with a request to
 * cancel it: which of them act on the request, and which go on?  The native run tells; POSIX permits both for many.
 */
#include "check.h"

#include <aio.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>

enum { BEYOND = 1 << 30 };

static const char nowhere[] = "/nowhere/at/all";
static struct event ready, go;
static char page[4096];
static struct iovec iov = { page, 1 };
static struct msghdr message;
static struct mmsghdr messages[1];
static struct timespec wrong = { 0, -1 }, right = { 1 };
static struct pollfd none = { -1, POLLIN, 0 };
static struct epoll_event event_;
static siginfo_t info;
static sigset_t usr2;
static eventfd_t value;
static sem_t sem, shared, shared_free;
static int reached;

/* Each with a descriptor that is none, and then with one beyond all tables. */
#define WITH_FD(CALL)	\
	CALL(accept, (fd, NULL, NULL))	\
	CALL(accept4, (fd, NULL, NULL, 0))	\
	CALL(close, (fd))	\
	CALL(connect, (fd, (struct sockaddr *)page, 2))	\
	CALL(copy_file_range, (fd, NULL, fd, NULL, 1, 0))	\
	CALL(dup, (fd))	\
	CALL(epoll_ctl, (fd, EPOLL_CTL_ADD, 0, &event_))	\
	CALL(epoll_pwait, (fd, &event_, 1, 0, NULL))	\
	CALL(epoll_wait, (fd, &event_, 1, 0))	\
	CALL(eventfd_read, (fd, &value))	\
	CALL(eventfd_write, (fd, 1))	\
	CALL(fallocate, (fd, 0, 0, 1))	\
	CALL(fchmod, (fd, 0600))	\
	CALL(fcntl, (fd, F_GETFL))	\
	CALL(fdatasync, (fd))	\
	CALL(flock, (fd, LOCK_EX))	\
	CALL(fsync, (fd))	\
	CALL(ftruncate, (fd, 0))	\
	CALL(ioctl, (fd, FIONREAD, page))	\
	CALL(lockf, (fd, F_LOCK, 1))	\
	CALL(lseek, (fd, 0, SEEK_SET))	\
	CALL(mq_receive, (fd, page, 1, NULL))	\
	CALL(mq_send, (fd, page, 1, 0))	\
	CALL(posix_fadvise, (fd, 0, 0, 0))	\
	CALL(posix_fallocate, (fd, 0, 1))	\
	CALL(pread, (fd, page, 1, 0))	\
	CALL(preadv, (fd, &iov, 1, 0))	\
	CALL(preadv2, (fd, &iov, 1, 0, 0))	\
	CALL(pwrite, (fd, page, 1, 0))	\
	CALL(pwritev, (fd, &iov, 1, 0))	\
	CALL(pwritev2, (fd, &iov, 1, 0, 0))	\
	CALL(read, (fd, page, 1))	\
	CALL(readahead, (fd, 0, 1))	\
	CALL(readv, (fd, &iov, 1))	\
	CALL(recv, (fd, page, 1, 0))	\
	CALL(recvfrom, (fd, page, 1, 0, NULL, NULL))	\
	CALL(recvmmsg, (fd, messages, 1, 0, NULL))	\
	CALL(recvmsg, (fd, &message, 0))	\
	CALL(send, (fd, page, 1, 0))	\
	CALL(sendfile, (fd, fd, NULL, 1))	\
	CALL(sendmmsg, (fd, messages, 1, 0))	\
	CALL(sendmsg, (fd, &message, 0))	\
	CALL(sendto, (fd, page, 1, 0, NULL, 0))	\
	CALL(shutdown, (fd, SHUT_RD))	\
	CALL(splice, (fd, NULL, fd, NULL, 1, 0))	\
	CALL(sync_file_range, (fd, 0, 1, 0))	\
	CALL(syncfs, (fd))	\
	CALL(tcdrain, (fd))	\
	CALL(tee, (fd, fd, 1, 0))	\
	CALL(vmsplice, (fd, &iov, 1, 0))	\
	CALL(write, (fd, page, 1))	\
	CALL(writev, (fd, &iov, 1))

#define OTHERS(CALL)	\
	CALL(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL))	\
	CALL(creat, creat(nowhere, 0600))	\
	CALL(getrandom, getrandom(page, 1, ~0U))	\
	CALL(mkdir, mkdir(nowhere, 0700))	\
	CALL(msgrcv, msgrcv(-1, page, 1, 0, 0))	\
	CALL(msgsnd, msgsnd(-1, page, 1, 0))	\
	CALL(msync, msync(page + 1, 1, MS_SYNC))	\
	CALL(nanosleep, nanosleep(&wrong, NULL))	\
	CALL(open, open(nowhere, O_RDONLY))	\
	CALL(openat, openat(-1, "at", O_RDONLY))	\
	CALL(poll, poll(&none, 1, 0))	\
	CALL(ppoll, ppoll(&none, 1, &wrong, NULL))	\
	CALL(pselect, pselect(-1, NULL, NULL, NULL, NULL, NULL))	\
	CALL(select, select(-1, NULL, NULL, NULL, NULL))	\
	CALL(sem_clockwait, sem_clockwait(&sem, CLOCK_MONOTONIC, &wrong))	\
	CALL(sem_clockwait_clock, sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &wrong))	\
	CALL(sem_timedwait, sem_timedwait(&sem, &wrong))	\
	CALL(sem_timedwait_shared, sem_timedwait(&shared, &wrong))	\
	CALL(sem_timedwait_free, sem_timedwait(&shared_free, &right))	\
	CALL(sem_wait_free, sem_wait(&shared_free))	\
	CALL(sem_trywait, sem_trywait(&sem))	\
	CALL(semop, semop(-1, (struct sembuf *)page, 1))	\
	CALL(sigtimedwait, sigtimedwait(&usr2, NULL, &wrong))	\
	CALL(sleep, sleep(0))	\
	CALL(unlink, unlink(nowhere))	\
	CALL(usleep, usleep(0))	\
	CALL(wait4, wait4(1, NULL, 0, NULL))	\
	CALL(waitid, waitid(P_PID, 1, &info, WEXITED))	\
	CALL(waitpid, waitpid(1, NULL, 0))

#define FUNCTIONS_FD(name, args)	\
	static void name##_none(void) { const int fd = -1; (void)!name args; }	\
	static void name##_beyond(void) { const int fd = BEYOND; (void)!name args; }
#define FUNCTION(name, call)	\
	static void name##_refused(void) { (void)!call; }
#define ROWS_FD(name, args)	{ #name ", -1", name##_none }, { #name ", beyond", name##_beyond },
#define ROW(name, call)		{ #name, name##_refused },

WITH_FD(FUNCTIONS_FD)
OTHERS(FUNCTION)

static const struct call {
	const char *name;
	void (*make)(void);
} calls[] = { WITH_FD(ROWS_FD) OTHERS(ROW) };

static void *makes(void *arg)
{
	const struct call *call = arg;

	CHECK_INT(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
	event_post(&ready);
	event_wait(&go, 1);
	CHECK_INT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL), 0);
	call->make();
	reached = 1;
	return NULL;
}

int main(void)
{
	sigaddset(&usr2, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &usr2, NULL));
	CHECK_OK(sem_init(&sem, 0, 0));
	CHECK_OK(sem_init(&shared, 1, 0));
	CHECK_OK(sem_init(&shared_free, 1, 1));
	for (size_t i = 0; i < COUNT(calls); i++) {
		pthread_t t;
		void *result;

		ready = go = (struct event)EVENT_INIT;
		reached = 0;
		t = start(makes, (void *)&calls[i]);
		event_wait(&ready, 1);
		CHECK_INT(pthread_cancel(t), 0);
		event_post(&go);
		CHECK_INT(pthread_join(t, &result), 0);
		CHECK(reached == (result != PTHREAD_CANCELED));
		printf("%s: %s\n", calls[i].name, reached ? "goes on" : "is cancelled");
	}
	return success();
}
