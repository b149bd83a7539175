/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/file_calls.c - files by name and by descriptor: every call once with
 * the right arguments and with wrong ones, from several threads in turn.
 */
#include "check.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

static char *volatile nowhere = (char *)16, *volatile null;

/* Paths in a directory of the calling thread. */
static __thread char room[64];
static __thread char text[4][128];

static const char *in_room(int slot, const char *name)
{
	snprintf(text[slot], sizeof(text[slot]), "%s/%s", room, name);
	return text[slot];
}

static void opening(int dir)
{
	const char *path = in_room(0, "file");
	struct stat st;
	int fd;

	CHECK_ERR(open(path, O_RDONLY), ENOENT);
	CHECK_ERR(open(nowhere, O_RDONLY), EFAULT);
	CHECK_ERR(open(null, O_RDONLY), EFAULT);
	CHECK_ERR(open("", O_RDONLY), ENOENT);
	CHECK_ERR(open(room, O_WRONLY), EISDIR);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	CHECK(fd >= 0);
	CHECK_OK(fstat(fd, &st));
	CHECK_INT(st.st_mode & 0777, 0640);
	CHECK_ERR(open(path, O_RDWR | O_CREAT | O_EXCL, 0640), EEXIST);
	close(fd);
	fd = open64(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK_ERR(write(fd, "x", 1), EBADF);
	close(fd);
	fd = openat(dir, "file", O_WRONLY | O_APPEND);
	CHECK(fd >= 0);
	CHECK_INT(write(fd, "12345", 5), 5);
	CHECK_ERR(read(fd, text[3], 1), EBADF);
	close(fd);
	CHECK_ERR(openat(-1, "file", O_RDONLY), EBADF);
	CHECK_ERR(openat(dir, nowhere, O_RDONLY), EFAULT);
	fd = openat64(dir, "other", O_CREAT | O_RDWR, 0600);
	CHECK(fd >= 0);
	close(fd);
	fd = open(room, O_TMPFILE | O_RDWR, 0600);
	CHECK(fd >= 0 || errno == EOPNOTSUPP);
	if (fd >= 0)
		close(fd);
	fd = creat(path, 0600);
	CHECK(fd >= 0);
	CHECK_OK(fstat(fd, &st));
	CHECK_INT(st.st_size, 0);
	CHECK_INT(write(fd, "12345", 5), 5);
	close(fd);
	fd = creat64(in_room(1, "third"), 0600);
	CHECK(fd >= 0);
	close(fd);
	CHECK_ERR(creat(nowhere, 0600), EFAULT);
	CHECK_ERR(creat("/nowhere/x", 0600), ENOENT);
}

static void looking(int dir)
{
	const char *path = in_room(0, "file");
	struct stat st;
	struct stat64 st64;
	struct statx sx;
	struct statfs sf;
	struct statvfs sv;
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0);
	CHECK_KEEPS(stat(path, &st), 0);
	CHECK_INT(st.st_size, 5);
	CHECK_KEEPS(lstat(path, &st), 0);
	CHECK_KEEPS(fstat(fd, &st), 0);
	CHECK_KEEPS(fstatat(dir, "file", &st, 0), 0);
	CHECK_INT(st.st_size, 5);
	CHECK_KEEPS(fstatat(fd, "", &st, AT_EMPTY_PATH), 0);
	CHECK_KEEPS(stat64(path, &st64), 0);
	CHECK_KEEPS(lstat64(path, &st64), 0);
	CHECK_KEEPS(fstat64(fd, &st64), 0);
	CHECK_KEEPS(fstatat64(dir, "file", &st64, 0), 0);
	CHECK_INT(st64.st_size, 5);
	CHECK_KEEPS(statx(dir, "file", 0, STATX_SIZE, &sx), 0);
	CHECK_INT(sx.stx_size, 5);
	CHECK_ERR(stat("/nowhere", &st), ENOENT);
	CHECK_ERR(stat(nowhere, &st), EFAULT);
	CHECK_ERR(stat(path, (struct stat *)nowhere), EFAULT);
	CHECK_ERR(fstat(-1, &st), EBADF);
	CHECK_ERR(fstatat(-1, "file", &st, 0), EBADF);
	CHECK_ERR(fstatat(dir, "file", &st, 0x800000), EINVAL);
	CHECK_ERR(statx(dir, "file", 0, STATX_SIZE, (struct statx *)nowhere), EFAULT);
	CHECK_KEEPS(access(path, R_OK | W_OK), 0);
	CHECK_ERR(access(path, 77), EINVAL);
	CHECK_ERR(access("/nowhere", F_OK), ENOENT);
	CHECK_KEEPS(faccessat(dir, "file", R_OK, 0), 0);
	CHECK_ERR(faccessat(-1, "file", R_OK, 0), EBADF);
	CHECK_KEEPS(euidaccess(path, R_OK), 0);
	CHECK_KEEPS(eaccess(path, R_OK), 0);
	CHECK_KEEPS(statfs(room, &sf), 0);
	CHECK(sf.f_bsize > 0);
	CHECK_KEEPS(fstatfs(fd, &sf), 0);
	CHECK_ERR(fstatfs(-1, &sf), EBADF);
	CHECK_ERR(statfs(nowhere, &sf), EFAULT);
	CHECK_OK(statvfs(room, &sv));
	CHECK_OK(fstatvfs(fd, &sv));
	CHECK(sv.f_bsize > 0);
	CHECK_INT(readahead(fd, 0, 4096), 0);
	CHECK_ERR(readahead(-1, 0, 4096), EBADF);
	CHECK_INT(posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED), 0);
	CHECK_INT(posix_fadvise(-1, 0, 0, POSIX_FADV_NORMAL), EBADF);
	close(fd);
}

