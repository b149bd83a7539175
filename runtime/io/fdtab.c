/* SPDX-License-Identifier: MIT */
#include "runtime/io/fdtab.h"

#include <asm/errno.h>
#include <asm/socket.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/stat.h>

#include "runtime/base/limits.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/retreat.h"

enum {
	TABLE_FDS = 1 << 20,		/* a descriptor plus 1 must fit into the bits outside FZ_FD_CHANGES */
	TABLE_FDS_LIMITED = 1 << 13,
	LEVEL_SOCKET = 1,
	AT_EMPTY = 0x1000,
	AT_DONT_SYNC = 0x4000,	/* do not ask a file server; what it has told before is enough */
};

/* relaxed throughout: a hint orders nothing and guards nothing. */
static struct entry {
	_Atomic uint32_t info;
	_Atomic uint32_t queued;	/* runtime/io/queued.h */
} *table;
static unsigned table_fds = TABLE_FDS;
static _Atomic int highest;
static _Atomic int highest_had;	/* the highest number that the program has had */
static _Atomic bool any_unshared;
_Atomic bool fz_fdtab_negative_seen;

void fz_fdtab_init(void)
{
	long mem;

	if (table)
		return;
	/*
	 * Most of the table is never touched, but counts as address space.  For a descriptor
	 * beyond the end of a smaller table the kernel is asked each time.
	 */
	if (fz_limits_count_address_space())
		table_fds = TABLE_FDS_LIMITED;
	mem = fz_sys_mmap(table_fds * sizeof(*table), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (!fz_sys_failed(mem))
		table = (void *)mem;
}

static struct entry *entry_of(int fd)
{
	return table && (unsigned)fd < table_fds ? &table[fd] : NULL;
}

_Atomic uint32_t *fz_fdtab_word(int fd)
{
	struct entry *e = entry_of(fd);

	return e ? &e->info : NULL;
}

/*
 * Is fd a descriptor of the program's in this process?  While in_runtime is set, the caller may be, for example, a vfork()
 * child, which has a table of descriptors of its own.
 */
static bool is_programs(int fd)
{
	return !fz_fdtab_is_unshared() && !atomic_load_explicit(&fz_self()->in_runtime, memory_order_relaxed) &&
	       !fz_sched_owns_fd(fd);
}

void fz_fdtab_raise(int fd)
{
	if (fd > atomic_load_explicit(&highest_had, memory_order_relaxed) && is_programs(fd))
		fz_raise_to(&highest_had, fd);
}

int fz_fdtab_highest_had(void)
{
	return fz_fdtab_is_unshared() ? 0 : atomic_load_explicit(&highest_had, memory_order_relaxed);
}

void fz_fdtab_after_fork(void)
{
	atomic_store_explicit(&highest_had, 0, memory_order_relaxed);
}

static void raise_highest(int fd)
{
	if (fd < TABLE_FDS)
		fz_raise_to(&highest, fd);
	fz_fdtab_raise(fd);
}

uint32_t fz_fdtab_queued(int fd)
{
	struct entry *e = entry_of(fd);

	return e ? atomic_load_explicit(&e->queued, memory_order_relaxed) : 0;
}

bool fz_fdtab_set_queued(int fd, uint32_t queued, uint32_t *ret_before)
{
	struct entry *e = entry_of(fd);

	if (FZ_UNLIKELY(!e))
		return false;
	*ret_before = atomic_exchange_explicit(&e->queued, queued, memory_order_relaxed);
	raise_highest(fd);
	return true;
}

void fz_fdtab_restore_queued(int fd, uint32_t queued, uint32_t before)
{
	atomic_compare_exchange_strong_explicit(&table[fd].queued, &queued, before, memory_order_relaxed,
						memory_order_relaxed);
}

int fz_fdtab_highest(void)
{
	return atomic_load_explicit(&highest, memory_order_relaxed);
}

/* Returns the word of fd with its count of changes (FZ_FD_CHANGES); 0 beyond the table. */
static uint32_t word_of(int fd)
{
	_Atomic uint32_t *e = fz_fdtab_word(fd);

	return e ? atomic_load_explicit(e, memory_order_relaxed) : 0;
}

uint32_t fz_fdtab_get(int fd)
{
	return word_of(fd) & ~FZ_FD_CHANGES;
}

uint32_t fz_fdtab_name(int fd)
{
	return fz_fdtab_word(fd) ? (word_of(fd) & FZ_FD_CHANGES) | ((uint32_t)fd + 1) : 0;
}

int fz_fdtab_next_shared_socket(int fd)
{
	const int high = fz_fdtab_highest();

	while (++fd <= high)
		if ((word_of(fd) & (FZ_FD_KIND_MASK | FZ_FD_OURS)) == FZ_FD_SOCKET)
			return fd;
	return -1;
}

void fz_fdtab_unshare(struct fz_fiber *self)
{
	self->thread.owns_files = true;
	/* relaxed: only threads that call this, and threads that these make, must see it. */
	atomic_store_explicit(&any_unshared, true, memory_order_relaxed);
}

bool fz_fdtab_is_unshared(void)
{
	return FZ_UNLIKELY(atomic_load_explicit(&any_unshared, memory_order_relaxed)) &&
	       fz_self()->thread.owns_files;
}

void fz_fdtab_set(int fd, uint32_t info)
{
	const uint32_t one_change = FZ_FD_CHANGES & -FZ_FD_CHANGES;
	_Atomic uint32_t *e = fz_fdtab_word(fd);
	uint32_t before = word_of(fd);

	if (!e || fz_fdtab_is_unshared() || (!info && !(before & ~FZ_FD_CHANGES)))
		return;
	/* Two changes at the same time may count as one. */
	atomic_store_explicit(e, info | ((before + one_change) & FZ_FD_CHANGES), memory_order_relaxed);
	raise_highest(fd);
}

void fz_fdtab_opened(int fd)
{
	fz_fdtab_set(fd, FZ_FD_UNKNOWN);
	fz_fdtab_raise(fd);
}

void fz_fdtab_forget_range(unsigned first, unsigned last)
{
	unsigned high = (unsigned)atomic_load_explicit(&highest, memory_order_relaxed);

	for (unsigned fd = first; fd <= last && fd <= high; fd++)
		fz_fdtab_set((int)fd, FZ_FD_UNKNOWN);
}

void fz_fdtab_change(int fd, uint32_t clear, uint32_t set)
{
	_Atomic uint32_t *e = fz_fdtab_word(fd);
	uint32_t info = word_of(fd);

	/*
	 * By compare-and-swap: a file opened meanwhile under this number must not get the old
	 * file's bits.
	 */
	while (!fz_fdtab_is_unshared() && (info & FZ_FD_KIND_MASK) && ((info & ~clear) | set) != info &&
	       !atomic_compare_exchange_weak_explicit(e, &info, (info & ~clear) | set,
						      memory_order_relaxed,
						      memory_order_relaxed))
		continue;
}

/* /dev/zero, /dev/full, /dev/random and /dev/urandom: devices.txt of the kernel. */
static bool is_endless(const struct statx *st)
{
	const unsigned memory_devices = 1, zero = 5, full = 7, random = 8, urandom = 9;
	const unsigned minor = st->stx_rdev_minor;

	return st->stx_rdev_major == memory_devices &&
	       (minor == zero || minor == full || minor == random || minor == urandom);
}

/* /dev/fuse: devices.txt of the kernel. */
static bool serves_files(const struct statx *st)
{
	return st->stx_rdev_major == 10 && st->stx_rdev_minor == 229;
}

static uint32_t kind_of_device(const struct statx *st)
{
	/*
	 * The library has not seen the program open /dev/fuse, so another process has passed the
	 * descriptor on.  This process serves no file before its first read: it is not too late.
	 */
	if (FZ_UNLIKELY(serves_files(st)))
		fz_retreat_before_faults(FZ_FDTAB_SERVES_FILES);
	return FZ_FD_OTHER | (is_endless(st) ? FZ_FD_ENDLESS : 0);
}

/* Returns the kind of fd; with FZ_FD_UNASKED if a filter forbids to ask, with FZ_FD_ENDLESS for such a device. */
static uint32_t kind_of(int fd)
{
	struct statx st;
	long err = fz_syscall5(__NR_statx, fd, (long)"", AT_EMPTY | AT_DONT_SYNC, STATX_TYPE,
			       (long)&st);

	if (err)
		return err == -EBADF ? FZ_FD_UNKNOWN : FZ_FD_OTHER | FZ_FD_UNASKED;
	switch (st.stx_mode & S_IFMT) {
	case S_IFSOCK: return FZ_FD_SOCKET;
	case S_IFIFO: return FZ_FD_PIPE;
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK: return FZ_FD_FILE;
	case 0: return FZ_FD_ANONYMOUS;
	case S_IFCHR: return kind_of_device(&st);
	default: return FZ_FD_OTHER;
	}
}

/* Returns the socket's SO_RCVTIMEO or SO_SNDTIMEO, 0 if it has none. */
static fz_nsec socket_timeout(int fd, int option)
{
	long tv[2] = { 0, 0 };
	uint32_t size = sizeof(tv);

	if (fz_syscall5(__NR_getsockopt, fd, LEVEL_SOCKET, option, (long)tv, (long)&size))
		return 0;
	return (fz_nsec)tv[0] * FZ_SEC + (fz_nsec)tv[1] * FZ_USEC;
}

/* The FZ_FD_* bits for the flags with which a file was opened. */
static uint32_t file_flags(int fd)
{
	long flags = fz_syscall3(__NR_fcntl, fd, F_GETFL, 0);

	/* A filter forbids to ask.  Assume O_APPEND: of the three flags, only a missed O_APPEND does harm. */
	if (flags < 0)
		return FZ_FD_APPEND;
	return (flags & O_DIRECT ? FZ_FD_DIRECT : 0) | (flags & O_DSYNC ? FZ_FD_SYNC : 0) |
	       (flags & O_APPEND ? FZ_FD_APPEND : 0);
}

int fz_fdtab_look_up(int fd, uint32_t *ret_info)
{
	uint32_t unknown = word_of(fd), info = unknown & ~FZ_FD_CHANGES;
	_Atomic uint32_t *e = fz_fdtab_word(fd);
	bool hidden;	/* it may have a timeout below 0, which the kernel does not tell */
	int stream, least;

	if (FZ_UNLIKELY(!(info & FZ_FD_KIND_MASK))) {
		info = kind_of(fd);
		if (info == FZ_FD_UNKNOWN)
			return -EBADF;
		if (info == FZ_FD_SOCKET) {
			/* relaxed: a call that began before the timeout was set need not see it. */
			hidden = atomic_load_explicit(&fz_fdtab_negative_seen, memory_order_relaxed);
			if (hidden || socket_timeout(fd, SO_RCVTIMEO_OLD))
				info |= FZ_FD_RECV_TIMEOUT;
			if (hidden || socket_timeout(fd, SO_SNDTIMEO_OLD))
				info |= FZ_FD_SEND_TIMEOUT;
			least = fz_sys_socket_option(fd, SO_RCVLOWAT);
			if (least < 0 || least > 1)
				info |= least > 1 ? FZ_FD_LOW_WATER : FZ_FD_UNASKED;
			stream = fz_sys_is_stream(fd);
			if (stream)
				info |= stream > 0 ? FZ_FD_STREAM : FZ_FD_UNASKED;
			if (fz_sys_is_unix(fd) > 0)
				info |= FZ_FD_UNIX;
		}
		if (info == FZ_FD_FILE)
			info |= file_flags(fd);
		/*
		 * If the number was opened again while we asked, the entry of the thread that
		 * opened it stays.
		 */
		if (e)
			atomic_compare_exchange_strong_explicit(e, &unknown, unknown | info,
								memory_order_relaxed,
								memory_order_relaxed);
		raise_highest(fd);
	}
	*ret_info = info;
	return 0;
}

int fz_fdtab_nonblocking(int fd, uint32_t info)
{
	long flags;

	if ((info & (FZ_FD_OURS | FZ_FD_NONBLOCK | FZ_FD_RESTED_ON)) == FZ_FD_OURS)
		info = fz_fdtab_rest(fd);
	if ((info & (FZ_FD_OURS | FZ_FD_CHANGING)) == FZ_FD_OURS)
		return (info & FZ_FD_NONBLOCK) != 0;
	flags = fz_syscall3(__NR_fcntl, fd, F_GETFL, 0);
	return flags < 0 ? (int)flags : (flags & O_NONBLOCK) != 0;
}

fz_nsec fz_fdtab_deadline(int fd, uint32_t info, bool sending)
{
	const uint32_t bit = sending ? FZ_FD_SEND_TIMEOUT : FZ_FD_RECV_TIMEOUT;
	fz_nsec timeout;

	if (!(info & (bit | FZ_FD_RESTED_ON)))
		info = fz_fdtab_rest(fd);
	if (!(info & bit))
		return FZ_FOREVER;
	timeout = socket_timeout(fd, sending ? SO_SNDTIMEO_OLD : SO_RCVTIMEO_OLD);
	if (FZ_LIKELY(timeout))
		return fz_now() + timeout;
	return atomic_load_explicit(&fz_fdtab_negative_seen, memory_order_relaxed) ? FZ_FD_ASK_KERNEL :
									    FZ_FOREVER;
}

bool fz_fdtab_has_timeout(int fd)
{
	return socket_timeout(fd, SO_RCVTIMEO_OLD) || socket_timeout(fd, SO_SNDTIMEO_OLD);
}
