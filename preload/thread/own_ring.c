/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/own_ring.c - the program's own io_urings, by liburing's functions.
 *
 * The kernel keeps for each kernel thread which rings it alone may use (IORING_SETUP_SINGLE_ISSUER,
 * DEFER_TASKRUN) and the numbers of registered rings; and requests end with the kernel thread that
 * has submitted them.  So a fiber that makes, registers or enters a ring is wired.  liburing makes
 * its system calls by inline instructions, so the library interposes liburing's functions.
 */
#include "preload/thread/own_ring.h"

#include "preload/gate.h"
#include "preload/init.h"

#include <dlfcn.h>

#include "runtime/fiber/wire.h"

void fz_wire_for_ring(void)
{
	struct fz_fiber *self = fz_self();

	if (atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	if (!fz_runtime_runs())
		fz_wire_main_at_start();
	else if (self->kind == FZ_KIND_FIBER)
		fz_fiber_wire(self);
}

/*
 * Wire the caller.  Returns liburing's function of this name, or NULL.  If the program does not load
 * liburing itself, look for a liburing that was loaded with a module for that module only (RTLD_LOCAL).
 */
static void *enter(enum fz_symbol symbol)
{
	static const char *const files[] = { "liburing.so.2", "liburing-ffi.so.2" };
	void *real;

	fz_enter(symbol);
	fz_wire_for_ring();
	real = ((void **)&fz_real)[symbol];
	for (size_t i = 0; !real && i < sizeof(files) / sizeof(*files); i++) {
		void *handle = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);

		if (!handle)
			continue;
		real = dlsym(handle, fz_symbol_name(symbol));
		dlclose(handle);
	}
	return real;
}

FZ_EXPORT int io_uring_setup(unsigned entries, struct io_uring_params *params)
{
	__typeof__(io_uring_setup) *real = enter(FZ_SYM_io_uring_setup);

	return real ? real(entries, params) : -ENOSYS;
}

FZ_EXPORT int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	__typeof__(io_uring_queue_init) *real = enter(FZ_SYM_io_uring_queue_init);

	return real ? real(entries, ring, flags) : -ENOSYS;
}

FZ_EXPORT int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
					  struct io_uring_params *params)
{
	__typeof__(io_uring_queue_init_params) *real = enter(FZ_SYM_io_uring_queue_init_params);

	return real ? real(entries, ring, params) : -ENOSYS;
}

FZ_EXPORT int io_uring_queue_init_mem(unsigned entries, struct io_uring *ring,
				       struct io_uring_params *params, void *buf, size_t size)
{
	__typeof__(io_uring_queue_init_mem) *real = enter(FZ_SYM_io_uring_queue_init_mem);

	return real ? real(entries, ring, params, buf, size) : -ENOSYS;
}

FZ_EXPORT int io_uring_enable_rings(struct io_uring *ring)
{
	__typeof__(io_uring_enable_rings) *real = enter(FZ_SYM_io_uring_enable_rings);

	return real ? real(ring) : -ENOSYS;
}

FZ_EXPORT int io_uring_register(unsigned fd, unsigned opcode, const void *arg, unsigned n)
{
	__typeof__(io_uring_register) *real = enter(FZ_SYM_io_uring_register);

	return real ? real(fd, opcode, arg, n) : -ENOSYS;
}

FZ_EXPORT int io_uring_register_ring_fd(struct io_uring *ring)
{
	__typeof__(io_uring_register_ring_fd) *real = enter(FZ_SYM_io_uring_register_ring_fd);

	return real ? real(ring) : -ENOSYS;
}

FZ_EXPORT int io_uring_submit(struct io_uring *ring)
{
	__typeof__(io_uring_submit) *real = enter(FZ_SYM_io_uring_submit);

	return real ? real(ring) : -ENOSYS;
}

FZ_EXPORT int io_uring_submit_and_get_events(struct io_uring *ring)
{
	__typeof__(io_uring_submit_and_get_events) *real =
		enter(FZ_SYM_io_uring_submit_and_get_events);

	return real ? real(ring) : -ENOSYS;
}

FZ_EXPORT int io_uring_submit_and_wait(struct io_uring *ring, unsigned n)
{
	__typeof__(io_uring_submit_and_wait) *real = enter(FZ_SYM_io_uring_submit_and_wait);

	return real ? real(ring, n) : -ENOSYS;
}

FZ_EXPORT int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
					       unsigned n, struct __kernel_timespec *timeout,
					       sigset_t *mask)
{
	__typeof__(io_uring_submit_and_wait_timeout) *real =
		enter(FZ_SYM_io_uring_submit_and_wait_timeout);

	return real ? real(ring, cqe, n, timeout, mask) : -ENOSYS;
}
