/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/lost_reads.c - a library to preload into a tool that looks at a process: as if many
 * threads had ended while their records were read.
 *
 * Of the reads of a record of LOST_READS_SIZE bytes (in the environment), each third finds zeros, which
 * is what memory has in it that was given back, and each fifth finds no memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
			 const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	static unsigned long records;
	const char *word = getenv("LOST_READS_SIZE");
	const size_t size = word ? strtoul(word, NULL, 10) : 0;
	size_t before = 0;
	ssize_t n = syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);

	for (unsigned long i = 0; i < there_count && n > 0; i++) {
		if (there[i].iov_len == size && before + size <= (size_t)n) {
			records++;
			if (records % 3 == 0)
				memset(here[i].iov_base, 0, size);
			if (records % 5 == 0)
				n = (ssize_t)before;
		}
		before += there[i].iov_len;
	}
	if (n == 0 && before) {
		errno = EFAULT;
		return -1;
	}
	return n;
}
