/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall/io.c - system calls by number: descriptors, files, sockets.
 */
#include "preload/syscall/families.h"

#include "runtime/sched/retreat.h"

bool fz_syscall_descriptor(long number, const long *a, long *ret)
{
	switch (number) {
	case SYS_close: *ret = close((int)a[0]); return true;
	case SYS_close_range:
		if (!fz_real.close_range)
			return false;
		*ret = close_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
		return true;
	case SYS_dup: *ret = dup((int)a[0]); return true;
#ifdef SYS_dup2
	case SYS_dup2: *ret = dup2((int)a[0], (int)a[1]); return true;
#endif
	case SYS_dup3: *ret = dup3((int)a[0], (int)a[1], (int)a[2]); return true;
	case SYS_fcntl: *ret = fcntl((int)a[0], (int)a[1], a[2]); return true;
	case SYS_ioctl: *ret = ioctl((int)a[0], (unsigned long)a[1], a[2]); return true;
#ifdef SYS_pipe
	case SYS_pipe: *ret = pipe((int *)a[0]); return true;
#endif
	case SYS_pipe2: *ret = pipe2((int *)a[0], (int)a[1]); return true;
	case SYS_socket: *ret = socket((int)a[0], (int)a[1], (int)a[2]); return true;
	case SYS_socketpair:
		*ret = socketpair((int)a[0], (int)a[1], (int)a[2], (int *)a[3]);
		return true;
	case SYS_userfaultfd:
		fz_retreat_before_faults("userfaultfd is in use");
		*ret = fz_syscall_real(number, a);
		return true;
	case SYS_setsockopt:
		*ret = setsockopt((int)a[0], (int)a[1], (int)a[2], (void *)a[3],
				  (socklen_t)a[4]);
		return true;
	default:
		return false;
	}
}

bool fz_syscall_file(long number, const long *a, long *ret)
{
	int fd = (int)a[0];
	void *buf = (void *)a[1];
	size_t n = (size_t)a[2];
	const struct iovec *iov = (void *)a[1];
	int count = (int)a[2];

	switch (number) {
	case SYS_read: *ret = read(fd, buf, n); return true;
	case SYS_write: *ret = write(fd, buf, n); return true;
	case SYS_readv: *ret = readv(fd, iov, count); return true;
	case SYS_writev: *ret = writev(fd, iov, count); return true;
	case SYS_pread64: *ret = pread(fd, buf, n, a[3]); return true;
	case SYS_pwrite64: *ret = pwrite(fd, buf, n, a[3]); return true;
	/*
	 * The kernel takes an offset as two words; on 64-bit CPUs the first word holds all of
	 * it.
	 */
	case SYS_preadv: *ret = preadv(fd, iov, count, a[3]); return true;
	case SYS_pwritev: *ret = pwritev(fd, iov, count, a[3]); return true;
	case SYS_preadv2: *ret = preadv2(fd, iov, count, a[3], (int)a[5]); return true;
	case SYS_pwritev2: *ret = pwritev2(fd, iov, count, a[3], (int)a[5]); return true;
	case SYS_flock: *ret = flock(fd, (int)a[1]); return true;
#ifdef SYS_open
	case SYS_open: *ret = open((const char *)a[0], (int)a[1], (mode_t)a[2]); return true;
#endif
	case SYS_openat: *ret = openat(fd, (const char *)a[1], (int)a[2], (mode_t)a[3]); return true;
	case SYS_fallocate: *ret = fallocate(fd, (int)a[1], a[2], a[3]); return true;
	case SYS_fsync: *ret = fsync(fd); return true;
	case SYS_fdatasync: *ret = fdatasync(fd); return true;
	case SYS_sync_file_range:
		*ret = sync_file_range(fd, a[1], a[2], (unsigned)a[3]);
		return true;
	case SYS_syncfs: *ret = syncfs(fd); return true;
	case SYS_msync: *ret = msync((void *)a[0], (size_t)a[1], (int)a[2]); return true;
	case SYS_sync:
		sync();
		*ret = 0;
		return true;
	case SYS_sendfile: *ret = sendfile(fd, (int)a[1], (off_t *)a[2], (size_t)a[3]); return true;
	case SYS_splice:
		*ret = splice(fd, (off64_t *)a[1], (int)a[2], (off64_t *)a[3], (size_t)a[4],
			      (unsigned)a[5]);
		return true;
	case SYS_tee: *ret = tee(fd, (int)a[1], (size_t)a[2], (unsigned)a[3]); return true;
	case SYS_vmsplice: *ret = vmsplice(fd, iov, (size_t)a[2], (unsigned)a[3]); return true;
	case SYS_copy_file_range:
		*ret = copy_file_range(fd, (off64_t *)a[1], (int)a[2], (off64_t *)a[3],
				       (size_t)a[4], (unsigned)a[5]);
		return true;
	default:
		return false;
	}
}

bool fz_syscall_socket(long number, const long *a, long *ret)
{
	int fd = (int)a[0];
	void *buf = (void *)a[1];
	size_t n = (size_t)a[2];

	switch (number) {
	case SYS_recvfrom:
		*ret = recvfrom(fd, buf, n, (int)a[3], (struct sockaddr *)a[4],
				(socklen_t *)a[5]);
		return true;
	case SYS_sendto:
		*ret = sendto(fd, buf, n, (int)a[3], (const struct sockaddr *)a[4],
			      (socklen_t)a[5]);
		return true;
	case SYS_recvmsg: *ret = recvmsg(fd, buf, (int)a[2]); return true;
	case SYS_sendmsg: *ret = sendmsg(fd, buf, (int)a[2]); return true;
	case SYS_recvmmsg:
		*ret = recvmmsg(fd, buf, (unsigned)a[2], (int)a[3], (struct timespec *)a[4]);
		return true;
	case SYS_sendmmsg: *ret = sendmmsg(fd, buf, (unsigned)a[2], (int)a[3]); return true;
	case SYS_accept: *ret = accept(fd, (struct sockaddr *)buf, (socklen_t *)a[2]); return true;
	case SYS_accept4:
		*ret = accept4(fd, (struct sockaddr *)buf, (socklen_t *)a[2], (int)a[3]);
		return true;
	case SYS_connect:
		*ret = connect(fd, (const struct sockaddr *)buf, (socklen_t)a[2]);
		return true;
	default:
		return false;
	}
}
