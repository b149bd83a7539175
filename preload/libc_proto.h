/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_PROTO_H
#define FZ_PRELOAD_LIBC_PROTO_H

/*
 * preload/libc_proto.h - libc's prototypes of all names in symbols.def, including names that no
 * header of libc declares.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/* The headers rename sigpause to __xpg_sigpause. */
#define sigpause fz_headers_sigpause

#include <aio.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <liburing.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <utime.h>

#undef sigpause

/* Programs built with _FORTIFY_SOURCE call these names instead. */
ssize_t __read_chk(int fd, void *buf, size_t n, size_t buflen);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t offset, size_t buflen);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t buflen, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t buflen, int flags,
		       __SOCKADDR_ARG addr, socklen_t *addr_len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t fdslen);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		const sigset_t *mask, size_t fdslen);
ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t buflen);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t n, size_t buflen);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
_Noreturn void __longjmp_chk(struct __jmp_buf_tag env[1], int value);

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
		      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
		      void *stack_end);

/* Aliases that no header declares. */
int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
int __statfs(const char *path, struct statfs *st);

/* stat() and its kin in programs built before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);

/* Exported by libc, but declared in none of its headers. */
int capset(void *header, const void *data);

/* On x86-64 only; declared in headers of that CPU, or nowhere. */
int arch_prctl(int code, unsigned long address);
int ioperm(unsigned long from, unsigned long count, int on);
int iopl(int level);

/* Declared by glibc's headers from 2.41 on. */
struct sched_attr;
int sched_setattr(pid_t tid, struct sched_attr *attr, unsigned int flags);
int sched_getattr(pid_t tid, struct sched_attr *attr, unsigned int size, unsigned int flags);

/* Declared by liburing's header from 2.5 on. */
int io_uring_queue_init_mem(unsigned entries, struct io_uring *ring,
			    struct io_uring_params *params, void *buf, size_t size);

/* Declared by glibc's <sys/pidfd.h> from 2.36 on. */
int pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned int flags);

/* Still exported, but removed from the headers or hidden behind feature macros. */
__sighandler_t sysv_signal(int sig, __sighandler_t handler);
int __sigpause(int sig_or_mask, int is_sig);
int __xpg_sigpause(int sig);
int sigpause(int mask);
int siggetmask(void);

#endif
