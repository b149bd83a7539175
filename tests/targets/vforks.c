/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/vforks.c - a thread that waits in the kernel for the end of its child, and lets nothing else
 * interrupt it, by a system call that no library sees.
 *
 *	vforks		prints "ready", and "on" once the child has been killed; goes on until killed
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static long call(long number, long a, long b)
{
	/* The others are 0. */
#if defined(__x86_64__)
	register long d __asm__("r10") = 0, e __asm__("r8") = 0;
	long result;

	__asm__ volatile("syscall" : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(0L), "r"(d), "r"(e) : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long n __asm__("x8") = number, result __asm__("x0") = a, second __asm__("x1") = b;
	register long c __asm__("x2") = 0, d __asm__("x3") = 0, e __asm__("x4") = 0;

	__asm__ volatile("svc #0" : "+r"(result) : "r"(n), "r"(second), "r"(c), "r"(d), "r"(e) : "memory");
	return result;
#endif
}

static void *vforks(void *arg)
{
	/* The child has memory of its own. */
	if (call(SYS_clone, CLONE_VFORK | SIGCHLD, 0) == 0) {
		call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			call(SYS_ppoll, 0, 0);
	}
	puts("on");
	fflush(stdout);
	return arg;
}

int main(void)
{
	pthread_t thread;

	puts("ready");
	fflush(stdout);
	if (pthread_create(&thread, NULL, vforks, NULL) != 0)
		return 1;
	pthread_join(thread, NULL);
	for (;;)
		pause();
}
