/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/file.c - regular files, which wait for the disk only.
 *
 *	read	at an offset: from the page cache without waiting; the rest by a request on
 *		the ring, for which the kernel needs no worker thread
 *	write	the real call
 *	O_DIRECT	a request on the ring, which may wait for the disk only; the real
 *		call where the kernel refuses that
 *	fsync	the real call
 *
 * The real call is a brief one, or an announced one if it took long last time.
 *
 * No request may go to a worker thread of the ring: that thread keeps a reference to the open file
 * for a moment after the request is complete.  A program that closes the file then would find what
 * ends with the last reference, such as a lock, still there (tests/programs/io/file_released.c).
 *
 * A transfer at the current position is always the real call: only the real call takes the file's
 * lock on the position, without which two threads would read the same bytes.  An attempt without waiting
 * must not come first, because it may read a part of a record; another thread could then read the rest.
 */
#include "runtime/io/io_internal.h"

#include "runtime/backend/backend.h"
#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/backend/filter.h"

/*
 * If a sync, or a write that syncs, took longer than this, the next one is announced.  To announce a
 * call costs about as much time.
 */
#define SYNC_IS_SLOW (20 * FZ_USEC)
/*
 * If an announced read or write that does not sync took longer than this, the next one is announced, too.
 * The kernel makes a writer that it throttles wait for some milliseconds.
 */
#define CACHED_IS_SLOW (200 * FZ_USEC)

enum fz_io_policy fz_io_policy;

/* Run op uninterruptibly, like the system call: neither a signal nor a cancellation ends it. */
static int64_t run(struct fz_fiber *self, const struct fz_op *op)
{
	int64_t ret;

	do
		ret = fz_op_wait(self, op, FZ_FOREVER, 0);
	/* EINTR: a signal interrupted a worker thread of the ring, not this fiber. */
	while (ret == -EINTR);
	return ret;
}

/* Make a request on the ring for what is left.  offset: where the whole transfer began. */
static int64_t transfer(struct fz_fiber *self, bool writing, int fd, const struct fz_io_cursor *c,
			int64_t offset, int flags)
{
	struct iovec part;
	int count;
	const struct iovec *iov = fz_io_cursor_rest(c, &part, &count);
	struct fz_op op = {
		.opcode = writing ? IORING_OP_WRITEV : IORING_OP_READV,
		.fd = fd,
		.off = (uint64_t)offset + c->done,
		.addr = (uintptr_t)iov,
		.len = (uint32_t)count,
		.op_flags = (uint32_t)flags,
		.prompt = true,
	};

	if (count == 1) {
		op.opcode = writing ? IORING_OP_WRITE : IORING_OP_READ;
		op.addr = (uintptr_t)iov->iov_base;
		op.len = fz_io_clamp(iov->iov_len);
	}
	return run(self, &op);
}

/*
 * Make the program's call for what is left, announced.  It is repeated after an EINTR without a handler:
 * a file server answers EINTR whenever anything interrupts the kernel thread.
 */
static int64_t real(struct fz_fiber *self, int fd, const struct fz_io_cursor *c, unsigned flags,
		    struct fz_io_cost *cost)
{
	struct iovec part;
	const struct fz_io_call call = fz_io_cursor_call(c, fd, &part);

	return fz_io_make_measured(self, &call, flags, cost);
}

/*
 * Has this way of making the transfer failed, so that another way is needed?  The kernel cannot make it
 * without waiting, or not at all (some file systems, emulators, old kernels), or a filter forbids it.
 * EINTR: FUSE waits even if it must not, and the wait was interrupted.
 */
static bool is_refused(int64_t ret)
{
	return ret == -EAGAIN || ret == -EINTR || ret == FZ_OP_FORBIDDEN || fz_io_cannot_try(ret);
}

/* If slow, the next call of this kind is announced; otherwise it is announced as brief. */
static void note_slow(int fd, uint32_t kind, bool slow)
{
	fz_fdtab_change(fd, slow ? 0 : kind, slow ? kind : 0);
}

/* Was a call slow, one that does not sync?  was: the call before it was slow, so this one was timed. */
static bool is_slow(bool was, const struct fz_io_cost *cost)
{
	return was ? cost->time > CACHED_IS_SLOW : cost->lost;
}