static void changing(int dir)
{
	const char *path = in_room(0, "file");
	struct timeval tv[2] = { { 1000, 0 }, { 2000, 5 } };
	struct timespec ts[2] = { { 3000, 0 }, { 4000, 7 } };
	struct utimbuf ut = { 5000, 6000 };
	struct stat st;
	int fd = open(path, O_RDWR);

	CHECK(fd >= 0);
	CHECK_KEEPS(chmod(path, 0600), 0);
	CHECK_KEEPS(fchmod(fd, 0644), 0);
	CHECK_KEEPS(fchmodat(dir, "file", 0600, 0), 0);
	CHECK_OK(lchmod(path, 0600));
	CHECK_ERR(chmod("/nowhere", 0600), ENOENT);
	CHECK_ERR(lchmod("/nowhere", 0600), ENOENT);
	CHECK_ERR(fchmod(-1, 0600), EBADF);
	CHECK_KEEPS(chown(path, (uid_t)-1, (gid_t)-1), 0);
	CHECK_KEEPS(lchown(path, (uid_t)-1, (gid_t)-1), 0);
	CHECK_KEEPS(fchown(fd, (uid_t)-1, (gid_t)-1), 0);
	CHECK_KEEPS(fchownat(dir, "file", (uid_t)-1, (gid_t)-1, 0), 0);
	CHECK_ERR(chown("/nowhere", (uid_t)-1, (gid_t)-1), ENOENT);
	CHECK_ERR(fchown(-1, 0, 0), EBADF);
	CHECK_KEEPS(utimes(path, tv), 0);
	CHECK_OK(stat(path, &st));
	CHECK_INT(st.st_mtime, 2000);
	CHECK_KEEPS(lutimes(path, tv), 0);
	CHECK_KEEPS(futimes(fd, tv), 0);
	CHECK_KEEPS(futimesat(dir, "file", tv), 0);
	CHECK_KEEPS(utimensat(dir, "file", ts, 0), 0);
	CHECK_KEEPS(futimens(fd, ts), 0);
	CHECK_OK(stat(path, &st));
	CHECK_INT(st.st_mtime, 4000);
	CHECK_KEEPS(utime(path, &ut), 0);
	CHECK_OK(stat(path, &st));
	CHECK_INT(st.st_mtime, 6000);
	CHECK_ERR(utimes("/nowhere", tv), ENOENT);
	CHECK_ERR(futimens(-1, ts), EBADF);
	ts[0].tv_nsec = 1000000000;
	CHECK_ERR(futimens(fd, ts), EINVAL);
	CHECK_KEEPS(truncate(path, 100), 0);
	CHECK_KEEPS(ftruncate(fd, 50), 0);
	CHECK_OK(fstat(fd, &st));
	CHECK_INT(st.st_size, 50);
	CHECK_KEEPS(truncate64(path, 40), 0);
	CHECK_KEEPS(ftruncate64(fd, 30), 0);
	CHECK_ERR(ftruncate(fd, -1), EINVAL);
	CHECK_ERR(ftruncate(-1, 1), EBADF);
	CHECK_ERR(truncate("/nowhere", 1), ENOENT);
	CHECK_INT(posix_fallocate(fd, 0, 5000), 0);
	CHECK_OK(fstat(fd, &st));
	CHECK_INT(st.st_size, 5000);
	CHECK_INT(posix_fallocate(-1, 0, 1), EBADF);
	CHECK_INT(posix_fallocate(fd, 0, 0), EINVAL);
	CHECK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 5000, 5000) == 0 || errno == EOPNOTSUPP);
	CHECK_ERR(fallocate(fd, 0, -1, 1), EINVAL);
	CHECK_ERR(fallocate(-1, 0, 0, 1), EBADF);
	/* Attributes: where the file system has them. */
	if (fsetxattr(fd, "user.one", "1", 1, 0) == 0) {
		CHECK_KEEPS(setxattr(path, "user.two", "22", 2, 0), 0);
		CHECK_KEEPS(lsetxattr(path, "user.three", "333", 3, 0), 0);
		CHECK_INT(getxattr(path, "user.two", text[3], 10), 2);
		CHECK_INT(lgetxattr(path, "user.three", text[3], 10), 3);
		CHECK_INT(fgetxattr(fd, "user.one", text[3], 10), 1);
		CHECK_ERR(fgetxattr(fd, "user.three", text[3], 1), ERANGE);
		CHECK(listxattr(path, NULL, 0) >= 27);
		CHECK_INT(llistxattr(path, NULL, 0), flistxattr(fd, NULL, 0));
		CHECK_KEEPS(removexattr(path, "user.one"), 0);
		CHECK_KEEPS(lremovexattr(path, "user.two"), 0);
		CHECK_KEEPS(fremovexattr(fd, "user.three"), 0);
		CHECK_ERR(fremovexattr(fd, "user.three"), ENODATA);
	}
	CHECK_ERR(fgetxattr(-1, "user.x", NULL, 0), EBADF);
	close(fd);
}

