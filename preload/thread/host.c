/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/host.c - what the runtime needs from libc for a thread's life: the frame to which
 * pthread_exit and cancellation unwind, for main() as well; and kernel threads.
 */
#include "preload/gate.h"
#include "preload/libc/loader.h"
#include "preload/libc/modules.h"
#include "preload/libc/thread_end.h"
#include "preload/process/fork_gate.h"
#include "preload/thread/exclude.h"
#include "preload/thread/tls.h"
#include "runtime/base/host.h"
#include "runtime/fiber/fiber.h"
#include "runtime/sched/announce.h"
#include "runtime/signal/signal.h"

extern void __pthread_register_cancel(__pthread_unwind_buf_t *buf);
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf);

void fz_host_run_thread(void *(*start)(void *), void *arg, void **result)
{
	__pthread_unwind_buf_t here;
	void *volatile value = NULL;
	volatile bool returned = false;

	/* A recycled fiber has made this check when its thread-local variables were reset. */
	if (fz_is_fiber(fz_self()) && !fz_self()->thread.recycled)
		fz_loader_check_stacks();
	/* The creator may have named the thread already. */
	fz_exclude_by_name(fz_self());
	/* The result of a cancelled thread; pthread_exit and return overwrite it. */
	*result = PTHREAD_CANCELED;
	if (__sigsetjmp_cancel(here.__cancel_jmp_buf, 0) == 0) {
		__pthread_register_cancel(&here);
		fz_signal_life_begins(fz_self());
		value = start(arg);
		returned = true;
	} else {
		returned = false;
	}
	/*
	 * If a destructor leaves by pthread_exit or cancellation, the thread goes on with the
	 * other destructors.
	 */
	fz_host_run_destructors();
	fz_signal_life_ends(fz_self());
	if (returned)
		*result = value;
	__pthread_unregister_cancel(&here);
}

/*
 * The library learns how libc ends a thread from the first thread whose handle the runtime asks for.
 * The runtime turns that thread into the own context of the first carrier. The start of the runtime
 * waits for that in any case, so learning costs no further wait.
 */
static struct {
	void *(*fn)(void *);
	void *arg;
	_Atomic uint32_t taken;		/* futex */
} first;

static void *first_thread(void *unused)
{
	void *(*fn)(void *) = first.fn;
	void *arg = first.arg;

	(void)unused;
	fz_thread_end_learn(__builtin_return_address(0));
	/* release: pairs with create_first(). */
	atomic_store_explicit(&first.taken, 1, memory_order_release);
	fz_sys_futex_wake(&first.taken, 1);
	return fn(arg);
}

static int create_first(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			void *arg)
{
	int err;

	first.fn = fn;
	first.arg = arg;
	err = fz_real.pthread_create(thread, attr, first_thread, NULL);
	/* acquire: pairs with first_thread(). */
	while (!err && !atomic_load_explicit(&first.taken, memory_order_acquire))
		fz_sys_futex_wait(&first.taken, 0, NULL);
	return err;
}

/*
 * Begin the part of a call in which a fiber stays on its carrier. Called inside the gate, because the
 * fiber may park and change its carrier while it enters the gate. Returns the mask for end_blocking().
 */
static uint64_t begin_blocking(void)
{
	struct fz_fiber *self = fz_self();
	uint64_t all = FZ_SIGNALS_ALL, old;

	/* A new thread inherits its creator's mask. */
	fz_sys_sigmask(SIG_SETMASK, &all, &old);
	/*
	 * libc takes locks in this part that are also needed to make a carrier. Mark the call as
	 * blocking, so that the fiber keeps its carrier and never waits for a new one with a lock held.
	 */
	self->call.blocks = true;
	fz_announce_brief(self);
	return old;
}

static void end_blocking(uint64_t old)
{
	struct fz_fiber *self = fz_self();

	self->call.blocks = false;
	fz_sys_sigmask(SIG_SETMASK, &old, NULL);
	fz_announce_end(self);
}

uint64_t fz_host_threads_begin(void)
{
	fz_gate_enter(FZ_GATE_THREADS);
	return begin_blocking();
}

void fz_host_threads_end(uint64_t old)
{
	end_blocking(old);
	fz_gate_leave(FZ_GATE_THREADS);
}

/*
 * libc's pthread_create takes the loader's lock. A fiber takes that lock here, where it can park for
 * the lock. So only one fiber at a time blocks its kernel thread for the other locks of libc, and
 * threads that hold those locks can still get carriers.
 */
static int create_locked(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			 void *arg, bool may_learn)
{
	const bool locks = fz_modules_known() && fz_is_fiber(fz_self()) &&
			   !fz_host.has_own_allocator;
	uint64_t old;
	int err;

	fz_gate_enter(FZ_GATE_THREADS);
	if (locks)
		fz_modules_lock();
	old = begin_blocking();
	/* relaxed: only the main thread makes threads before the first one. */
	if (!may_learn || FZ_LIKELY(atomic_load_explicit(&first.taken, memory_order_relaxed)))
		err = fz_real.pthread_create(thread, attr, fn, arg);
	else
		err = create_first(thread, attr, fn, arg);
	/* Unlock before end_blocking(), in which the fiber may have to wait for a processor. */
	if (locks)
		fz_modules_unlock();
	end_blocking(old);
	fz_gate_leave(FZ_GATE_THREADS);
	return err;
}

int fz_host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg,
			  unsigned long *ret_handle)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_attr_setstack(&attr, stack, size);
	if (!err)
		err = create_locked(&thread, &attr, fn, arg, ret_handle != NULL);
	pthread_attr_destroy(&attr);
	if (!err && ret_handle)
		*ret_handle = thread;
	return -err;
}

/* The program's main(). It runs in a frame of the library, to which pthread_exit in main() unwinds. */
static int (*program_main)(int, char **, char **);

struct main_call {
	int argc;
	char **argv, **envp;
};

static void *call_main(void *arg)
{
	struct main_call *call = arg;

	exit(program_main(call->argc, call->argv, call->envp));
}

static int main_in_frame(int argc, char **argv, char **envp)
{
	struct main_call call = { argc, argv, envp };
	struct fz_fiber *self = fz_self();

	fz_host_run_thread(call_main, &call, &self->thread.result);
	/* main() left by pthread_exit or by cancellation. */
	if (fz_is_fiber(self))
		fz_fiber_main_ended();
	/* Without fibers, libc has made all threads, and ends the process after the last one. */
	fz_real.pthread_exit(self->thread.result);
	__builtin_unreachable();
}

FZ_EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
				void (*init)(void), void (*fini)(void),
				void (*rtld_fini)(void), void *stack_end)
{
	fz_enter(FZ_SYM___libc_start_main);
	program_main = main;
	return fz_real.__libc_start_main(main_in_frame, argc, argv, init, fini, rtld_fini,
					 stack_end);
}
