/* SPDX-License-Identifier: MIT */
#include "runtime/sched/limits.h"

#include <linux/mman.h>
#include <linux/resource.h>

#include "runtime/base/die.h"
#include "runtime/fiber/fiber.h"
#include "runtime/base/host.h"
#include "runtime/fiber/stack.h"
#include "runtime/base/sys.h"

/* What more than this leaves is enough, whatever else runs. */
enum { NARROW = 1024 };

/*
 * The two helpers, the one for a moment, and three processes of the program's; of as many
 * more as there are processors, one is a spare, because the main thread is a carrier.
 */
enum { BESIDES = 6, MOST = 256 + BESIDES };

static struct {
	_Atomic uint32_t go;		/* futex */
	_Atomic uintptr_t tcb[MOST];
} tried;

static void *wait_and_end(void *arg)
{
	struct fz_fiber *self = fz_self();
	_Atomic uintptr_t *tcb = arg;

	self->tcb = fz_tcb_get();
	self->kind = FZ_KIND_HELPER;
	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	/* release: pairs with await_end(). */
	atomic_store_explicit(tcb, self->tcb, memory_order_release);
	/* acquire: pairs with fz_limits_allow_processors(). */
	while (!atomic_load_explicit(&tried.go, memory_order_acquire))
		fz_sys_futex_wait(&tried.go, 0, NULL);
	return NULL;
}

/* libc is not to find it halfway out, and its stack is ours to use again. */
static void await_end(_Atomic uintptr_t *tcb)
{
	/* acquire: pairs with wait_and_end(). */
	while (!atomic_load_explicit(tcb, memory_order_acquire))
		fz_syscall0(__NR_sched_yield);
	/* acquire: the kernel clears the tid. */
	while (atomic_load_explicit(fz_tcb_tid(*tcb), memory_order_acquire))
		fz_syscall0(__NR_sched_yield);
}

bool fz_limits_told;

void fz_limits_tell(const char *text)
{
	static _Atomic bool told;

	if (fz_limits_told && !atomic_exchange_explicit(&told, true, memory_order_relaxed))
		fz_say("%s", text);
}

bool fz_limits_count_address_space(void)
{
	static const int limits[] = { RLIMIT_AS, RLIMIT_DATA };
	struct { uint64_t now, most; } limit;

	for (int i = 0; i < 2; i++)
		if (fz_syscall4(__NR_prlimit64, 0, limits[i], 0, (long)&limit) == 0 &&
		    limit.now != UINT64_MAX)
			return true;
	return false;
}

bool fz_limits_allow_memory(size_t size)
{
	long mem;

	if (!fz_limits_count_address_space())
		return true;
	mem = fz_sys_mmap(size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (fz_sys_failed(mem))
		return false;
	fz_syscall2(__NR_munmap, mem, (long)size);
	return true;
}

uint32_t fz_limits_allow_processors(uint32_t count, bool *ret_narrow)
{
	const size_t size = 256 * 1024, guard = 4096;
	struct { uint64_t now, most; } limit;
	void *stack[MOST];
	uint32_t got;
	size_t got_size;

	*ret_narrow = fz_syscall4(__NR_prlimit64, 0, RLIMIT_NPROC, 0, (long)&limit) == 0 &&
		      limit.now < NARROW;
	if (!*ret_narrow)
		return count;
	atomic_store_explicit(&tried.go, 0, memory_order_relaxed);
	for (got = 0; got < count + BESIDES && got < MOST; got++) {
		atomic_store_explicit(&tried.tcb[got], 0, memory_order_relaxed);
		if (fz_stack_alloc(size, guard, &stack[got], &got_size))
			break;
		if (fz_host.thread_create(stack[got], got_size, wait_and_end, &tried.tcb[got])) {
			fz_stack_free(stack[got], size, guard);
			break;
		}
	}
	/* release: pairs with wait_and_end(). */
	atomic_store_explicit(&tried.go, 1, memory_order_release);
	fz_sys_futex_wake(&tried.go, INT32_MAX);
	for (uint32_t i = 0; i < got; i++)
		await_end(&tried.tcb[i]);
	for (uint32_t i = 0; i < got; i++)
		fz_stack_free(stack[i], size, guard);
	return got < BESIDES ? 0 : got - BESIDES;
}
