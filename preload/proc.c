/* SPDX-License-Identifier: MIT */
#include "preload/proc.h"

#include <fcntl.h>
#include <string.h>

#include "runtime/base/sys.h"

char *fz_proc_read(const char *path, const char *label, char *text, size_t size)
{
	long fd = fz_syscall4(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
	long n = fd < 0 ? 0 : fz_syscall3(__NR_read, fd, (long)text, (long)size - 1);
	char *at;

	text[n < 0 ? 0 : n] = '\0';
	if (fd >= 0)
		fz_syscall1(__NR_close, fd);
	at = strstr(text, label);
	return at ? at + strlen(label) : NULL;
}

void fz_proc_link(const char *path, char *text, size_t size)
{
	long n = fz_syscall4(__NR_readlinkat, AT_FDCWD, (long)path, (long)text, (long)size - 1);

	text[n < 0 ? 0 : n] = '\0';
}