static void naming(int dir)
{
	const char *a = in_room(0, "a"), *b = in_room(1, "b"), *c = in_room(2, "c");
	char target[16];
	struct stat st;
	int fd = creat(a, 0600);

	CHECK(fd >= 0);
	close(fd);
	CHECK_KEEPS(link(a, b), 0);
	CHECK_ERR(link(a, b), EEXIST);
	CHECK_KEEPS(linkat(dir, "a", dir, "c", 0), 0);
	CHECK_OK(stat(a, &st));
	CHECK_INT(st.st_nlink, 3);
	CHECK_KEEPS(unlink(b), 0);
	CHECK_ERR(unlink(b), ENOENT);
	CHECK_ERR(unlink(nowhere), EFAULT);
	CHECK_KEEPS(unlinkat(dir, "c", 0), 0);
	CHECK_ERR(unlinkat(-1, "c", 0), EBADF);
	CHECK_KEEPS(symlink("a", b), 0);
	CHECK_KEEPS(symlinkat("b", dir, "c"), 0);
	CHECK_INT(readlink(b, target, sizeof(target)), 1);
	CHECK_INT(readlinkat(dir, "c", target, 1), 1);
	CHECK_INT(target[0], 'b');
	CHECK_ERR(readlink(a, target, sizeof(target)), EINVAL);
	CHECK_ERR(readlink(b, target, 0), EINVAL);
	CHECK_KEEPS(rename(a, b), 0);
	CHECK_ERR(rename(a, b), ENOENT);
	CHECK_KEEPS(renameat(dir, "b", dir, "a"), 0);
	CHECK_ERR(renameat2(dir, "a", dir, "c", RENAME_NOREPLACE), EEXIST);
	CHECK_KEEPS(renameat2(dir, "a", dir, "c", 0), 0);
	CHECK_KEEPS(remove(c), 0);
	CHECK_KEEPS(mkdir(a, 0700), 0);
	CHECK_ERR(mkdir(a, 0700), EEXIST);
	CHECK_KEEPS(mkdirat(dir, "b", 0700), 0);
	CHECK_ERR(unlink(a), EISDIR);
	CHECK_KEEPS(rmdir(a), 0);
	CHECK_KEEPS(unlinkat(dir, "b", AT_REMOVEDIR), 0);
	CHECK_ERR(rmdir(a), ENOENT);
	CHECK_KEEPS(mkfifo(a, 0600), 0);
	CHECK_KEEPS(mkfifoat(dir, "b", 0600), 0);
	CHECK_KEEPS(mknod(c, S_IFREG | 0600, 0), 0);
	CHECK_ERR(mknod(c, S_IFREG | 0600, 0), EEXIST);
	CHECK_OK(unlink(a));
	CHECK_OK(unlink(b));
	CHECK_OK(unlink(c));
	CHECK_KEEPS(mknodat(dir, "c", S_IFIFO | 0600, 0), 0);
	CHECK_OK(unlink(c));
}

