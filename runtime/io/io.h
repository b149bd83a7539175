/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_IO_H
#define FZ_RUNTIME_IO_IO_H

/*
 * runtime/io/io.h - the calls on descriptors, and waiting for a child, for fibers.
 *
 * All functions: from a fiber, outside the runtime; may park.  They act on cancellation (and then do
 * not return), run signal handlers, and return what the system call would have returned natively, as
 * a value or -errno.  They leave it to the kernel to check buffers and descriptors.  A call on a
 * descriptor with O_NONBLOCK never parks.
 */

#include "runtime/fiber/fiber.h"

struct iovec;
struct msghdr;
struct mmsghdr;
struct pollfd;

/* FIBERIZE_IO: how to transfer to and from files when that may wait for the disk. */
enum fz_io_policy {
	FZ_IO_AUTO,	/* choose by what happened last on the descriptor */
	FZ_IO_DIRECT,	/* the real call first, where both are possible */
	/* a request on the ring first, where the kernel needs no worker thread for it */
	FZ_IO_RING,
};
extern enum fz_io_policy fz_io_policy FZ_HIDDEN;

#define FZ_IO_CURPOS ((int64_t)-1)

int64_t fz_io_read(struct fz_fiber *self, int fd, void *buf, size_t n);
int64_t fz_io_write(struct fz_fiber *self, int fd, const void *buf, size_t n);
/* number, here and below: of the system call that the program makes, for example preadv2. */
int64_t fz_io_readv(struct fz_fiber *self, long number, int fd, const struct iovec *iov, int count);
int64_t fz_io_writev(struct fz_fiber *self, long number, int fd, const struct iovec *iov,
		     int count);
int64_t fz_io_pread(struct fz_fiber *self, int fd, void *buf, size_t n, int64_t offset);
int64_t fz_io_preadv(struct fz_fiber *self, long number, int fd, const struct iovec *iov, int count,
		     int64_t offset);
int64_t fz_io_pwrite(struct fz_fiber *self, int fd, const void *buf, size_t n, int64_t offset);
/* flags: RWF_*. */
int64_t fz_io_pwritev(struct fz_fiber *self, long number, int fd, const struct iovec *iov,
		      int count, int64_t offset, int flags);
int fz_io_fsync(struct fz_fiber *self, int fd, bool data_only);

int64_t fz_io_sendfile(struct fz_fiber *self, int out, int in, int64_t *offset, size_t n);
int64_t fz_io_splice(struct fz_fiber *self, int in, int64_t *in_offset, int out,
		     int64_t *out_offset, size_t n, unsigned flags);
int64_t fz_io_tee(struct fz_fiber *self, int in, int out, size_t n, unsigned flags);
int64_t fz_io_vmsplice(struct fz_fiber *self, int fd, const struct iovec *iov, size_t count,
		       unsigned flags);

int64_t fz_io_recv(struct fz_fiber *self, int fd, void *buf, size_t n, int flags);
int64_t fz_io_send(struct fz_fiber *self, int fd, const void *buf, size_t n, int flags);
int64_t fz_io_recvfrom(struct fz_fiber *self, int fd, void *buf, size_t n, int flags,
		       void *addr, uint32_t *addr_len);
int64_t fz_io_sendto(struct fz_fiber *self, int fd, const void *buf, size_t n, int flags,
		     const void *addr, uint32_t addr_len);
int64_t fz_io_recvmsg(struct fz_fiber *self, int fd, struct msghdr *msg, int flags);
int64_t fz_io_sendmsg(struct fz_fiber *self, int fd, const struct msghdr *msg, int flags);
int64_t fz_io_recvmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags, void *timespec);
int64_t fz_io_sendmmsg(struct fz_fiber *self, int fd, struct mmsghdr *vec, unsigned n,
		       int flags);
int fz_io_accept(struct fz_fiber *self, long number, int fd, void *addr, uint32_t *addr_len,
		 int flags);
int fz_io_connect(struct fz_fiber *self, int fd, const void *addr, uint32_t addr_len);

/*
 * deadline FZ_FOREVER: no timeout; 0: do not wait.  Not restarted after a handler, even with
 * SA_RESTART.  number: of poll or ppoll.  mask: the signal mask while it waits, or NULL.
 */
int fz_io_poll(struct fz_fiber *self, long number, struct pollfd *fds, uint64_t n,
	       fz_nsec deadline, const uint64_t *mask);

/*
 * Like fz_io_poll().  sets: for reading, for writing, for exceptions; each an fd_set or NULL.
 */
int fz_io_select(struct fz_fiber *self, int n, void *const sets[3], fz_nsec deadline,
		 const uint64_t *mask);

/*
 * Returns the n that the kernel would use for select() natively, which may be less than the program's n.  The kernel cuts n
 * down to the length of its table of descriptors, a power of two above the highest number so far.  Programs that call
 * select(getdtablesize(), ...) rely on that, because an fd_set has only FD_SETSIZE bits.  Own descriptors make the table
 * longer, so this computes the length without them, at least FD_SETSIZE.  If n is above FD_SETSIZE, it asks the kernel about
 * each number from the end of the real table down to the program's highest open one: about 0.1 us each.  Any thread; errno
 * stays.
 */
int fz_io_select_end(int n);

/* Can fz_io_await_child() wait?  Not by epoll, and not on older kernels. */
bool fz_io_can_await_child(void);

/*
 * Wait until a child selected by type (P_*) and id, as for waitid, has one of the state changes in
 * options (WEXITED ...); the change stays for a later wait.  A signal or a cancellation ends the wait, too.
 * Returns false if the kernel could not tell.  After fz_signal_mark().
 */
bool fz_io_await_child(struct fz_fiber *self, int type, int id, int options);

#endif
