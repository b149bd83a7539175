/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_CPUS_H
#define FZ_RUNTIME_BASE_CPUS_H

/*
 * runtime/base/cpus.h - how many CPUs the process may use: the affinity mask, and the quotas of CPU
 * time of its control groups and of all groups above them that are visible (cpu.max, and
 * cpu.cfs_quota_us of version 1).
 */

#include <stdbool.h>
#include <stdint.h>

/* On how many CPUs may the calling thread run?  0 if the kernel does not tell.  Any context. */
uint32_t fz_cpus_allowed(void);

/*
 * Find the quotas and keep their files open; `raise` moves each descriptor to a high number.  Before the
 * second thread.  If there are none, or /proc or /sys cannot be read, there is no quota.
 */
void fz_cpus_find_quotas(int (*raise)(int fd));

/*
 * Returns the lowest quota, in CPUs, rounded up; UINT32_MAX if there is none.  By one thread at a time.
 * It does not notice that the process has been moved to another group.
 */
uint32_t fz_cpus_quota(void);

/*
 * The descriptors of these files.  fz_cpus_fd() returns the i-th, or -1.  If one of them is fd, fz_cpus_vacate_fd() moves it
 * by `elsewhere`, because the program wants fd; returns 0 or -errno.  fz_cpus_close() closes all by `close`.
 */
uint32_t fz_cpus_fd_count(void);
int fz_cpus_fd(uint32_t i);
int fz_cpus_vacate_fd(int fd, int (*elsewhere)(int fd));
void fz_cpus_close(void (*close)(int fd));

#endif
