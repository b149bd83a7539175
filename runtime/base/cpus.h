/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_CPUS_H
#define FZ_RUNTIME_BASE_CPUS_H

/*
 * runtime/base/cpus.h - on how many CPUs the calling thread may run.
 */

#include <stdint.h>

/* 0 if the kernel does not tell.  Any thread, any context. */
uint32_t fz_cpus_allowed(void);

#endif