/* Is a request on the ring worth trying? */
static bool ring_suits(uint32_t info, int64_t offset)
{
	return offset != FZ_IO_CURPOS && !(info & FZ_FD_RING_REFUSED) &&
	       fz_io_policy != FZ_IO_DIRECT && fz_backend_kind() == FZ_BACKEND_RING &&
	       fz_feature_allowed(FZ_FEATURE_RWF_NOWAIT);
}

/* ---- read --------------------------------------------------------------- */

static int64_t read_announced(struct fz_fiber *self, int fd, const struct fz_io_cursor *c)
{
	return real(self, fd, c, 0, &(struct fz_io_cost){ .timed = false });
}

/*
 * Is there more of the file than a read by the real call has given?  Then the call was interrupted
 * between two requests to a file server.  Never true for files of /proc, whose size is 0.
 */
static bool was_cut_short(const struct fz_fiber *self, int fd, const struct fz_io_cursor *c,
			  int64_t offset)
{
	enum { AT_EMPTY = 0x1000, AT_DONT_SYNC = 0x4000, SEEK_FROM_HERE = 1 };
	struct statx st;
	int64_t end = offset + (int64_t)c->done;

	if (fz_signal_handled(self))
		return false;
	if (offset == FZ_IO_CURPOS)
		end = fz_syscall3(__NR_lseek, fd, 0, SEEK_FROM_HERE);
	return end > 0 &&
	       !fz_syscall5(__NR_statx, fd, (long)"", AT_EMPTY | AT_DONT_SYNC, STATX_SIZE,
			    (long)&st) &&
	       (uint64_t)end < st.stx_size;
}

/*
 * Read a file opened with O_DIRECT.  Sets *ret_real if the real call did it; then a short count is
 * final.
 */
static int64_t read_direct(struct fz_fiber *self, int fd, uint32_t info,
			   const struct fz_io_cursor *c, int64_t offset, bool *ret_real)
{
	if (ring_suits(info, offset)) {
		int64_t ret = transfer(self, false, fd, c, offset, RWF_NOWAIT);

		if (!is_refused(ret))
			return ret;
		fz_fdtab_change(fd, 0, FZ_FD_RING_REFUSED);
	} else {
		/* Try the ring every other time, to notice when it works again. */
		fz_fdtab_change(fd, FZ_FD_RING_REFUSED, 0);
	}
	*ret_real = true;
	return read_announced(self, fd, c);
}

static int64_t read_at_position(struct fz_fiber *self, int fd, uint32_t info,
				const struct fz_io_cursor *c)
{
	const bool slow = info & FZ_FD_RECV_WAITED;
	struct fz_io_cost cost = { .timed = slow };
	const int64_t ret = real(self, fd, c, slow ? 0 : FZ_CALL_BRIEF, &cost);

	note_slow(fd, FZ_FD_RECV_WAITED, is_slow(slow, &cost));
	return ret;
}

static int64_t read_once(struct fz_fiber *self, int fd, uint32_t info,
			 const struct fz_io_cursor *c, int64_t offset, bool *ret_real)
{
	const bool by_ring = ring_suits(0, offset);
	int64_t ret;

	if (info & FZ_FD_DIRECT)
		return read_direct(self, fd, info, c, offset, ret_real);
	if (offset == FZ_IO_CURPOS) {
		*ret_real = true;
		return read_at_position(self, fd, info, c);
	}
	if (by_ring && fz_io_policy == FZ_IO_RING)
		ret = transfer(self, false, fd, c, offset, RWF_NOWAIT);
	else
		ret = fz_io_try(false, fd, c, offset + (int64_t)c->done);
	if (!is_refused(ret))
		return ret;
	/*
	 * EAGAIN shows that the kernel can try this file without waiting.  Such a request needs no
	 * worker thread: the kernel reads the page asynchronously and completes the request later.
	 */
	if (ret == -EAGAIN && by_ring)
		ret = transfer(self, false, fd, c, offset, 0);
	if (!is_refused(ret))
		return ret;
	*ret_real = true;
	return read_announced(self, fd, c);
}

