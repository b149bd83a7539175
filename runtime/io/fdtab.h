/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_FDTAB_H
#define FZ_RUNTIME_IO_FDTAB_H

/*
 * runtime/io/fdtab.h - hints about descriptors, to ask the kernel less.
 *
 * One word for each descriptor.  OURS means that this process made the open file, and as far as the
 * library has seen, its descriptor was never duplicated, inherited or passed on: then O_NONBLOCK is
 * what the library has seen last.  For all other descriptors the kernel is asked for O_NONBLOCK
 * each time that a call could wait.  If O_NONBLOCK or a timeout is set in a way that the library
 * does not see, the monitor finds that out a little later, and ends the wait (runtime/io/hints.h).
 *
 * fdtab.c: the table, and what the kernel says.  hints.c: the hints on which waits rest.
 */

#include "runtime/base/base.h"

struct fz_fiber;

enum fz_fd_kind {
	FZ_FD_UNKNOWN,
	FZ_FD_SOCKET,
	FZ_FD_PIPE,
	FZ_FD_FILE,		/* regular file, directory, block device: waits for the disk only */
	FZ_FD_ANONYMOUS,	/* eventfd, timerfd, signalfd, inotify ...: poll tells all */
	FZ_FD_OTHER,		/* terminals, devices: only the real call knows whether it waits */
	FZ_FD_KIND_MASK = 7,
};

enum {
	FZ_FD_OURS = 8,
	FZ_FD_NONBLOCK = 16,		/* valid with OURS */
	FZ_FD_RECV_TIMEOUT = 32,	/* socket: SO_RCVTIMEO may be set */
	FZ_FD_SEND_TIMEOUT = 64,
	FZ_FD_RECV_WAITED = 128,	/* pipe: the last read had to wait; file: took long */
	FZ_FD_DIRECT = 256,		/* file: O_DIRECT */
	FZ_FD_SYNC = 512,		/* file: O_SYNC or O_DSYNC */
	FZ_FD_APPEND = 1024,		/* file: O_APPEND */
	FZ_FD_SLOW_WRITE = 2048,	/* file: the last write took long */
	FZ_FD_SLOW_SYNC = 4096,		/* file: the last fsync took long */
	FZ_FD_RING_REFUSED = 8192,	/* file: the ring refused the last transfer */
	FZ_FD_FIFO = 16384,		/* pipe: the kernel refuses RWF_NOWAIT on it */
	FZ_FD_WATCHED = 32768,		/* one of our epoll instances may have it */
	FZ_FD_STREAM = 65536,		/* socket: SOCK_STREAM */
	FZ_FD_UNASKED = 131072,		/* a filter forbids to ask what it is */
	FZ_FD_UNIX = 262144,		/* socket: AF_UNIX */
	FZ_FD_ENDLESS = 524288,		/* device: each read fills the whole buffer, like /dev/urandom */
	FZ_FD_LOW_WATER = 1048576,	/* socket: SO_RCVLOWAT may be set */
	FZ_FD_TIMEOUTS = FZ_FD_RECV_TIMEOUT | FZ_FD_SEND_TIMEOUT,

	/* Not of files, for which the bits mean something else: see hints.c. */
	FZ_FD_RESTED_ON = FZ_FD_DIRECT,		/* calls may wait because of what the word says, or has said */
	FZ_FD_WAS_NONBLOCK = FZ_FD_SYNC,	/* it had O_NONBLOCK, but the word said that it had not */
	FZ_FD_HAD_TIMEOUT = FZ_FD_APPEND,	/* it had a timeout, but the word said that it had none */
	FZ_FD_CHANGING = FZ_FD_SLOW_WRITE,	/* with OURS: a call that may change O_NONBLOCK is under way */
	FZ_FD_SHARED = FZ_FD_RING_REFUSED,	/* FZ_FD_CHANGES last counted that, not another file */
};

/*
 * The upper bits of a word count, modulo 2,048, how often the number was opened or closed, and how often hints were
 * taken back because its file was to be shared; only fz_fdtab_name() shows them.
 */
