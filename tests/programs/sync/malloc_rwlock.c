/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/malloc_rwlock.c - an allocator that is guarded by an rwlock, which
 * libc calls while it makes a thread: no other thread has its signals blocked meanwhile.
 */
#include "check.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 100, ROUNDS = 5, WORKERS = 8, LOOKERS = 2 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool over;
static atomic_int blocked;

static void begin(void)
{
	CHECK_OK(pthread_rwlock_wrlock(&lock));
	for (volatile int i = 0; i < 300; i++)
		;
}

static void end(void)
{
	CHECK_OK(pthread_rwlock_unlock(&lock));
}

void *malloc(size_t size)
{
	void *got;

	begin();
	got = __libc_malloc(size);
	end();
	return got;
}

void *calloc(size_t count, size_t size)
{
	void *got;

	begin();
	got = __libc_calloc(count, size);
	end();
	return got;
}

void *realloc(void *old, size_t size)
{
	void *got;

	begin();
	got = __libc_realloc(old, size);
	end();
	return got;
}

void free(void *old)
{
	begin();
	__libc_free(old);
	end();
}

static void *work(void *arg)
{
	while (!atomic_load(&over)) {
		begin();
		/* The others come to wait for it. */
		sched_yield();
		end();
	}
	return arg;
}

/* What the kernel has; pthread_sigmask tells what the thread has set. */
static uint64_t kernel_mask(void)
{
	uint64_t mask = 0;
#if defined(__x86_64__)
	register long r10 __asm__("r10") = sizeof(mask);
	long r;

	__asm__ volatile("syscall" : "=a"(r)
			 : "0"((long)SYS_rt_sigprocmask), "D"((long)SIG_BLOCK), "S"(NULL),
			   "d"(&mask), "r"(r10)
			 : "rcx", "r11", "memory");
	CHECK_INT(r, 0);
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_rt_sigprocmask;
	register long x0 __asm__("x0") = SIG_BLOCK;
	register void *x1 __asm__("x1") = NULL;
	register void *x2 __asm__("x2") = &mask;
	register long x3 __asm__("x3") = sizeof(mask);

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	CHECK_INT(x0, 0);
#endif
	return mask;
}

static void *look(void *arg)
{
	while (!atomic_load(&over)) {
		if (kernel_mask() & 1ULL << (SIGUSR1 - 1))
			atomic_fetch_add(&blocked, 1);
		sched_yield();
	}
	return arg;
}

static void *nothing(void *arg)
{
	usleep(1000);
	return arg;
}

int main(void)
{
	pthread_t worker[WORKERS], looker[LOOKERS], thread[THREADS];
	pthread_attr_t attr;

	for (int i = 0; i < WORKERS; i++)
		worker[i] = start(work, NULL);
	for (int i = 0; i < LOOKERS; i++)
		looker[i] = start(look, NULL);
	CHECK_OK(pthread_attr_init(&attr));
	for (int round = 0; round < ROUNDS; round++) {
		/* Another size each time, so that they are new. */
		CHECK_OK(pthread_attr_setstacksize(&attr, (size_t)(round + 1) << 16));
		for (int i = 0; i < THREADS; i++)
			CHECK_OK(pthread_create(&thread[i], &attr, nothing, NULL));
		for (int i = 0; i < THREADS; i++)
			finish(thread[i]);
	}
	atomic_store(&over, true);
	for (int i = 0; i < WORKERS; i++)
		finish(worker[i]);
	for (int i = 0; i < LOOKERS; i++)
		finish(looker[i]);
	CHECK_INT(atomic_load(&blocked), 0);
	return success();
}