int64_t fz_io_file_read(struct fz_fiber *self, int fd, uint32_t info, struct fz_io_cursor *c,
			int64_t offset)
{
	for (;;) {
		bool all = !c->skip, real = false;
		int64_t ret = read_once(self, fd, info, c, offset, &real);

		if (ret <= 0)
			return c->done ? (int64_t)c->done : ret;
		/* A short count: the end of the file, or of what the page cache had. */
		fz_io_cursor_advance(c, (size_t)ret);
		/*
		 * After the real call, do not read again: some files that look regular, such as
		 * /proc/kmsg, would wait for more.
		 */
		if (!c->count ||
		    (real && (all || c->skip) && !was_cut_short(self, fd, c, offset)))
			return (int64_t)c->done;
	}
}

/* ---- write -------------------------------------------------------------- */

/*
 * Write by a request on the ring.  Returns false if the real call must write all of it again, to
 * the same place: what the request has already written is overwritten with the same bytes.
 */
static bool write_by_ring(struct fz_fiber *self, int fd, const struct fz_io_cursor *c,
			  int64_t offset, int flags, int64_t *ret_written)
{
	int64_t ret = transfer(self, true, fd, c, offset, flags | RWF_NOWAIT);

	if (is_refused(ret)) {
		fz_fdtab_change(fd, 0, FZ_FD_RING_REFUSED);
		return false;
	}
	/* The real call must raise SIGXFSZ, in the thread that makes it. */
	if (ret == -EFBIG)
		return false;
	/* A short count may mean only that the rest would have had to wait. */
	if (ret >= 0 && (size_t)ret != fz_io_total(c->iov, (size_t)c->count))
		return false;
	*ret_written = ret;
	return true;
}

/*
 * May the process have a limit on the size of files (RLIMIT_FSIZE)?  Then a second write after a short
 * count would raise SIGXFSZ, which does not happen natively.
 */
static bool has_size_limit(void)
{
	enum { FILE_SIZE = 1 };
	uint64_t limits[2];

	return fz_syscall4(__NR_prlimit64, 0, FILE_SIZE, 0, (long)limits) ||
	       limits[0] != ~(uint64_t)0;
}

/*
 * Write by the real call.  If no handler has run, a short count has one of two reasons: an event of
 * the library's has interrupted the call, or the disk is full.  So write the rest; on a full disk that fails
 * at once.
 */
static int64_t write_real(struct fz_fiber *self, int fd, const struct fz_io_cursor *c,
			  unsigned flags, struct fz_io_cost *cost)
{
	int64_t ret = real(self, fd, c, flags, cost);
	struct fz_io_cursor rest = *c;

	if (FZ_LIKELY(ret <= 0 || (size_t)ret == fz_io_total(c->iov, (size_t)c->count)) ||
	    fz_signal_handled(self) || has_size_limit())
		return ret;
	fz_io_cursor_advance(&rest, (size_t)ret);
	return fz_io_make_whole(self, fd, &rest, flags & FZ_CALL_BRIEF);
}

int64_t fz_io_file_write(struct fz_fiber *self, int fd, uint32_t info,
			 const struct fz_io_cursor *c, int64_t offset, int flags)
{
	const bool waits = info & (FZ_FD_DIRECT | FZ_FD_SYNC) || flags & (RWF_DSYNC | RWF_SYNC);
	const bool slow = info & FZ_FD_SLOW_WRITE;
	struct fz_io_cost cost = { .timed = waits || slow };
	int64_t ret;

	if (info & FZ_FD_DIRECT || fz_io_policy == FZ_IO_RING) {
		/* Never with O_APPEND: bytes written twice would be appended twice. */
		if (ring_suits(info, offset) && !(info & FZ_FD_APPEND) &&
		    !(flags & ~(RWF_DSYNC | RWF_SYNC)) &&
		    write_by_ring(self, fd, c, offset, flags, &ret))
			return ret;
		/* Try the ring every other time, as in read_direct(). */
		if (info & FZ_FD_RING_REFUSED)
			fz_fdtab_change(fd, FZ_FD_RING_REFUSED, 0);
	}
	ret = write_real(self, fd, c, slow ? 0 : FZ_CALL_BRIEF, &cost);
	note_slow(fd, FZ_FD_SLOW_WRITE, waits ? cost.time > SYNC_IS_SLOW : is_slow(slow, &cost));
	return ret;
}

