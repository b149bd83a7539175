/* SPDX-License-Identifier: MIT */
/*
 * runtime/base/counters.c - where the counters are: in the library's data, in memory of their own,
 * or in a mapped file, which holds what was counted even after SIGKILL.
 */
#include "runtime/base/counters.h"

#include <asm/errno.h>
#include <asm/signal.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "runtime/base/count.h"
#include "runtime/base/sys.h"

/* Whole pages, for fz_counters_after_fork(). */
static union {
	_Alignas(4096) struct fz_counters counters;
	char pages[FZ_ROUND_UP(sizeof(struct fz_counters), 4096)];
} always;

struct fz_counters *fz_counters = &always.counters;
struct fz_call_counters *fz_call_counters;

enum { SIZE = FZ_ROUND_UP(sizeof(struct fz_call_counters), 4096) };

/* Map memory, or the file fd, that can be read and written; at address `at`, or anywhere if NULL. */
static long map(void *at, size_t size, int flags, int fd)
{
	return fz_syscall6(__NR_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE, flags, fd, 0);
}

void fz_counters_begin(void)
{
	struct { int64_t s, ns; } now = { 0, 0 };
	const int realtime = 0;

	__builtin_memcpy(fz_counters->magic, FZ_COUNTERS_MAGIC, sizeof(FZ_COUNTERS_MAGIC));
	fz_counters->version = FZ_COUNTERS_VERSION;
	fz_counters->size = fz_call_counters ? sizeof(*fz_call_counters) : sizeof(*fz_counters);
	fz_counters->pid = (uint32_t)fz_sys_getpid();
	fz_syscall2(__NR_clock_gettime, realtime, (long)&now);
	fz_counters->begin = (uint64_t)now.s;
	if (!fz_call_counters)
		return;
	fz_counters->blocks = FZ_BLOCKS_MOST;
	/* relaxed: there is no second thread. */
	atomic_store_explicit(&fz_counters->blocks_used, FZ_BLOCKS_SHARED, memory_order_relaxed);
}

