/* SPDX-License-Identifier: MIT */
/* tests/programs/thread/thread_exit_main.c - main leaves first; the process ends with the last thread. */
#include "check.h"

static int pipe_fd[2];
static struct event main_gone = EVENT_INIT;
static pthread_key_t key;

static void *last(void *arg)
{
	char c;

	/* main's cleanup handlers and destructors have run by then. */
	event_wait(&main_gone, 2);
	CHECK_INT(read(pipe_fd[0], &c, 1), 1);
	usleep(5000);
	puts("last thread");
	return arg;
}

static void *writer(void *arg)
{
	event_wait(&main_gone, 2);
	usleep(1000);
	CHECK_INT(write(pipe_fd[1], "x", 1), 1);
	return arg;
}

static void cleanup(void *arg)
{
	puts("cleanup of main");
	event_post(arg);
}

static void destroy(void *arg)
{
	puts("destructor of main");
	event_post(arg);
}

static void at_exit(void)
{
	success();
}

int main(void)
{
	CHECK_OK(atexit(at_exit));
	CHECK_OK(pipe(pipe_fd));
	CHECK_OK(pthread_key_create(&key, destroy));
	CHECK_OK(pthread_setspecific(key, &main_gone));
	CHECK_OK(pthread_detach(start(last, NULL)));
	start(writer, NULL);
	pthread_cleanup_push(cleanup, &main_gone);
	pthread_exit((void *)5);
	pthread_cleanup_pop(0);
}