/* ---- at an offset ------------------------------------------------------- */

/*
 * Begin a transfer at an offset.  Returns 1 for a file, 0 if the real call must judge the
 * arguments, or -errno.
 */
static int is_file_at(struct fz_fiber *self, long number, int fd, int64_t offset,
		      uint32_t *ret_info)
{
	if (fz_fdtab_look_up(fd, ret_info))
		return offset < 0 ? -EINVAL : -EBADF;
	fz_io_test_cancel(self);
	return offset >= 0 && !fz_filter_forbids(number) &&
	       (*ret_info & FZ_FD_KIND_MASK) == FZ_FD_FILE;
}

int64_t fz_io_preadv(struct fz_fiber *self, long number, int fd, const struct iovec *iov, int count,
		     int64_t offset)
{
	const struct fz_io_call own = { number, { fd, (long)iov, count, offset, 0, 0 } };
	struct fz_io_cursor c = { .own = &own, .iov = iov, .count = count };
	uint32_t info;
	int file = is_file_at(self, own.number, fd, offset, &info);

	if (file < 0)
		return file;
	if (!file || fz_io_bad_vector(iov, count))
		return fz_io_make(&own);
	return fz_io_file_read(self, fd, info, &c, offset);
}

int64_t fz_io_pread(struct fz_fiber *self, int fd, void *buf, size_t n, int64_t offset)
{
	const struct fz_io_call own = { __NR_pread64, { fd, (long)buf, (long)n, offset } };
	struct iovec iov = { .iov_base = buf, .iov_len = fz_io_clamp(n) };
	struct fz_io_cursor c = { .own = &own, .iov = &iov, .count = 1 };
	uint32_t info;
	int file = is_file_at(self, own.number, fd, offset, &info);

	if (file < 0)
		return file;
	if (!file || (n && fz_io_is_refused_size(buf, n)))
		return fz_io_make(&own);
	return fz_io_file_read(self, fd, info, &c, offset);
}

int64_t fz_io_pwritev(struct fz_fiber *self, long number, int fd, const struct iovec *iov,
		      int count, int64_t offset, int flags)
{
	const struct fz_io_call own = { number, { fd, (long)iov, count, offset, 0, flags } };
	const struct fz_io_cursor c = { .own = &own, .iov = iov, .count = count };
	uint32_t info;
	int file = is_file_at(self, own.number, fd, offset, &info);

	if (file < 0)
		return file;
	if (!file || fz_io_bad_vector(iov, count))
		return fz_io_make(&own);
	return fz_io_file_write(self, fd, info, &c, offset, flags);
}

int64_t fz_io_pwrite(struct fz_fiber *self, int fd, const void *buf, size_t n, int64_t offset)
{
	const struct fz_io_call own = { __NR_pwrite64, { fd, (long)buf, (long)n, offset } };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = fz_io_clamp(n) };
	const struct fz_io_cursor c = { .own = &own, .iov = &iov, .count = 1 };
	uint32_t info;
	int file = is_file_at(self, own.number, fd, offset, &info);

	if (file < 0)
		return file;
	if (!file || (n && fz_io_is_refused_size(buf, n)))
		return fz_io_make(&own);
	return fz_io_file_write(self, fd, info, &c, offset, 0);
}

/* ---- fsync -------------------------------------------------------------- */

int fz_io_fsync(struct fz_fiber *self, int fd, bool data_only)
{
	const struct fz_io_call call = { data_only ? __NR_fdatasync : __NR_fsync, { fd } };
	struct fz_io_cost cost = { .timed = true };
	uint32_t info;
	int64_t ret;

	if (fz_fdtab_look_up(fd, &info))
		return -EBADF;
	ret = fz_io_make_measured(self, &call, info & FZ_FD_SLOW_SYNC ? 0 : FZ_CALL_BRIEF, &cost);
	note_slow(fd, FZ_FD_SLOW_SYNC, cost.time > SYNC_IS_SLOW);
	return (int)ret;
}
