/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/pthreadP.h - libc's internal constants that its tests use.
 */
#ifndef FZ_GLIBC_PTHREADP_H
#define FZ_GLIBC_PTHREADP_H

#include <pthread.h>
#include <internal-signals.h>
#include <internaltypes.h>
#include <sys/syscall.h>

#define INTERNAL_SYSCALL_CALL(name, ...) syscall(__NR_##name, __VA_ARGS__)

#endif
