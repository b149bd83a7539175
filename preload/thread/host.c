/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/host.c - what the runtime needs from libc for a thread's life: the frame to which
 * pthread_exit and cancellation unwind, for main() as well; and kernel threads.
 */
#include "preload/gate.h"
#include "preload/libc/loader.h"
#include "preload/process/fork_gate.h"
#include "preload/thread/exclude.h"
#include "preload/thread/tls.h"
#include "runtime/fiber/fiber.h"
#include "runtime/signal/signal.h"

extern void __pthread_register_cancel(__pthread_unwind_buf_t *buf);
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf);

void fz_host_run_thread(void *(*start)(void *), void *arg, void **result)
{
	__pthread_unwind_buf_t here;
	void *volatile value = NULL;
	volatile bool returned = false;

	/* A fiber that is used again looks when its thread-local variables are reset. */
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

int fz_host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg)
{
	struct fz_fiber *self = fz_self();
	uint64_t all = FZ_SIGNALS_ALL, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_attr_setstack(&attr, stack, size);
	if (!err) {
		/* The new thread inherits its creator's mask. */
		fz_sys_sigmask(SIG_SETMASK, &all, &old);
		/*
		 * A new carrier needs the locks of libc that are taken in here: mark the call as
		 * blocking.
		 */
		self->call.blocks = true;
		fz_gate_enter(FZ_GATE_THREADS);
		err = fz_real.pthread_create(&thread, &attr, fn, arg);
		fz_gate_leave(FZ_GATE_THREADS);
		self->call.blocks = false;
		fz_sys_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_attr_destroy(&attr);
	return -err;
}

/* main() runs in a frame of ours; pthread_exit in main() unwinds to it. */
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
	/* Other threads that still run were made and are counted by libc. */
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