static void refused(int dir)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .h = { .handle_bytes = MAX_HANDLE_SZ } };
	int mount_id, fd;

	/* Where the system has them, and where it does not let us. */
	if (name_to_handle_at(dir, "file", &u.h, &mount_id, 0) == 0) {
		fd = open_by_handle_at(dir, &u.h, O_RDONLY);
		CHECK(fd >= 0 || errno == EPERM || errno == ESTALE);
		if (fd >= 0)
			close(fd);
	}
	CHECK_ERR(name_to_handle_at(-1, "file", &u.h, &mount_id, 0), EBADF);
	CHECK_INT(mount(nowhere, nowhere, nowhere, 0, NULL), -1);
	CHECK_INT(umount("/nowhere/at/all"), -1);
	CHECK_INT(umount2("/nowhere/at/all", 0), -1);
	CHECK_INT(swapon("/nowhere/at/all", 0), -1);
	CHECK_INT(swapoff("/nowhere/at/all"), -1);
}

static void *all_of_them(void *arg)
{
	char list[1024];
	DIR *d;
	int dir, entries = 0;

	strcpy(room, "/tmp/check-XXXXXX");
	CHECK(mkdtemp(room) != NULL);
	dir = open(room, O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0);
	opening(dir);
	looking(dir);
	changing(dir);
	naming(dir);
	refused(dir);
	CHECK(getdents64(dir, list, sizeof(list)) > 0);
	CHECK_ERR(getdents64(-1, list, sizeof(list)), EBADF);
	d = opendir(room);
	CHECK(d != NULL);
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (e->d_name[0] != '.') {
			CHECK_OK(unlinkat(dir, e->d_name, 0));
			entries++;
		}
	CHECK_INT(entries, 3);
	closedir(d);
	close(dir);
	CHECK_OK(rmdir(room));
	return arg;
}

static void watches(void)
{
	struct inotify_event event;
	int fd = inotify_init1(IN_CLOEXEC), watch;
	char path[] = "/tmp/fz-watch-XXXXXX", buf[sizeof(event) + 256];

	CHECK(fd >= 0);
	CHECK(mkdtemp(path) != NULL);
	watch = inotify_add_watch(fd, path, IN_CREATE);
	CHECK_INT(watch, 1);
	CHECK_KEEPS(inotify_add_watch(fd, path, IN_CREATE | IN_DELETE), watch);
	CHECK_ERR(inotify_add_watch(-1, path, IN_CREATE), EBADF);
	CHECK_ERR(inotify_add_watch(0, path, 0), EINVAL);
	CHECK_ERR(inotify_add_watch(fd, "/nowhere", IN_CREATE), ENOENT);
	CHECK_ERR(inotify_add_watch(fd, (const char *)8, IN_CREATE), EFAULT);
	CHECK_OK(mkdirat(AT_FDCWD, strcat(strcpy(buf, path), "/d"), 0700));
	CHECK_OK(rmdir(buf));
	CHECK(read(fd, buf, sizeof(buf)) > 0);
	memcpy(&event, buf, sizeof(event));
	CHECK_INT(event.wd, watch);
	CHECK(event.mask & IN_CREATE);
	CHECK_OK(close(fd));
	CHECK_OK(rmdir(path));
}

int main(void)
{
	pthread_t t[4];
	char here[256];

	umask(0);
	for (int i = 0; i < 4; i++)
		t[i] = start(all_of_them, NULL);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	all_of_them(NULL);
	puts("files");
	CHECK(getcwd(here, sizeof(here)) != NULL);
	int fd = open(".", O_RDONLY);
	CHECK_KEEPS(chdir("/"), 0);
	CHECK_KEEPS(fchdir(fd), 0);
	CHECK_ERR(fchdir(-1), EBADF);
	CHECK_ERR(chdir("/nowhere"), ENOENT);
	/* The path is looked up first, then the right to do it. */
	CHECK_ERR(chroot("/nowhere"), ENOENT);
	CHECK_ERR(chroot("/proc/self/exe"), ENOTDIR);
	CHECK_ERR(chroot((const char *)8), EFAULT);
	if (chroot("/") != 0)
		CHECK_INT(errno, EPERM);
	watches();
	close(fd);
	return success();
}
