/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_interrupted.c - calls that a file server ends with EINTR when the kernel
 * says that the calling thread was interrupted.  No signal comes: none must fail, or be cut short.
 * The server lets other threads' calls complete meanwhile, and waits for such an interruption.
 */
#include "fuse.h"

#include <dirent.h>
#include <ftw.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

enum { READERS = 8, ROUNDS = 2, BYTES = 4 * FUSE_PAGE };

static int sockets[READERS][2];
static char dir[] = "/tmp/check-XXXXXX", path[64], other[64];
static char bytes[BYTES];

/* ---- the server, a process of its own ----------------------------------------- */

static int can_wait(const struct fuse_request *r)
{
	switch (fuse_header(r)->opcode) {
	case FUSE_INIT:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return 0;
	default:
		return 1;
	}
}

/* Was the thread that waits for the answer to r interrupted, while other calls completed? */
static int is_interrupted(int dev, const struct fuse_request *r)
{
	static struct fuse_request next;
	struct pollfd p = { .fd = dev, .events = POLLIN };

	for (int i = 0; i < READERS; i++)
		CHECK_INT(write(sockets[i][1], "x", 1), 1);
	while (poll(&p, 1, 20) > 0 && !fuse_next(dev, &next)) {
		const struct fuse_interrupt_in *in = (const void *)(fuse_header(&next) + 1);

		if (fuse_header(&next)->opcode == FUSE_INTERRUPT &&
		    in->unique == fuse_header(r)->unique)
			return 1;
		fuse_handle(dev, &next, FOPEN_DIRECT_IO);
	}
	return 0;
}

static int serves(int ready)
{
	static struct fuse_request r;
	int dev = fuse_mount(dir);

	CHECK_INT(write(ready, "x", 1), 1);
	while (!fuse_next(dev, &r)) {
		if (can_wait(&r) && is_interrupted(dev, &r))
			fuse_answer(dev, &r, -EINTR, NULL, 0);
		else
			fuse_handle(dev, &r, FOPEN_DIRECT_IO);
	}
	return 0;
}

/* ---- the client ----------------------------------------------------------------- */

static void *reads(void *arg)
{
	int fd = *(int *)arg;
	char c;

	while (recv(fd, &c, 1, 0) == 1 && c == 'x')
		;
	return NULL;
}

/* The carriers of calls come to rest, with the readers' calls under way. */
#define CALM(call) (usleep(1000), (call))

static void uses_names(void)
{
	const struct timespec times[2] = { { 1, 0 }, { 2, 0 } };
	struct statvfs vfs;
	struct statfs fs;
	struct stat st;
	char value[8];

	CHECK_OK(CALM(stat(path, &st)));
	CHECK_OK(CALM(lstat(path, &st)));
	CHECK_OK(CALM(access(path, F_OK)));
	CHECK_OK(CALM(chmod(path, 0600)));
	CHECK_OK(CALM(chown(path, 0, 0)));
	CHECK_OK(CALM(truncate(path, FUSE_SIZE)));
	CHECK_OK(CALM(utimensat(AT_FDCWD, path, times, 0)));
	CHECK_OK(CALM(unlink(path)));
	CHECK_OK(CALM(rename(path, other)));
	CHECK_OK(CALM(statfs(dir, &fs)));
	CHECK_OK(CALM(statvfs(dir, &vfs)));
	CHECK_OK(CALM(setxattr(path, "user.x", "1", 1, 0)));
	CHECK_OK(CALM(removexattr(path, "user.x")));
	CHECK_ERR(CALM(getxattr(path, "user.x", value, sizeof(value))), ENODATA);
}

/* The number of the page is in each byte. */
static void check_bytes(size_t offset)
{
	for (size_t i = 0; i < BYTES; i++)
		CHECK_INT(bytes[i], 'A' + (int)(offset + i) / FUSE_PAGE);
	memset(bytes, 0, sizeof(bytes));
}

static void moves(int fd)
{
	struct iovec iov[2] = { { bytes, 5000 }, { bytes + 5000, BYTES - 5000 } };
	off_t offset = 0;
	int s[2];

	CHECK_INT(CALM(read(fd, bytes, BYTES)), BYTES);
	check_bytes(0);
	CHECK_INT(CALM(readv(fd, iov, 2)), BYTES);
	check_bytes(BYTES);
	CHECK_INT(CALM(pread(fd, bytes, BYTES, FUSE_PAGE)), BYTES);
	check_bytes(FUSE_PAGE);
	CHECK_INT(CALM(preadv(fd, iov, 2, 0)), BYTES);
	check_bytes(0);
	CHECK_INT(CALM(write(fd, bytes, BYTES)), BYTES);
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 3 * BYTES);
	CHECK_INT(CALM(writev(fd, iov, 2)), BYTES);
	CHECK_INT(lseek(fd, 0, SEEK_CUR), 4 * BYTES);
	CHECK_INT(CALM(pwrite(fd, bytes, BYTES, 0)), BYTES);
	CHECK_INT(CALM(pwritev(fd, iov, 2, 0)), BYTES);
	/* The end of the file is one. */
	CHECK_INT(CALM(pread(fd, bytes, BYTES, FUSE_SIZE)), 0);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_INT(CALM(sendfile(s[0], fd, &offset, 100)), 100);
	CHECK_INT(recv(s[1], bytes, BYTES, 0), 100);
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

