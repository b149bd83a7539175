/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/leaves.c - a process whose first kernel thread has ended, while others go on.
 *
 *	leaves		its main thread leaves by pthread_exit
 *	leaves raw	its kernel thread leaves by a system call that no library sees; under a library
 *			that moves threads, once the main thread is on the first kernel thread
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 3 };

static void *naps(void *arg)
{
	for (;;)
		usleep(10000);
	return arg;
}

static long call(long number)
{
#if defined(__x86_64__)
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(number), "D"(0) : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long nr __asm__("x8") = number, ret __asm__("x0") = 0;

	__asm__ volatile("svc #0" : "+r"(ret) : "r"(nr) : "memory");
	return ret;
#endif
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, naps, NULL) != 0)
			return 1;
	puts("ready");
	fflush(stdout);
	while (argc > 1)
		if (call(SYS_gettid) == getpid())
			call(SYS_exit);
		else
			usleep(1000);
	pthread_exit(NULL);
}