bool fz_counters_start_calls(void)
{
	long mem = map(NULL, SIZE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (fz_sys_failed(mem))
		return false;
	fz_call_counters = (struct fz_call_counters *)mem;
	fz_counters = &fz_call_counters->counted;
	fz_counters_begin();
	return true;
}

struct fz_block *fz_counters_block(void)
{
	uint32_t n;

	if (!fz_call_counters)
		return NULL;
	/* relaxed: only the number matters. */
	n = atomic_load_explicit(&fz_counters->blocks_used, memory_order_relaxed);
	while (n < fz_counters->blocks &&
	       !atomic_compare_exchange_weak_explicit(&fz_counters->blocks_used, &n, n + 1,
						      memory_order_relaxed, memory_order_relaxed))
		continue;
	return &fz_call_counters->block[n < fz_counters->blocks ? n : n % FZ_BLOCKS_SHARED];
}

static bool is_same(const char *why, const char *known)
{
	size_t i = 0;

	while (i + 1 < sizeof(fz_counters->wired->why) && why[i] && why[i] == known[i])
		i++;
	return i + 1 == sizeof(fz_counters->wired->why) || why[i] == known[i];
}

struct fz_call_counts fz_counters_sum(unsigned row)
{
	/* relaxed: counters. */
	const uint32_t blocks = atomic_load_explicit(&fz_counters->blocks_used, memory_order_relaxed);
	struct fz_call_counts sum = { 0 };

	for (uint32_t i = 0; i < blocks; i++) {
		const struct fz_call_counts *c = &fz_call_counters->block[i].calls[row];

		sum.by_fibers += __atomic_load_n(&c->by_fibers, __ATOMIC_RELAXED);
		sum.passed += __atomic_load_n(&c->passed, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < FZ_OUTCOMES; k++)
			sum.outcome[k] += __atomic_load_n(&c->outcome[k], __ATOMIC_RELAXED);
	}
	return sum;
}

void fz_count_wired(const char *why)
{
	fz_count_total(FZ_TOTAL_fibers_wired, 1);
	for (unsigned i = 0; i < FZ_COUNTED_REASONS; i++) {
		uint32_t free = 0;

		/* acquire: pairs with the release below; why is there. */
		if (atomic_compare_exchange_strong_explicit(&fz_counters->wired[i].state, &free, 1,
							    memory_order_acquire,
							    memory_order_acquire)) {
			for (size_t n = 0; n + 1 < sizeof(fz_counters->wired->why) && why[n]; n++)
				fz_counters->wired[i].why[n] = why[n];
			atomic_store_explicit(&fz_counters->wired[i].state, 2,
					      memory_order_release);
		} else if (free != 2 || !is_same(why, fz_counters->wired[i].why)) {
			continue;
		}
		atomic_fetch_add_explicit(&fz_counters->wired[i].count, 1, memory_order_relaxed);
		return;
	}
}

/* ---- in a file ---------------------------------------------------------------------- */

/*
 * Does a process write to the file?  The kernel gives no lease then; each process with counters in the file has it
 * mapped.  It tells this of processes in other PID namespaces, too, but of none through an overlay.
 */
static bool is_written(long fd)
{
	long err;

	/* Who opens the file for writing while the lease lasts makes the kernel signal this process: by SIGIO, which kills. */
	if (fz_syscall3(__NR_fcntl, fd, F_SETSIG, SIGURG) != 0)
		return false;
	err = fz_syscall3(__NR_fcntl, fd, F_SETLEASE, F_RDLCK);
	if (err == 0)
		fz_syscall3(__NR_fcntl, fd, F_SETLEASE, F_UNLCK);
	return err == -EAGAIN;
}

/* May the file at this path be replaced?  It must hold counters, of a process that is gone or of this one. */
static bool may_replace(const char *path)
{
	struct fz_counters head;
	bool written;
	long n, fd = fz_syscall4(__NR_openat, AT_FDCWD, (long)path,
				 O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd == -ENOENT;
	n = fz_syscall3(__NR_read, fd, (long)&head, offsetof(struct fz_counters, size));
	written = is_written(fd);
	fz_syscall1(__NR_close, fd);
	return !written && n == (long)offsetof(struct fz_counters, size) &&
	       __builtin_memcmp(head.magic, FZ_COUNTERS_MAGIC, sizeof(FZ_COUNTERS_MAGIC)) == 0 &&
	       (head.pid == (uint32_t)fz_sys_getpid() ||
		fz_syscall2(__NR_kill, head.pid, 0) == -ESRCH);
}

/* Take room on the disk for the whole file now: without room for a page, a later access to it would be a fault. */
static long fill(long fd, size_t size)
{
	long err = fz_syscall4(__NR_fallocate, fd, 0, 0, (long)size), n;
	static const char zeros[4096];

	if (err != -EOPNOTSUPP && err != -ENOSYS)
		return err;
	for (size_t at = 0; at < size; at += (size_t)n) {
		n = fz_syscall4(__NR_pwrite64, fd, (long)zeros, sizeof(zeros), (long)at);
		if (n <= 0)
			return n ? n : -ENOSPC;
	}
	return 0;
}

static void copy_counts(struct fz_call_counters *to, size_t size)
{
	__builtin_memcpy(to, fz_call_counters, size);
	to->counted.size = size;
	to->counted.blocks = (uint32_t)((size - offsetof(struct fz_call_counters, block)) /
					sizeof(struct fz_block));
}

int fz_counters_to_file(const char *path, uint32_t processors)
{
	/* One block for the carrier of each processor, and 24 for carriers that wait in calls. */
	const uint32_t blocks = FZ_BLOCKS_SHARED + processors + 24;
	const size_t size = FZ_ROUND_UP(offsetof(struct fz_call_counters, block) +
					(blocks < FZ_BLOCKS_MOST ? blocks : FZ_BLOCKS_MOST) *
						sizeof(struct fz_block), 4096);
	const int readable = 0444;
	char made[4096];
	size_t length = __builtin_strlen(path);
	long fd, err, mem;

	if (length + sizeof(".new") > sizeof(made))
		return -ENAMETOOLONG;
	if (!may_replace(path))
		return -EEXIST;
	__builtin_memcpy(made, path, length);
	__builtin_memcpy(made + length, ".new", sizeof(".new"));
	/* Mode 0444: nobody may open it for writing, since a truncation would end this process by SIGBUS. */
	fz_syscall3(__NR_unlinkat, AT_FDCWD, (long)made, 0);
	fd = fz_syscall4(__NR_openat, AT_FDCWD, (long)made,
			 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, readable);
	if (fd < 0)
		return (int)fd;
	err = fill(fd, size);
	mem = err ? err : map(NULL, size, MAP_SHARED, (int)fd);
	if (!fz_sys_failed(mem)) {
		copy_counts((struct fz_call_counters *)mem, size);
		fz_syscall2(__NR_munmap, mem, (long)size);
		mem = map(fz_call_counters, size, MAP_SHARED | MAP_FIXED, (int)fd);
	}
	fz_syscall1(__NR_close, fd);
	err = fz_sys_failed(mem) ? mem :
		fz_syscall4(__NR_renameat, AT_FDCWD, (long)made, AT_FDCWD, (long)path);
	if (err)
		fz_syscall3(__NR_unlinkat, AT_FDCWD, (long)made, 0);
	return (int)err;
}

void fz_counters_after_fork(void)
{
	const uint64_t stacks = atomic_load_explicit(&fz_counters->total[FZ_TOTAL_stack_bytes],
						     memory_order_relaxed);

	if (!fz_call_counters) {
		fz_sys_forget_pages(&always, sizeof(always));
	} else if (fz_sys_failed(map(fz_call_counters, SIZE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1))) {
		/* No memory: stop counting calls, since the parent's file must not be written. */
		fz_counters = &always.counters;
		fz_call_counters = NULL;
	}
	fz_counters_begin();
	/* The child has a copy of the stacks. */
	fz_count_total(FZ_TOTAL_stack_bytes, (int64_t)stacks);
}
