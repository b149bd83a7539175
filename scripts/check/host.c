/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/features.h"
#include "runtime/base/options.h"
#include "runtime/base/uapi.h"

/* Does FIBERIZE_WITHOUT name the feature? */
static bool goes_without(enum fz_feature feature)
{
	const char *words = getenv(fz_options[FZ_OPTION_ID_without].variable);
	uint64_t without;

	return words && fz_option_parse(&fz_options[FZ_OPTION_ID_without], words, &without) &&
	       without >> feature & 1;
}

/* ---- the cost of a switch ------------------------------------------------ */

#ifdef __x86_64__
#include <asm/prctl.h>
#include <sys/auxv.h>
#include <time.h>

enum {
	HWCAP2_FSGSBASE_BIT = 1 << 1,
	ROUNDS = 5,		/* the fastest round counts: other processes may use the CPU */
	CALLS = 50,
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

unsigned switch_call_ns(void)
{
	uint64_t least = UINT64_MAX;
	unsigned long base;

	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_BIT && !goes_without(FZ_FEATURE_FSGSBASE))
		return 0;
	if (syscall(SYS_arch_prctl, ARCH_GET_FS, &base) != 0)
		return 0;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begun = now_ns(), took;

		for (int i = 0; i < CALLS; i++)
			syscall(SYS_arch_prctl, ARCH_SET_FS, base);
		took = (now_ns() - begun) / CALLS;
		if (took < least)
			least = took;
	}
	return least ? (unsigned)least : 1;
}
#else
unsigned switch_call_ns(void)
{
	return 0;
}
#endif

/* ---- io_uring or epoll -------------------------------------------------- */

/*
 * Try the system calls that the library needs on this ring. Returns the name of the one that fails,
 * or NULL. *ret_err is its errno: EINVAL if the kernel does not know IORING_REGISTER_SYNC_CANCEL.
 */
static const char *refused_call(int ring, int *ret_err)
{
	struct fz_uapi_sync_cancel cancel = { .fd = -1 };

	*ret_err = 0;
	if (goes_without(FZ_FEATURE_SYNC_CANCEL)) {
		*ret_err = EINVAL;
		return "io_uring_register";
	}
	/* ENOENT is no failure: it means that there is no request to cancel. */
	if (syscall(SYS_io_uring_register, ring, FZ_UAPI_REGISTER_SYNC_CANCEL, &cancel, 1) < 0 &&
	    errno != ENOENT) {
		*ret_err = errno;
		return "io_uring_register";
	}
	if (syscall(SYS_io_uring_enter, ring, 0, 0, 0, NULL, 0) < 0) {
		*ret_err = errno;
		return "io_uring_enter";
	}
	return NULL;
}

static void try_ring(struct backend *b)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
			 IORING_SETUP_SUBMIT_ALL,
	};
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params), err = errno;
	const char *call = ring < 0 ? "io_uring_setup" : refused_call(ring, &err);
	const char *name = strerrorname_np(err);

	if (call && err == EINVAL)
		snprintf(b->why, sizeof(b->why),
			 "this kernel's io_uring is too old (6.0 or newer is needed)");
	else if (call)
		snprintf(b->why, sizeof(b->why), "%s: %s", call, name ? name : "unknown error");
	if (ring >= 0)
		close(ring);
}

void backend_find(struct backend *ret)
{
	const char *wanted = getenv(fz_options[FZ_OPTION_ID_backend].variable);

	*ret = (struct backend){ .by = BY_IO_URING };
	try_ring(ret);
	if (wanted && strcmp(wanted, "epoll") == 0)
		ret->by = BY_EPOLL;
	else if (*ret->why)
		ret->by = wanted && strcmp(wanted, "uring") == 0 ? BY_THREADS : BY_EPOLL;
}