#define FZ_FD_CHANGES 0xffe00000u

/* From FZ_FD_WAS_NONBLOCK to the bits above a descriptor, for fz_fdtab_wait(). */
enum { FZ_FD_RESTS_SHIFT = 11 };
_Static_assert(FZ_FD_WAS_NONBLOCK << FZ_FD_RESTS_SHIFT == 1 << 20 &&
	       FZ_FD_HAD_TIMEOUT << FZ_FD_RESTS_SHIFT == 1 << 21, "a descriptor has 20 bits, the count of changes 10");

/* The reason for a retreat to epoll: the process may serve a file system (FUSE). */
#define FZ_FDTAB_SERVES_FILES "the process has opened /dev/fuse"

/* Reserve the table.  Before that, and beyond the table's end, every descriptor is unknown. */
void fz_fdtab_init(void);

uint32_t fz_fdtab_get(int fd);

/*
 * Returns a name for the open file that fd stands for now.  The name changes when the library sees fd being
 * closed or opened.  It consists of fd + 1 and, in the bits FZ_FD_CHANGES, the count of changes.  0: fd is
 * beyond the table.
 */
uint32_t fz_fdtab_name(int fd);

void fz_fdtab_set(int fd, uint32_t info);
void fz_fdtab_change(int fd, uint32_t clear, uint32_t set);

/*
 * Where a request for fd was last queued, for runtime/io/queued.c; 0: nowhere.  fz_fdtab_set_queued() stores the old
 * value in *ret_before, and returns false if fd is beyond the table.  fz_fdtab_restore_queued() puts the old value back,
 * unless another thread has stored a later one.
 */
uint32_t fz_fdtab_queued(int fd);
bool fz_fdtab_set_queued(int fd, uint32_t queued, uint32_t *ret_before);
void fz_fdtab_restore_queued(int fd, uint32_t queued, uint32_t before);

/* Returns the next socket after fd that is known, but not FZ_FD_OURS; -1 if there is none.  fd may be -1. */
int fz_fdtab_next_shared_socket(int fd);

/* Returns the highest descriptor that is or was known. */
int fz_fdtab_highest(void);

/* The number fd has another open file now, of which nothing is known. */
void fz_fdtab_opened(int fd);

/* The program has a descriptor with the number fd: note it for fz_fdtab_highest_had().  A negative fd is ignored. */
void fz_fdtab_raise(int fd);

/*
 * Returns the highest number that the program has had in the calling thread's table of descriptors, as far as the library
 * has seen, or 0.
 */
int fz_fdtab_highest_had(void);

/*
 * In a fork's child that has a copy of the parent's table of descriptors: forget fz_fdtab_highest_had().  The kernel makes
 * the copy only as long as the open descriptors need.
 */
void fz_fdtab_after_fork(void);

/* Forget the descriptors from first to last, both included; last may be UINT_MAX. */
void fz_fdtab_forget_range(unsigned first, unsigned last);

/*
 * The calling thread, a kernel thread, has got a table of descriptors of its own.  The hints do not
 * describe the descriptors in it.
 */
void fz_fdtab_unshare(struct fz_fiber *self);

/* Has the calling thread a table of descriptors of its own? */
bool fz_fdtab_is_unshared(void);

/*
 * Like fz_fdtab_get(), but asks the kernel if nothing is known.  Returns 0, or -EBADF for a closed
 * descriptor.
 */
int fz_fdtab_look_up(int fd, uint32_t *ret_info);

/*
 * Does the descriptor have O_NONBLOCK?  Asks the kernel unless the descriptor is OURS.  Returns 0, 1,
 * -EBADF, or another -errno if a filter forbids to ask.
 */
int fz_fdtab_nonblocking(int fd, uint32_t info);

/*
 * Around a call of the program's that may change O_NONBLOCK.  The second function also if the call has failed; on: what
 * O_NONBLOCK is now.
 */
void fz_fdtab_nonblocking_begins(int fd);
void fz_fdtab_nonblocking_ends(int fd, bool changed, bool on);

