/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_SYS_H
#define FZ_RUNTIME_BASE_SYS_H

/*
 * runtime/base/sys.h - raw system calls.  All return a value or -errno, touch no
 * libc state, and may be used in any context, signal handlers included.
 */

#include <asm/errno.h>
#include <linux/futex.h>
#include <linux/time_types.h>

#include "arch/arch.h"
#include "runtime/base/base.h"
#include "runtime/base/count.h"
#include "runtime/base/fault.h"

#include <asm/unistd.h>

static inline long fz_sys_futex_wait(const void *word, uint32_t expected,
				     const struct __kernel_timespec *relative)
{
	if (FZ_FAULT(futex_spurious))
		return 0;
	if (FZ_FAULT(futex_eintr))
		return -EINTR;
	return fz_syscall4(__NR_futex, (long)word, FUTEX_WAIT_PRIVATE, expected,
			   (long)relative);
}

static inline long fz_sys_futex_wake(const void *word, int count)
{
	return fz_syscall3(__NR_futex, (long)word, FUTEX_WAKE_PRIVATE, count);
}

static inline long fz_sys_gettid(void)
{
	return fz_syscall0(__NR_gettid);
}

static inline long fz_sys_getpid(void)
{
	return fz_syscall0(__NR_getpid);
}

/* The kernel's sigset_t is one word; old may be NULL. */
static inline long fz_sys_sigmask(int how, const uint64_t *set, uint64_t *old)
{
	return fz_syscall4(__NR_rt_sigprocmask, how, (long)set, (long)old,
			   sizeof(uint64_t));
}

/*
 * Can the 8 bytes at p be read?  For arguments that natively only the kernel reads, which
 * answers EFAULT if it cannot.  rt_sigprocmask copies the set before it rejects an
 * impossible `how`.
 */
static inline bool fz_sys_readable(const void *p)
{
	const int efault = 14;

	/* For rt_sigprocmask, NULL means that there is no set. */
	return p && fz_syscall4(__NR_rt_sigprocmask, 9999, (long)p, 0, sizeof(uint64_t)) != -efault;
}

/*
 * Can the 8 bytes at p be written?  This overwrites them: rt_sigprocmask stores the signal mask
 * there.
 */
static inline bool fz_sys_writable(void *p)
{
	return p && fz_sys_sigmask(0, NULL, p) == 0;
}

/* Can the 4 bytes at p be written?  This overwrites them, and no others: getcpu stores the CPU's number there. */
static inline bool fz_sys_int_writable(void *p)
{
	const int efault = 14;

	return p && fz_syscall3(__NR_getcpu, (long)p, 0, 0) != -efault;
}

static inline bool fz_sys_failed(long ret)
{
	return ret < 0 && ret > -4096;
}

/*
 * Has a seccomp filter, and not the kernel, answered ret?  Makes the call again, for descriptor -1: the
 * kernel answers EBADF to that, and a filter answers ret once more.  The other arguments must be
 * harmless: no addresses except the library's own.
 */
static inline bool fz_sys_is_denied(long ret, long number, long b, long c, long d, long e, long f)
{
	return FZ_UNLIKELY(fz_sys_failed(ret)) && ret != -EAGAIN && ret != -EBADF &&
	       ret != -EINTR && fz_syscall6(number, -1, b, c, d, e, f) == ret;
}

/* Poll fd without waiting.  Returns the POLL* bits that are set, 0, or -errno if a filter forbids ppoll. */
static inline long fz_sys_poll_now(int fd, short events)
{
	struct {
		int fd;
		short events;
		uint16_t revents;
	} p = { .fd = fd, .events = events };	/* the kernel's struct pollfd */
	const struct __kernel_timespec none = { 0, 0 };
	long n = fz_syscall5(__NR_ppoll, (long)&p, 1, (long)&none, 0, 0);

	return n > 0 ? p.revents : n;
}

/* Returns the value of an option of SOL_SOCKET, or -errno.  Only SO_INCOMING_CPU has a negative value: -1, not known. */
static inline int fz_sys_socket_option(int fd, int option)
{
	const int level_socket = 1;
	int value = 0;
	uint32_t size = sizeof(value);

	long err = fz_syscall5(__NR_getsockopt, fd, level_socket, option, (long)&value,
			       (long)&size);

	return err ? (int)err : value;
}

/* Returns 1, 0, or -errno. */
static inline int fz_sys_is_stream(int fd)
{
	const int option_type = 3, type_stream = 1;
	int type = fz_sys_socket_option(fd, option_type);

	return type < 0 ? type : type == type_stream;
}

/* Returns 1, 0, or -errno. */
static inline int fz_sys_is_unix(int fd)
{
	const int option_domain = 39, domain_unix = 1;
	int domain = fz_sys_socket_option(fd, option_domain);

	return domain < 0 ? domain : domain == domain_unix;
}

static inline long fz_sys_mmap(size_t size, int prot, int flags)
{
	if (FZ_FAULT(mmap))
		return -ENOMEM;
	return fz_syscall6(__NR_mmap, 0, (long)size, prot, flags, -1, 0);
}

/* Map memory for records, and count it as table_bytes (runtime/base/counters.def). */
static inline long fz_sys_map_table(size_t size)
{
	const int readable = 1, writable = 2, private = 2, anonymous = 32;
	long mem = fz_sys_mmap(size, readable | writable, private | anonymous);

	if (!fz_sys_failed(mem))
		fz_count_total(FZ_TOTAL_table_bytes, (int64_t)size);
	return mem;
}

static inline void fz_sys_unmap_table(void *table, size_t size)
{
	fz_syscall2(__NR_munmap, (long)table, (long)size);
	fz_count_total(FZ_TOTAL_table_bytes, -(int64_t)size);
}

/*
 * Fill whole pages of private memory with zeros without touching them.  In a fork's child
 * touching would copy each page.
 */
static inline void fz_sys_forget_pages(void *pages, size_t size)
{
	const int dontneed = 4;

	if (fz_syscall3(__NR_madvise, (long)pages, (long)size, dontneed))
		__builtin_memset(pages, 0, size);
}

#endif
