/* SPDX-License-Identifier: MIT */
#include "scripts/bench/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scripts/machine/measured.h"

static const char file_name[] = "measured", new_name[] = "measured.new";
static const char not_own[] = "it, or a directory above it, belongs to another user";

/* Is this a directory, or a file, of this user? */
static bool is_own(int fd)
{
	struct stat is;

	return fstat(fd, &is) == 0 && is.st_uid == geteuid();
}

/*
 * Open the part of a path that `name` is, in a directory. If it is missing and may be made, make it, but only in a
 * directory of this user.
 */
static int enter(int above, const char *name, bool may_make, int flags, const char **ret_why)
{
	int fd = openat(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);

	if (fd < 0 && errno == ENOENT && may_make) {
		if (!is_own(above)) {
			*ret_why = not_own;
			return -1;
		}
		if (mkdirat(above, name, 0700) == 0 || errno == EEXIST)
			fd = openat(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (fd < 0)
		*ret_why = strerror(errno);
	return fd;
}

/* Open the directory of the file. From `base` on, each directory must be this user's. */
static int open_directory(const struct measured_place *place, const char **ret_why)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *path = strdup(place->directory), *name, *rest;

	for (name = strtok_r(path, "/", &rest); fd >= 0 && name; name = strtok_r(NULL, "/", &rest)) {
		const size_t end = (size_t)(name - path) + strlen(name);
		const bool is_last = !*rest, may_make = !place->is_home || end > place->base;
		const int next = enter(fd, name, may_make, is_last ? O_NOFOLLOW : 0, ret_why);

		close(fd);
		fd = next;
		if (fd >= 0 && end >= place->base && !is_own(fd)) {
			*ret_why = not_own;
			close(fd);
			fd = -1;
		}
	}
	free(path);
	return fd;
}

/* Open the file, locked; another writer may replace it until it is locked. */
static int open_file(int directory, const char **ret_why)
{
	struct stat is, now;
	int fd;

	for (;;) {
		/* O_NONBLOCK: a FIFO there must not keep us waiting. */
		fd = openat(directory, file_name, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
			    O_CLOEXEC, 0600);
		if (fd < 0) {
			*ret_why = strerror(errno);
			return -1;
		}
		/* Nobody else may read it, so nobody else can keep it locked. */
		if (fstat(fd, &is) != 0 || !S_ISREG(is.st_mode) || is.st_uid != geteuid() || is.st_nlink > 1 ||
		    fchmod(fd, 0600) != 0)
			break;
		if (flock(fd, LOCK_EX) != 0) {
			*ret_why = strerror(errno);
			close(fd);
			return -1;
		}
		if (fstatat(directory, file_name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		    now.st_dev == is.st_dev && now.st_ino == is.st_ino)
			return fd;
		close(fd);
	}
	close(fd);
	*ret_why = "it is not a regular file that is this user's alone";
	return -1;
}

static bool write_all(int fd, const char *text, size_t size)
{
	while (size) {
		const ssize_t wrote = write(fd, text, size);

		if (wrote <= 0)
			return false;
		text += wrote;
		size -= (size_t)wrote;
	}
	return true;
}

/* Append to a file of this size; a line without its end would spoil the next one. */
static bool write_whole(int fd, off_t size, const char *text, size_t length)
{
	int why;

	if (write_all(fd, text, length))
		return true;
	why = errno;
	if (ftruncate(fd, size) == 0)
		errno = why;
	return false;
}

/* Replace the file by its last lines, of half the size that it may have, and the new ones. */
static bool shorten(int directory, int old, off_t size, const char *text, size_t length)
{
	const size_t half = MEASURED_FILE_MOST / 2;
	char *last = malloc(half);
	const ssize_t got = last ? pread(old, last, half, size > (off_t)half ? size - (off_t)half : 0) : -1;
	const char *line = got > 0 ? memchr(last, '\n', (size_t)got) : NULL;
	bool done = false;
	int fd = -1;

	/* What is there was left behind: who writes has the lock. */
	if (got >= 0 && (unlinkat(directory, new_name, 0) == 0 || errno == ENOENT))
		fd = openat(directory, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		done = (!line || write_all(fd, line + 1, (size_t)(last + got - line - 1))) &&
		       write_all(fd, text, length) &&
		       renameat(directory, new_name, directory, file_name) == 0;
		if (!done)
			unlinkat(directory, new_name, 0);
		close(fd);
	}
	free(last);
	return done;
}

/* Append to the file all or nothing. */
static bool append(int directory, const char *text, size_t length, const char **ret_why)
{
	const int fd = open_file(directory, ret_why);
	struct stat is;
	bool done;

	if (fd < 0)
		return false;
	if (fstat(fd, &is) != 0)
		done = false;
	else if (is.st_size + (off_t)length > (off_t)MEASURED_FILE_MOST)
		done = shorten(directory, fd, is.st_size, text, length);
	else
		done = write_whole(fd, is.st_size, text, length);
	if (!done)
		*ret_why = strerror(errno);
	close(fd);
	return done;
}

/* All that can be read, but no more than half of what the file may have. */
static char *read_all(int from, size_t *ret_size)
{
	const size_t most = MEASURED_FILE_MOST / 2;
	char *text = malloc(most);
	ssize_t got = 0;

	*ret_size = 0;
	while (text && *ret_size < most && (got = read(from, text + *ret_size, most - *ret_size)) > 0)
		*ret_size += (size_t)got;
	while (*ret_size && text[*ret_size - 1] != '\n')
		--*ret_size;
	return text;
}

bool keep(int from)
{
	struct measured_place place;
	const char *why = "";
	size_t size;
	char *text;
	bool done;
	int fd;

	if (!measured_place(&place))
		return true;
	/* No home is made for a user who has none. */
	if (place.is_home) {
		char *home = strndup(place.directory, place.base);

		done = home && access(home, F_OK) != 0;
		free(home);
		if (done) {
			free(place.directory);
			return true;
		}
	}
	text = read_all(from, &size);
	fd = open_directory(&place, &why);
	done = fd >= 0 && text && append(fd, text, size, &why);
	if (!done)
		fprintf(stderr, "%s/%s: not written: %s", place.directory, file_name, why);
	if (fd >= 0)
		close(fd);
	free(text);
	free(place.directory);
	return done;
}
