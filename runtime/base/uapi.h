/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_UAPI_H
#define FZ_RUNTIME_BASE_UAPI_H

/*
 * runtime/base/uapi.h - kernel interfaces that are newer than the oldest kernel headers that
 * the library builds with, or newer than liburing 2.3.  The names follow the kernel's.
 */

#include <stdint.h>

enum {
	/* Linux 5.19 */
	FZ_UAPI_ASYNC_CANCEL_ALL = 1 << 0,
	FZ_UAPI_ASYNC_CANCEL_ANY = 1 << 2,
	/* Linux 6.0 */
	FZ_UAPI_REGISTER_SYNC_CANCEL = 24,
	/* Linux 6.7 */
	FZ_UAPI_OP_WAITID = 50,
	FZ_UAPI_OP_FUTEX_WAIT = 51,	/* flags in fd, value in off, bits in addr3 */
	FZ_UAPI_FUTEX2_SIZE_U32 = 2,
	FZ_UAPI_FUTEX2_PRIVATE = 128,
	FZ_UAPI_NR_FUTEX_WAKE = 454,
	FZ_UAPI_NR_FUTEX_WAIT = 455,
	FZ_UAPI_NR_FUTEX_REQUEUE = 456,
	/* Linux 6.10 */
	FZ_UAPI_NOP_INJECT_RESULT = 1 << 0,
	/* Linux 6.13 */
	FZ_UAPI_MADV_GUARD_INSTALL = 102,
	/* Linux 6.15 */
	FZ_UAPI_ENTER_NO_IOWAIT = 1 << 7,
	FZ_UAPI_FEAT_NO_IOWAIT = 1 << 17,
};

/* struct io_uring_sync_cancel_reg, Linux 6.0. */
struct fz_uapi_sync_cancel {
	uint64_t addr;
	int32_t fd;
	uint32_t flags;
	struct {
		int64_t tv_sec, tv_nsec;
	} timeout;
	uint64_t pad[4];
};
_Static_assert(sizeof(struct fz_uapi_sync_cancel) == 64, "as in the kernel");

/* struct futex_waitv, Linux 5.16. */
struct fz_uapi_futex_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};
_Static_assert(sizeof(struct fz_uapi_futex_waitv) == 24, "as in the kernel");

/* struct sched_attr in its first version; glibc has it from 2.41 on. */
struct fz_uapi_sched_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

_Static_assert(sizeof(struct fz_uapi_sched_attr) == 48, "SCHED_ATTR_SIZE_VER0");

/* struct rseq of Linux 4.18, as glibc 2.35 and newer register it. */
struct fz_uapi_rseq {
	uint32_t cpu_id_start;
	uint32_t cpu_id;
	uint64_t rseq_cs;
	uint32_t flags;
};
enum {
	FZ_UAPI_RSEQ_FLAG_UNREGISTER = 1,
	FZ_UAPI_RSEQ_CPU_ID_REGISTRATION_FAILED = -2,
};
#ifdef __x86_64__
#define FZ_UAPI_RSEQ_SIG 0x53053053
#else
#define FZ_UAPI_RSEQ_SIG 0xd428bc00
#endif

#endif
