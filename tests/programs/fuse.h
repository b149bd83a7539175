/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUSE_H
#define TESTS_FUSE_H

/*
 * tests/programs/fuse.h - a file system that the test itself serves, by the kernel's own protocol:
 * a directory in which every name but "absent" is a file of FUSE_SIZE bytes.  To what would change
 * it, it answers success and does nothing.
 */
#include "check.h"

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { FUSE_PAGE = 4096, FUSE_SIZE = 64 * FUSE_PAGE, FUSE_ROOM = 1 << 17, FUSE_FILE = 2 };

struct fuse_request {
	char bytes[FUSE_ROOM];
	long size;
};

UNUSED static const struct fuse_in_header *fuse_header(const struct fuse_request *r)
{
	return (const void *)r->bytes;
}

/* What a file holds: at each offset the number of its page, a letter. */
UNUSED static void fuse_fill(char *to, uint64_t offset, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (char)('A' + (offset + i) / FUSE_PAGE % 26);
}

/* The server reads and writes without libc: nobody sees that it serves. */
UNUSED static int fuse_unseen;

UNUSED static long fuse_transfer(long number, int dev, void *buf, size_t n)
{
	long ret;

	if (!fuse_unseen)
		return number == SYS_read ? read(dev, buf, n) : write(dev, buf, n);
	ret = transfer_raw(number, dev, buf, n);
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* Returns 0, or -1 at the end of the mount. */
UNUSED static int fuse_next(int dev, struct fuse_request *r)
{
	do
		r->size = fuse_transfer(SYS_read, dev, r->bytes, sizeof(r->bytes));
	/* ENOENT: the request was taken back; as fuse(4) says. */
	while (r->size < 0 && errno == ENOENT);
	if (r->size < 0)
		CHECK_INT(errno, ENODEV);
	return r->size < 0 ? -1 : 0;
}

UNUSED static void fuse_answer(int dev, const struct fuse_request *r, int error, const void *data,
			       size_t n)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + n), .error = error,
		.unique = fuse_header(r)->unique,
	};
	static _Thread_local char whole[FUSE_ROOM];

	memcpy(whole, &out, sizeof(out));
	if (n)
		memcpy(whole + sizeof(out), data, n);
	/* ENOENT: nobody waits for the answer any more. */
	if (fuse_transfer(SYS_write, dev, whole, out.len) < 0 && errno != ENOENT && errno != ENODEV)
		fail(__FILE__, __LINE__, "answer to operation %u: errno %d\n",
		     fuse_header(r)->opcode, errno);
}

UNUSED static struct fuse_attr fuse_attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node, .nlink = 1, .blksize = FUSE_PAGE,
		.size = node == FUSE_ROOT_ID ? 0 : FUSE_SIZE,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
	};
}

/* Data-carrying answers.  open_flags: FOPEN_*. */
UNUSED static void fuse_handle(int dev, const struct fuse_request *r, uint32_t open_flags)
{
	const struct fuse_in_header *in = fuse_header(r);
	const void *arg = in + 1;
	const struct fuse_read_in *part = arg;
	static _Thread_local char data[FUSE_ROOM / 2];
	union {
		struct fuse_init_out init;
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		struct fuse_write_out write;
		struct fuse_statfs_out statfs;
		struct fuse_lk_out lock;
	} out;

	memset(&out, 0, sizeof(out));
	switch (in->opcode) {
	case FUSE_INIT:
		out.init.major = FUSE_KERNEL_VERSION;
		out.init.minor = 31;
		out.init.max_write = FUSE_PAGE;
		out.init.flags = FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS;
		fuse_answer(dev, r, 0, &out.init, sizeof(out.init));
		break;
	case FUSE_LOOKUP:
		if (!strcmp(arg, "absent")) {
			fuse_answer(dev, r, -ENOENT, NULL, 0);
			break;
		}
		__attribute__((fallthrough));
	case FUSE_LINK:
		out.entry.nodeid = FUSE_FILE;
		out.entry.attr = fuse_attributes(FUSE_FILE);
		fuse_answer(dev, r, 0, &out.entry, sizeof(out.entry));
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		out.attr.attr = fuse_attributes(in->nodeid);
		fuse_answer(dev, r, 0, &out.attr, sizeof(out.attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		out.open.open_flags = open_flags;
		fuse_answer(dev, r, 0, &out.open, sizeof(out.open));
		break;
	case FUSE_READ:
		fuse_fill(data, part->offset, part->size);
		fuse_answer(dev, r, 0, data,
			    part->offset >= FUSE_SIZE ? 0 : part->size);
		break;
	case FUSE_WRITE:
		out.write.size = part->size;
		fuse_answer(dev, r, 0, &out.write, sizeof(out.write));
		break;
	case FUSE_STATFS:
		fuse_answer(dev, r, 0, &out.statfs, sizeof(out.statfs));
		break;
	case FUSE_GETLK:
		out.lock.lk.type = F_UNLCK;
		fuse_answer(dev, r, 0, &out.lock, sizeof(out.lock));
		break;
	case FUSE_GETXATTR:
		fuse_answer(dev, r, -ENODATA, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	case FUSE_ACCESS:
	case FUSE_FALLOCATE:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_REMOVEXATTR:
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_SETLK:
	case FUSE_SETLKW:
	case FUSE_SETXATTR:
	case FUSE_UNLINK:
	case FUSE_READDIR:	/* of an empty directory */
		fuse_answer(dev, r, 0, NULL, 0);
		break;
	default:
		fuse_answer(dev, r, -ENOSYS, NULL, 0);
		break;
	}
}

/* Mounts of the caller, which must be the only thread, are its own from now on; or skip the test. */
UNUSED static void fuse_prepare(void)
{
	if (access("/dev/fuse", R_OK | W_OK)) {
		puts("/dev/fuse is not there, or may not be read and written");
		exit(77);
	}
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		puts("CAP_SYS_ADMIN is missing: mounts are not allowed");
		exit(77);
	}
}

/*
 * Ends the mount if the caller, which must be the only thread, dies: threads that wait for a page
 * that the process itself should have filled cannot be killed.  Returns a process, for fuse_end().
 */
UNUSED static pid_t fuse_guard(const char *path)
{
	pid_t parent = getpid(), guard = fork();
	sigset_t set;
	int sig;

	CHECK(guard >= 0);
	if (guard)
		return guard;
	/* What kills the caller's process group must not kill this process. */
	CHECK(setsid() >= 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGTERM));
	if (getppid() == parent)
		sigwait(&set, &sig);
	umount2(path, MNT_FORCE);
	_exit(0);
}

UNUSED static void fuse_end(const char *path, pid_t guard)
{
	int status;

	CHECK_OK(umount2(path, MNT_DETACH));
	CHECK_OK(kill(guard, SIGKILL));
	CHECK_INT(waitpid(guard, &status, 0), guard);
}

/* Mount the file system that is served by dev, of /dev/fuse, at this path; or skip the test. */
UNUSED static void fuse_mount_by(int dev, const char *path)
{
	char options[100];

	CHECK(dev >= 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,max_read=%d",
		 dev, FUSE_PAGE);
	if (mount("test", path, "fuse", MS_NOSUID | MS_NODEV, options)) {
		printf("a file system of type fuse cannot be mounted: %s\n", strerror(errno));
		exit(77);
	}
}

/* Returns the descriptor by which the file system at this path is served; or skips the test. */
UNUSED static int fuse_mount(const char *path)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	fuse_mount_by(dev, path);
	return dev;
}

#endif