static void uses_descriptors(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct stat st;
	int fd = CALM(open(path, O_RDWR));

	CHECK(fd >= 0);
	moves(fd);
	CHECK_OK(CALM(fstat(fd, &st)));
	CHECK_OK(CALM(fchmod(fd, 0644)));
	CHECK_OK(CALM(ftruncate(fd, FUSE_SIZE)));
	CHECK_OK(CALM(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, FUSE_SIZE)));
	CHECK_OK(CALM(posix_fallocate(fd, 0, FUSE_SIZE)));
	CHECK_OK(CALM(fsync(fd)));
	CHECK_OK(CALM(fdatasync(fd)));
	CHECK_OK(CALM(fcntl(fd, F_SETLK, &lock)));
	CHECK_OK(CALM(fcntl(fd, F_SETLKW, &lock)));
	CHECK_OK(CALM(fcntl(fd, F_GETLK, &lock)));
	CHECK_OK(CALM(flock(fd, LOCK_EX | LOCK_NB)));
	CHECK_OK(CALM(flock(fd, LOCK_EX)));
	CHECK_OK(CALM(lockf(fd, F_TLOCK, 1)));
	CHECK_OK(CALM(close(fd)));
	fd = CALM(open(dir, O_RDONLY | O_DIRECTORY));
	CHECK(fd >= 0);
	CHECK_INT(CALM(syscall(SYS_fsync, fd)), 0);
	CHECK_INT(CALM(getdents64(fd, bytes, BYTES)), 0);
	CHECK_OK(CALM(fchdir(fd)));
	CHECK_OK(CALM(close(fd)));
	CHECK_OK(chdir("/"));
}

static int visits(const char *name, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)at;
	CHECK_OK(strcmp(name, path));
	CHECK_INT(type, FTW_F);
	return 0;
}

/* The calls that libc makes inside these. */
static void uses_libc(void)
{
	struct dirent **list;
	char *resolved;
	FILE *file;
	DIR *d;
	int fd;

	file = CALM(fopen(path, "r"));
	CHECK(file);
	CHECK_INT(CALM(fread(bytes, 1, BYTES, file)), BYTES);
	check_bytes(0);
	CHECK_OK(CALM(fclose(file)));
	/* No cancellation points: libc has a read and a write of its own for them. */
	file = CALM(fopen(path, "r+c"));
	CHECK(file);
	CHECK_INT(CALM(fread(bytes, 1, BYTES, file)), BYTES);
	check_bytes(0);
	CHECK_OK(fseek(file, 0, SEEK_SET));
	CHECK_INT(fwrite(bytes, 1, 100, file), 100);
	CHECK_OK(CALM(fflush(file)));
	CHECK_OK(CALM(fclose(file)));
	/* libc's fstat, stat and lstat. */
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	d = CALM(fdopendir(fd));
	CHECK(d);
	CHECK_OK(closedir(d));
	CHECK(CALM(ftok(path, 1)) != -1);
	CHECK_OK(CALM(nftw(path, visits, 1, FTW_PHYS)));
	d = CALM(opendir(dir));
	CHECK(d);
	errno = 0;
	CHECK(!CALM(readdir(d)));
	CHECK_OK(errno);
	CHECK_OK(CALM(closedir(d)));
	CHECK_INT(CALM(scandir(dir, &list, NULL, NULL)), 0);
	free(list);
	resolved = CALM(realpath(path, NULL));
	CHECK(resolved && !strcmp(resolved, path));
	free(resolved);
}

static void *calls(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		uses_names();
		uses_descriptors();
		uses_libc();
	}
	return arg;
}

int main(void)
{
	pthread_t readers[READERS];
	int ready[2], status;
	pid_t server;
	char c;

	fuse_prepare();
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(other, sizeof(other), "%s/absent", dir);
	CHECK_OK(pipe(ready));
	for (int i = 0; i < READERS; i++)
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]));
	server = fork();
	CHECK(server >= 0);
	if (!server) {
		CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
		CHECK_OK(close(ready[0]));
		_exit(serves(ready[1]));
	}
	CHECK_OK(close(ready[1]));
	if (read(ready[0], &c, 1) != 1) {
		CHECK_INT(waitpid(server, &status, 0), server);
		CHECK_OK(rmdir(dir));
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	for (int i = 0; i < READERS; i++)
		readers[i] = start(reads, &sockets[i][0]);
	finish(start(calls, NULL));
	for (int i = 0; i < READERS; i++)
		CHECK_INT(write(sockets[i][1], "e", 1), 1);
	for (int i = 0; i < READERS; i++)
		finish(readers[i]);
	CHECK_OK(umount2(dir, MNT_DETACH));
	CHECK_INT(waitpid(server, &status, 0), server);
	CHECK_INT(status, 0);
	CHECK_OK(rmdir(dir));
	return success();
}
