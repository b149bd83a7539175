/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/clone_state.c - a child that runs in the memory of the process changes its own state in the
 * kernel, or makes what the kernel must know a thread for: that is no thread's of the process.
 */
#include "check.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { TIMES = 5, STACK = 64 * 1024, SLACK = 70000, CODE = 3, PARAMETERS = 128 };

static _Alignas(16) char stack[STACK];
static pthread_mutex_t robust;
static pthread_rwlock_t shared;

static int changes_slack(void)
{
	return prctl(PR_SET_TIMERSLACK, SLACK) == 0 && prctl(PR_GET_TIMERSLACK) == SLACK;
}

static int makes_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	timer_t timer;

	event.sigev_notify_thread_id = gettid();
	/* The memory has the number of the thread that has made this process: the kernel may refuse it here. */
	return timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_delete(timer) == 0;
}

static int times_itself(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	return timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0 && timer_delete(timer) == 0;
}

static int locks_robust(void)
{
	return pthread_mutex_lock(&robust) == 0 && pthread_mutex_unlock(&robust) == 0;
}

static int locks_shared(void)
{
	return pthread_rwlock_rdlock(&shared) == 0 && pthread_rwlock_unlock(&shared) == 0 &&
	       pthread_rwlock_wrlock(&shared) == 0 && pthread_rwlock_unlock(&shared) == 0;
}

/* The child's end closes the ring. */
static int makes_ring(void)
{
	_Alignas(8) char parameters[PARAMETERS] = { 0 };

	/* Where rings are forbidden, that is the answer here, too. */
	return syscall(SYS_io_uring_setup, 1, parameters) >= 0 || errno == EPERM || errno == ENOSYS;
}

static int (*const changes[])(void) = {
	changes_slack, makes_timer, times_itself, locks_robust, locks_shared, makes_ring,
};

/* Ends by a system call: an exit() would run what the process has registered. */
static int child(void *arg)
{
	return (*(int (*const *)(void))arg)() ? CODE : 1;
}

static void *makes(void *arg)
{
	int status;
	const pid_t pid = clone(child, stack + STACK, CLONE_VM | SIGCHLD, arg);

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), CODE);
	CHECK(prctl(PR_GET_TIMERSLACK) != SLACK);
	return arg;
}

int main(void)
{
	pthread_mutexattr_t mutex;
	pthread_rwlockattr_t lock;

	CHECK_OK(pthread_mutexattr_init(&mutex));
	CHECK_OK(pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST));
	CHECK_OK(pthread_mutex_init(&robust, &mutex));
	CHECK_OK(pthread_rwlockattr_init(&lock));
	CHECK_OK(pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_rwlock_init(&shared, &lock));
	for (size_t i = 0; i < COUNT(changes); i++)
		for (int k = 0; k < TIMES; k++)
			finish(start(makes, (void *)&changes[i]));
	return success();
}
