/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_TLS_H
#define FZ_PRELOAD_THREAD_TLS_H

/*
 * preload/thread/tls.h - thread-specific data and thread-local variables, between one life of a
 * fiber and the next; and the other functions of libc that struct fz_host (runtime/base/host.h)
 * needs.
 */

#include "preload/real.h"

/* Called once, by the constructor. Returns false, with the reason in *ret_why, if there can be no fibers. */
bool fz_tls_init(const char **ret_why);

void fz_host_run_destructors(void);
void fz_host_reset_thread_state(void);
void fz_host_run_thread(void *(*start)(void *), void *arg, void **result);
uint64_t fz_host_threads_begin(void);
void fz_host_threads_end(uint64_t mask);
int fz_host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg,
			  unsigned long *ret_handle);

#endif