/*
 * The descriptor is not OURS any more: it is duplicated or leaves the process.  Call this before anybody can change the
 * open file by the duplicate.
 */
void fz_fdtab_share(int fd);
void fz_fdtab_share_all(void);

/*
 * Before and after the program sets a timeout on fd; the second function only if it has succeeded.  Duplicates of fd
 * get the timeout, too, so from now on the kernel is asked for the timeouts of all sockets that may be duplicates: also
 * of those of which something was found out in between.  negative: the timeout is below 0.  Calls then do not wait at
 * all, but getsockopt() reports that there is no timeout.
 */
void fz_fdtab_timeout_begins(int fd);
void fz_fdtab_timeout_set(int fd, bool negative);

/*
 * The program has set SO_RCVLOWAT on fd: from now on the kernel is asked for it on all sockets that
 * may be duplicates.
 */
void fz_fdtab_low_water_set(int fd);

/*
 * Returns what a call that waits rests on, if the hints are info: the bits of FZ_FD_WAS_NONBLOCK and FZ_FD_HAD_TIMEOUT
 * that would say that it should not have waited, or not for ever.
 */
static inline uint32_t fz_fdtab_rests(uint32_t info)
{
	const uint32_t kind = info & FZ_FD_KIND_MASK;

	return ((info & (FZ_FD_OURS | FZ_FD_NONBLOCK | FZ_FD_CHANGING)) == FZ_FD_OURS ? FZ_FD_WAS_NONBLOCK : 0u) |
	       (kind == FZ_FD_SOCKET && !(info & FZ_FD_TIMEOUTS) ? FZ_FD_HAD_TIMEOUT : 0u);
}

/*
 * The caller is about to wait because of what the word of fd says: note that in the word.  Returns the hints that the
 * word had then, which may be others than before.
 */
uint32_t fz_fdtab_rest(int fd);

/*
 * Returns a call on fd that begins now and rests on `rests` (fz_fdtab_rests()), in one word; 0 if it rests on nothing.
 * All its waits have this word.  The word has room for the lower bits of the count of changes.
 */
static inline uint32_t fz_fdtab_wait(int fd, uint32_t rests)
{
	const uint32_t name = rests ? fz_fdtab_name(fd) : 0;

	return name ? (name & FZ_FD_CHANGES) << 1 | rests << FZ_FD_RESTS_SHIFT | (uint32_t)fd : 0;
}

static inline int fz_fdtab_wait_fd(uint32_t wait)
{
	return (int)(wait & ((1u << 20) - 1));
}

static inline uint32_t fz_fdtab_wait_rests(uint32_t wait)
{
	return wait >> FZ_FD_RESTS_SHIFT & (FZ_FD_WAS_NONBLOCK | FZ_FD_HAD_TIMEOUT);
}

/* Returns what the call rests on wrongly, as far as has been found out.  wait: not 0. */
uint32_t fz_fdtab_found_wrong(uint32_t wait);

/*
 * Has the call waited although it should not have, or not without a timeout?  Asks the kernel if the hints still stand,
 * unless a filter may end the process for that.  wait: not 0.  No handler may run meanwhile.
 */
bool fz_fdtab_is_wrong(uint32_t wait);

/* In a fork's child. */
void fz_fdtab_rest_after_fork(void);

/* Has the socket a timeout?  Asks the kernel. */
bool fz_fdtab_has_timeout(int fd);

/* The program has set a negative timeout on some socket. */
extern _Atomic bool fz_fdtab_negative_seen FZ_HIDDEN;

/* The word of fd, with its count of changes; NULL beyond the table. */
_Atomic uint32_t *fz_fdtab_word(int fd);

/* Instead of a deadline: the timeout may be negative, which only the kernel knows.  Make the real call. */
#define FZ_FD_ASK_KERNEL (FZ_FOREVER - 1)

/*
 * Returns the deadline that SO_RCVTIMEO or SO_SNDTIMEO sets for a call that begins now; FZ_FOREVER
 * without a timeout, or FZ_FD_ASK_KERNEL.
 */
fz_nsec fz_fdtab_deadline(int fd, uint32_t info, bool sending);

#endif
