/* SPDX-License-Identifier: MIT */
/*
 * tests/model/kernel.c - the kernel of the model: its threads, and the system calls that the explored
 * files make.  A call that is not here ends the exploration with its number.  Some are answered without effect: munmap,
 * mprotect, those about names, robust lists and alternate stacks.
 */
#include "tests/model/files.h"
#include "tests/model/kernel_futex.h"
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/rings.h"

#include <errno.h>
#include <link.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "runtime/fiber/fiber.h"

#define MAP_BASE 0x100000000000u
#define SPIN_MOST 128u

struct machine M;
__thread uint32_t model_context;

/* ---- thread-local storage: a copy of the explorer's own, as it is at the start ----------- */

static char *tls_image;
static size_t tls_below, tls_above;

static int find_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t *lowest = arg;

	(void)size;
	if (info->dlpi_tls_data && (uintptr_t)info->dlpi_tls_data < *lowest)
		*lowest = (uintptr_t)info->dlpi_tls_data;
	return 0;
}

void kernel_start(void)
{
	uintptr_t tcb = fz_tcb_get(), lowest = tcb;
	const uint32_t *size = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");

	dl_iterate_phdr(find_tls, &lowest);
	tls_below = (tcb - lowest + 63) / 64 * 64;
	tls_above = size ? *size : 2304;
	tls_image = mmap(NULL, tls_below + tls_above, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(tls_image + tls_below, (void *)tcb, tls_above);
	memcpy(tls_image + tls_below - (tcb - lowest), (void *)lowest, tcb - lowest);
	M.map_next = MAP_BASE;
	M.next_tid = 1000;
	M.now = 1000000000;
}

/* A context at the top of the stack that calls fn(arg).  Returns its thread pointer. */
uintptr_t stack_prepare(void *stack, size_t size, void **ret_sp, void (*fn)(void *), void *arg)
{
	uintptr_t tcb = ((uintptr_t)stack + size - tls_above) & ~(uintptr_t)63;
	char *bottom = (char *)tcb - tls_below;

	model_put(bottom, tls_image, tls_below + tls_above);
	((uintptr_t *)tcb)[0] = tcb;
	((uintptr_t *)tcb)[2] = tcb;
	*(uint32_t *)(tcb + ((uintptr_t)&model_context - fz_tcb_get())) = 1u << M.contexts++ % 32;
	*ret_sp = fz_frame_make(bottom, fn, arg);
	return tcb;
}

/* Of the running context: what lies above is its thread-local storage. */
uintptr_t stack_end(void)
{
	return fz_tcb_get() - tls_below;
}

bool stack_has(uintptr_t addr)
{
	for (int i = 0; i < M.stacks; i++)
		if (addr >= M.stack[i].low && addr < M.stack[i].high &&
		    (addr < M.stack[i].tls || addr >= M.stack[i].tcb))
			return true;
	return false;
}

/* ---- kthreads ------------------------------------------------------------------------ */

static void kthread_main(void *arg)
{
	struct kthread *kt = arg;

	kt->fn(kt->arg);
	kthread_exit();
}

static char reaper_stack[64 * 1024] __attribute__((aligned(64)));
static uintptr_t reaper_tcb;

/* A kthread that ends leaves its stack for this one. */
static void reap(void *arg)
{
	(void)arg;
	for (;;) {
		struct kthread *kt = &M.kt[M.current];
		const uint32_t one = 1, none = 0;

		if (M.reap_flag) {
			model_put(M.reap_flag, &one, sizeof(one));
			futex_wake(M.reap_flag, INT32_MAX, UINT32_MAX);
			M.reap_flag = NULL;
		}
		if (kt->clear_tid) {
			model_put(kt->clear_tid, &none, sizeof(none));
			futex_wake(kt->clear_tid, 1, UINT32_MAX);
		}
		kt->state = KT_ENDED;
		signals_kthread_ends(M.current);
		schedule_block();
	}
}

int kthread_start(void *stack, size_t size, void *(*fn)(void *), void *arg, const char *name)
{
	struct kthread *kt = &M.kt[M.kthreads];
	int *tid;

	if (!M.kthreads) {
		stack_register(reaper_stack, sizeof(reaper_stack), "reaper");
		reaper_tcb = stack_prepare(reaper_stack, sizeof(reaper_stack), &M.reaper_sp, reap, NULL);
	}
	if (M.kthreads == KTHREADS)
		model_outside("more kernel threads than model.h has room for");
	if (!exploring)
		stack_register(stack, size, name);
	*kt = (struct kthread){ .state = KT_RUNNABLE, .tid = M.next_tid++, .fd = -1,
				.mask = ~(uint64_t)0, .deadline = FOREVER, .fn = fn, .arg = arg,
				.name = name };
	kt->tcb = stack_prepare(stack, size, &kt->sp, kthread_main, kt);
	if (M.stacks == STACKS)
		model_outside("more stacks than model.h has room for");
	M.stack[M.stacks].low = (uintptr_t)stack;
	M.stack[M.stacks].tls = kt->tcb - tls_below;
	M.stack[M.stacks].tcb = kt->tcb;
	M.stack[M.stacks++].high = (uintptr_t)stack + size;
	/* The first one starts before the layout is known, and sets it itself. */
	tid = (int *)(kt->tcb + (uintptr_t)fz_layout.tid);
	if (fz_layout.tid)
		*tid = kt->tid;
	return M.kthreads++;
}

void kthread_goto(int next)
{
	struct kthread *from = &M.kt[M.current];
	const int old = M.current;
	void **save = &from->sp;

	if (tso)
		tso_hide(old);
	from->tcb = fz_tcb_get();
	if (from->state == KT_ENDED)
		save = &M.reaper_sp;
	M.current = next;
	if (tso)
		tso_show(next);
	fz_switch_fsgsbase(save, M.kt[next].sp, M.kt[next].tcb);
	rings_goes_on();
}

_Noreturn void kthread_exit(void)
{
	static void *gone;

	fz_switch_fsgsbase(&gone, M.reaper_sp, reaper_tcb);
	__builtin_unreachable();
}

/* Instead of arch/x86_64/switch.S, which ends the kernel thread in assembly. */
void fz_adopt(void **save_sp, _Atomic uint32_t *flag)
{
	model_note_write(save_sp, sizeof(*save_sp));
	M.reap_flag = (uint32_t *)flag;
	fz_switch_fsgsbase(save_sp, M.reaper_sp, reaper_tcb);
}

long fz_clone_resume(unsigned long flags, void *load_sp, uintptr_t tcb)
{
	(void)flags;
	(void)load_sp;
	(void)tcb;
	model_outside("fz_clone_resume");
}

long sleep_in_kernel(uint64_t deadline)
{
	struct kthread *kt = &M.kt[M.current];
	const bool events = !kt->futex;

	kt->result = 0;
	if (kt->signalled) {
		kthread_waits_no_more(kt);
		return -EINTR;
	}
	kt->deadline = deadline;
	kt->state = KT_BLOCKED;
	schedule_block();
	kt->deadline = FOREVER;
	/* What it looks at now, to see whether it goes on sleeping; futex() says it itself. */
	reduce_use(OBJECT_CLOCK, false);
	if (events)
		reduce_use(OBJECT_EVENTS, true);
	return kt->result;
}

bool sleep_is_interrupted(void)
{
	const int way = schedule_choose(3, RARE);

	if (way == 2)
		schedule_give_way();
	if (way)
		trace_say("%s: a signal interrupts the sleep", M.kt[M.current].name);
	return way;
}

static long sleep_until(uint64_t deadline)
{
	long err;

	do
		err = sleep_in_kernel(deadline);
	while (err == -EINTR && !signals_interrupt());
	return err;
}

void kthread_fire(int i)
{
	struct kthread *kt = &M.kt[i];
	const int current = M.current;

	/* Its doing, not that of the one that runs. */
	M.current = i;
	reduce_use(OBJECT_CLOCK, true);
	if (kt->futex)
		reduce_use(OBJECT_QUEUE(kt->futex), true);
	else
		reduce_use(OBJECT_EVENTS, true);
	M.current = current;
	if (M.now < kt->deadline)
		M.now = kt->deadline;
	kt->result = kt->futex ? -ETIMEDOUT : 0;
	kthread_waits_no_more(kt);
	kt->state = KT_RUNNABLE;
}

uint64_t deadline_of(const struct timespec *ts)
{
	if (ts)
		reduce_use(OBJECT_CLOCK, false);
	return ts ? M.now + (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec : FOREVER;
}

void model_relax(void)
{
	if (!exploring)
		return;
	/* Longer than any spin of the library, which goes to sleep then: that must be explored, too. */
	if (++M.kt[M.current].relaxed < SPIN_MOST) {
		step++;
		schedule_point();
		return;
	}
	M.kt[M.current].relaxed = 0;
	M.kt[M.current].yielded = true;
	schedule_block();
	if (M.kt[M.current].signalled)
		signals_return();
}

uint64_t model_cycles(void)
{
	reduce_use(OBJECT_CLOCK, false);
	return M.now * 2 + 1;
}

/* ---- memory ---------------------------------------------------------------------------- */

void *model_map(size_t size)
{
	void *at = (void *)M.map_next;

	reduce_use(OBJECT_MAPS, true);
	size = (size + 4095) & ~(size_t)4095;
	if (mmap(at, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != at)
		model_outside("no memory at the address that the model wants");
	M.map_next += size + 4096;
	return at;
}

static long forget_pages(uintptr_t at, size_t size)
{
	if (exploring)
		model_put_zeros(at, size);
	else
		madvise((void *)at, size, MADV_DONTNEED);
	return 0;
}

static long limit(long which, struct rlimit *ret)
{
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };

	if (which == RLIMIT_NOFILE)
		r.rlim_cur = r.rlim_max = FDS;
	if (ret)
		model_put(ret, &r, sizeof(r));
	return 0;
}

/* What a system call uses beyond the memory that it is given; futex() says it itself. */
static void note_objects(long nr)
{
	switch (nr) {
	case SYS_futex: case SYS_mmap: case SYS_munmap: case SYS_mprotect: case SYS_madvise: case SYS_gettid:
	case SYS_getuid: case SYS_getpid: case SYS_prlimit64: case SYS_set_robust_list: case SYS_rseq: case SYS_prctl:
	case SYS_get_robust_list: case SYS_set_tid_address: case SYS_waitid: case SYS_sched_getaffinity:
	case SYS_sched_yield: case SYS_nanosleep:
		return;
	case SYS_clock_gettime:
		reduce_use(OBJECT_CLOCK, false);
		return;
	case SYS_rt_sigprocmask: case SYS_rt_sigaction: case SYS_rt_sigtimedwait: case SYS_kill:
	case SYS_rt_sigqueueinfo: case SYS_tgkill: case SYS_rt_tgsigqueueinfo: case SYS_sigaltstack:
		reduce_use(OBJECT_SIGNALS, true);
		return;
	default:
		reduce_use(OBJECT_EVENTS, true);
	}
}

static long answer(long nr, long a, long b, long c, long d, long e, long f)
{
	struct kthread *kt = &M.kt[M.current];
	char text[64];

	switch (nr) {
	case SYS_futex: return futex((void *)a, (int)b, (uint32_t)c, d, (void *)e, (uint32_t)f);
	case SYS_mmap: return (long)model_map((size_t)b);
	case SYS_munmap:
	case SYS_mprotect: return 0;
	case SYS_madvise: return c == MADV_DONTNEED ? forget_pages((uintptr_t)a, (size_t)b) : 0;
	case SYS_gettid: return kt->tid;
	case SYS_getuid:
	case SYS_getpid: return 1000;
	case SYS_prlimit64: return limit(b, (void *)d);
	case SYS_rt_sigprocmask: return signals_change_mask((int)a, (void *)b, (void *)c);
	case SYS_rt_sigaction: return signals_action((int)a, (void *)b, (void *)c);
	case SYS_rt_sigtimedwait: return signals_take((void *)a, (void *)b, (void *)c);
	/* All processes are this one. */
	case SYS_kill: return signals_send(0, (int)b, NULL);
	case SYS_rt_sigqueueinfo: return signals_send(0, (int)b, (void *)c);
	case SYS_tgkill: return signals_send((int)b, (int)c, NULL);
	case SYS_rt_tgsigqueueinfo: return signals_send((int)b, (int)c, (void *)d);
	case SYS_sigaltstack: return signals_stack((void *)b);
	case SYS_set_robust_list:
	case SYS_rseq:
	case SYS_prctl: return 0;
	case SYS_get_robust_list: return -ENOSYS;
	case SYS_set_tid_address: kt->clear_tid = (void *)a; return kt->tid;
	case SYS_waitid: return -ECHILD;
	case SYS_sched_getaffinity: return -ENOSYS;
	case SYS_sched_yield:
		kt->relaxed = SPIN_MOST;
		model_relax();
		return 0;
	case SYS_nanosleep: return sleep_until(deadline_of((void *)a));
	case SYS_epoll_create1: return new_fd(new_file(FILE_EPOLL), 3);
	case SYS_eventfd2: return new_fd(new_file(FILE_EVENT), 3);
	case SYS_fcntl: return fd_control((int)a, (int)b, c);
	case SYS_close:
		if (!file_of((int)a))
			return -EBADF;
		M.fd_of[a] = 0;
		return 0;
	case SYS_epoll_ctl: return epoll_control((int)a, (int)b, (int)c, (void *)d);
	case SYS_epoll_pwait2: return epoll_wait_for((int)a, (void *)b, c, deadline_of((void *)d));
	case SYS_ppoll: return poll_for((void *)a, b, (void *)c);
	case SYS_read: return event_transfer((int)a, (void *)b, false);
	case SYS_write: return event_transfer((int)a, (void *)b, true);
	case SYS_io_uring_enter: return ring_enter((int)a, (uint32_t)b, (uint32_t)c, (uint32_t)d, (void *)e);
	case SYS_io_uring_register: return ring_register((int)a, (unsigned)b, (void *)c);
	case SYS_clock_gettime: {
		struct timespec ts = { (time_t)(M.now / 1000000000), (long)(M.now % 1000000000) };

		/* A thread's CPU time is all time: it has always used its CPU. */
		model_put((void *)b, &ts, sizeof(ts));
		return 0;
	}
	default:
		snprintf(text, sizeof(text), "system call %ld (asm/unistd_64.h)", nr);
		model_outside(text);
	}
}

long model_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long result;

	do {
		if (exploring) {
			step++;
			schedule_point();
			if (tso)
				tso_flush(M.current);
			rings_task_work();
		}
		M.kt[M.current].in_kernel = true;
		note_objects(nr);
		result = answer(nr, a, b, c, d, e, f);
		M.kt[M.current].in_kernel = false;
	} while (signals_end_call(&result));
	return result;
}
