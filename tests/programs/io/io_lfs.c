/* SPDX-License-Identifier: MIT */
/* tests/programs/io/io_lfs.c - the names that large-file programs use. */
#define _FILE_OFFSET_BITS 64
#include "check.h"

#include <sys/stat.h>
#include <sys/uio.h>

static void *body(void *arg)
{
	int fd = temp_file();
	off_t far = ((off_t)5 << 30) + (off_t)(intptr_t)arg * 7;
	struct iovec iov;
	struct stat st;
	char buf[16];

	CHECK_INT(sizeof(off_t), 8);
	CHECK_KEEPS(pwrite(fd, "far away", 8, far), 8);
	CHECK_KEEPS(pread(fd, buf, 16, far), 8);
	CHECK_OK(memcmp(buf, "far away", 8));
	CHECK_OK(fstat(fd, &st));
	CHECK_INT(st.st_size, far + 8);
	CHECK_INT(lseek(fd, far + 4, SEEK_SET), far + 4);
	CHECK_KEEPS(read(fd, buf, 16), 4);
	CHECK_OK(memcmp(buf, "away", 4));
	iov.iov_base = "vector";
	iov.iov_len = 6;
	CHECK_KEEPS(pwritev(fd, &iov, 1, far + 100), 6);
	CHECK_KEEPS(pwritev2(fd, &iov, 1, far + 200, 0), 6);
	iov.iov_base = buf;
	CHECK_KEEPS(preadv(fd, &iov, 1, far + 100), 6);
	CHECK_OK(memcmp(buf, "vector", 6));
	memset(buf, 0, sizeof(buf));
	CHECK_KEEPS(preadv2(fd, &iov, 1, far + 200, 0), 6);
	CHECK_OK(memcmp(buf, "vector", 6));
	CHECK_KEEPS(pread64(fd, buf, 4, far + 4), 4);
	CHECK_KEEPS(pwrite64(fd, "x", 1, far + 4), 1);
	CHECK_KEEPS(preadv64(fd, &iov, 1, far + 100), 6);
	iov.iov_base = "again ";
	CHECK_KEEPS(pwritev64(fd, &iov, 1, far + 100), 6);
	CHECK_ERR(pread(fd, buf, 1, -1), EINVAL);
	CHECK_OK(close(fd));
	return arg;
}

int main(void)
{
	pthread_t t[8];

	body(NULL);
	for (intptr_t i = 0; i < 8; i++)
		t[i] = start(body, (void *)i);
	for (int i = 0; i < 8; i++)
		finish(t[i]);
	return success();
}
