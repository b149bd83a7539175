/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_filesize.c - SIGXFSZ is for the thread that writes too far, at once.
 */
#include "check.h"

#include <sys/resource.h>

enum { LIMIT = 8192, ROUNDS = 20 };

static volatile sig_atomic_t handled, elsewhere;
static __thread int writer;
static int fd;

static void on_signal(int sig)
{
	CHECK_INT(sig, SIGXFSZ);
	handled++;
	if (!writer)
		elsewhere++;
}

static void *writes(void *arg)
{
	sigset_t set, pending;
	char buf[100] = "";

	writer = 1;
	handled = 0;
	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_ERR(pwrite(fd, buf, sizeof(buf), LIMIT), EFBIG);
		CHECK_INT(handled, i);
	}
	/* As much as fits, without a signal. */
	CHECK_INT(pwrite(fd, buf, sizeof(buf), LIMIT - 10), 10);
	CHECK_INT(lseek(fd, LIMIT, SEEK_SET), LIMIT);
	CHECK_ERR(write(fd, buf, 1), EFBIG);
	CHECK_INT(handled, ROUNDS + 1);
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
		CHECK_ERR(pwrite(fd, buf, sizeof(buf), LIMIT), EFBIG);
		usleep(100);
		CHECK_OK(sigpending(&pending));
		CHECK_INT(sigismember(&pending, SIGXFSZ), 1);
		CHECK_INT(sigtimedwait(&set, NULL, &(struct timespec){ 0 }), SIGXFSZ);
		CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
		CHECK_INT(handled, ROUNDS + 1);
	}
	CHECK_INT(elsewhere, 0);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct rlimit limit;
	char name[] = "/tmp/check-XXXXXX";

	CHECK_OK(sigaction(SIGXFSZ, &sa, NULL));
	CHECK_OK(getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = LIMIT;
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
	fd = mkstemp(name);
	CHECK(fd >= 0);
	CHECK_OK(unlink(name));
	finish(start(writes, NULL));
	return success();
}
