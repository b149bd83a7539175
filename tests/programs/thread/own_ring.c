/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/own_ring.c - io_urings of the program's own, which belong to one thread
 * (IORING_SETUP_SINGLE_ISSUER, DEFER_TASKRUN), or whose number does (registered rings).
 */
#include "check.h"

#include <dlfcn.h>
#include <liburing.h>

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

enum { THREADS = 6, ROUNDS = 60, ALONE = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN };

/* Let other threads run on the kernel threads that this one has used. */
static void wander(const int *own_pipe)
{
	char c;

	CHECK_INT(write(own_pipe[1], "x", 1), 1);
	CHECK_INT(read(own_pipe[0], &c, 1), 1);
	usleep(100);
}

static int32_t complete_one(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int32_t result;

	CHECK_OK(io_uring_wait_cqe(ring, &cqe));
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

static void use(struct io_uring *ring)
{
	int own_pipe[2], slow[2];
	char c;

	CHECK_OK(pipe(own_pipe));
	CHECK_OK(pipe(slow));
	for (int i = 0; i < ROUNDS; i++) {
		io_uring_prep_nop(io_uring_get_sqe(ring));
		CHECK_INT(io_uring_submit_and_wait(ring, 1), 1);
		CHECK_OK(complete_one(ring));
		/* This one is under way while the thread does other things. */
		io_uring_prep_read(io_uring_get_sqe(ring), slow[0], &c, 1, 0);
		CHECK_INT(io_uring_submit(ring), 1);
		wander(own_pipe);
		CHECK_INT(write(slow[1], "s", 1), 1);
		CHECK_INT(complete_one(ring), 1);
	}
	for (int i = 0; i < 2; i++)
		CHECK_OK(close(own_pipe[i]) || close(slow[i]));
}

static void *alone(void *unused)
{
	struct io_uring ring;

	CHECK_OK(io_uring_queue_init(8, &ring, ALONE));
	use(&ring);
	io_uring_queue_exit(&ring);
	return unused;
}

static void *by_params(void *unused)
{
	struct io_uring_params params = { .flags = ALONE };
	struct io_uring ring;

	CHECK_OK(io_uring_queue_init_params(8, &ring, &params));
	use(&ring);
	io_uring_queue_exit(&ring);
	return unused;
}

static void *registered(void *unused)
{
	struct io_uring ring;

	CHECK_OK(io_uring_queue_init(8, &ring, 0));
	CHECK_INT(io_uring_register_ring_fd(&ring), 1);
	use(&ring);
	io_uring_queue_exit(&ring);
	return unused;
}

/*
 * Made by another thread; the thread that enables the ring is the one that may use it.  Some
 * versions of liburing do not export the function.
 */
static void *enabled(void *ring)
{
	int (*enable)(struct io_uring *ring);

	*(void **)&enable = dlsym(RTLD_DEFAULT, "io_uring_enable_rings");
	if (!enable || enable(ring) == -ENOSYS)
		CHECK_OK(syscall(SYS_io_uring_register, ((struct io_uring *)ring)->ring_fd,
				 IORING_REGISTER_ENABLE_RINGS, NULL, 0));
	else
		CHECK_INT(enable(ring), -EBADFD);
	use(ring);
	return NULL;
}

/* In memory of the program's; only newer libraries have it. */
static void *in_memory(void *unused)
{
	__typeof__(int(unsigned, struct io_uring *, struct io_uring_params *, void *, size_t)) *init;
	struct io_uring_params params = { .flags = ALONE };
	static char memory[THREADS][1 << 16] __attribute__((aligned(1 << 16)));
	static _Atomic int next;
	struct io_uring ring;

	*(void **)&init = dlsym(RTLD_DEFAULT, "io_uring_queue_init_mem");
	/* The memory counts as locked, and the kernel may be older. */
	if (!init || init(8, &ring, &params, memory[next++], sizeof(memory[0])) < 0)
		return unused;
	use(&ring);
	io_uring_queue_exit(&ring);
	return unused;
}

/* Submits and collects by one call each. */
static void *collects(void *unused)
{
	struct __kernel_timespec soon = { .tv_nsec = 100000 };
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int own_pipe[2];

	CHECK_OK(io_uring_queue_init(8, &ring, ALONE));
	CHECK_OK(pipe(own_pipe));
	for (int i = 0; i < ROUNDS; i++) {
		io_uring_prep_nop(io_uring_get_sqe(&ring));
		CHECK_INT(io_uring_submit_and_get_events(&ring), 1);
		wander(own_pipe);
		CHECK_OK(complete_one(&ring));
		io_uring_prep_nop(io_uring_get_sqe(&ring));
		CHECK(io_uring_submit_and_wait_timeout(&ring, &cqe, 1, NULL, NULL) >= 0);
		CHECK_OK(cqe->res);
		io_uring_cqe_seen(&ring, cqe);
		wander(own_pipe);
		CHECK_INT(io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &soon, NULL), -ETIME);
	}
	for (int i = 0; i < 2; i++)
		CHECK_OK(close(own_pipe[i]));
	io_uring_queue_exit(&ring);
	return unused;
}

static int enter_by_number(int ring)
{
	return (int)syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
}

/* The kernel refuses it to another thread than the one that made the ring. */
static int register_by_function(int ring)
{
	unsigned workers[2] = { 0, 0 };

	return io_uring_register((unsigned)ring, IORING_REGISTER_IOWQ_MAX_WORKERS, workers, 2);
}

static void use_number(int ring, int (*call)(int ring))
{
	int own_pipe[2];

	CHECK(ring >= 0);
	CHECK_OK(pipe(own_pipe));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(call(ring));
		wander(own_pipe);
	}
	CHECK_OK(close(ring) || close(own_pipe[0]) || close(own_pipe[1]));
}

static void *by_number(void *unused)
{
	struct io_uring_params params = { .flags = ALONE };

	use_number((int)syscall(SYS_io_uring_setup, 8, &params), enter_by_number);
	return unused;
}

static void *by_function(void *unused)
{
	struct io_uring_params params = { .flags = ALONE };

	CHECK_INT(io_uring_setup(0, &params), -EINVAL);
	use_number(io_uring_setup(8, &params), register_by_function);
	CHECK_INT(io_uring_register(1000, IORING_REGISTER_IOWQ_MAX_WORKERS, NULL, 0), -EBADF);
	return unused;
}

static void all_at_once(const char *name, void *(*fn)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = start(fn, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(threads[i]);
	puts(name);
}

int main(void)
{
	struct io_uring ring, disabled;
	pthread_t other;

	if (io_uring_queue_init(8, &ring, ALONE)) {
		puts("no io_uring, or an old one");
		return success();
	}
	CHECK_OK(io_uring_queue_init(8, &disabled, ALONE | IORING_SETUP_R_DISABLED));
	all_at_once("alone", alone);
	all_at_once("by params", by_params);
	all_at_once("registered", registered);
	all_at_once("by number", by_number);
	all_at_once("by function", by_function);
	all_at_once("in memory", in_memory);
	all_at_once("collects", collects);
	other = start(enabled, &disabled);
	use(&ring);
	finish(other);
	return success();
}
