/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_tid_address.c - the word that the kernel clears when a thread has ended
 * (set_tid_address): one of the program's own, for which another thread waits; libc's, put back.
 */
#include "check.h"
#include "beside.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static _Atomic uint32_t words[OTHERS];

/* Put elsewhere, and back, as by programs that restore processes. */
static void *put_back(void *arg)
{
	void *address = NULL, *now = NULL;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(prctl(PR_GET_TID_ADDRESS, &address));
		CHECK_INT(syscall(SYS_set_tid_address, &words[0]), gettid());
		CHECK_OK(prctl(PR_GET_TID_ADDRESS, &now));
		CHECK(now == &words[0]);
		CHECK_INT(syscall(SYS_set_tid_address, address), gettid());
		CHECK_OK(prctl(PR_GET_TID_ADDRESS, &now));
		CHECK(now == address);
		usleep(50);
	}
	return arg;
}

static void *names_word(void *arg)
{
	CHECK_OK(pthread_detach(pthread_self()));
	CHECK_INT(syscall(SYS_set_tid_address, arg), gettid());
	usleep(1000);
	if (((_Atomic uint32_t *)arg - words) % 2)
		pthread_exit(NULL);
	return NULL;
}

static void *waits_for_word(void *arg)
{
	_Atomic uint32_t *word = arg;
	uint32_t value;

	/* The kernel wakes the waiters of a futex that processes share. */
	while ((value = atomic_load(word)) != 0)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
	return arg;
}

static void *forgets_word(void *arg)
{
	CHECK_INT(syscall(SYS_set_tid_address, &words[1]), gettid());
	return arg;
}

int main(void)
{
	pthread_t threads[OTHERS];

	beside_sleepers(put_back);
	puts("put back");
	for (int k = 0; k < OTHERS; k++) {
		atomic_store(&words[k], 1);
		threads[k] = start(waits_for_word, &words[k]);
		start(names_word, &words[k]);
	}
	for (int k = 0; k < OTHERS; k++)
		finish(threads[k]);
	puts("cleared");
	/* Nobody knows when it is gone: natively libc waits for ever, but who only tries does not. */
	atomic_store(&words[1], 1);
	threads[0] = start(forgets_word, NULL);
	waits_for_word(&words[1]);
	alarm(20);
	pthread_tryjoin_np(threads[0], NULL);
	puts("tried to join");
	return success();
}
