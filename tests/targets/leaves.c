/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/leaves.c - a process whose first kernel thread has ended, while others go on.
 *
 *	leaves		its main thread leaves by pthread_exit
 *	leaves raw	its kernel thread leaves by a system call that no library sees
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

static void leave(void)
{
#if defined(__x86_64__)
	__asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long number __asm__("x8") = SYS_exit, status __asm__("x0") = 0;

	__asm__ volatile("svc #0" : : "r"(number), "r"(status) : "memory");
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
	if (argc > 1)
		leave();
	pthread_exit(NULL);
}
