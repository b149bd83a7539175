/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_TLS_H
#define FZ_PRELOAD_THREAD_TLS_H

/*
 * preload/thread/tls.h - thread-specific data and thread-local variables at the end of
 * one life of a fiber and the start of the next; and the other functions that
 * struct fz_host (runtime/base/host.h) wants of libc.
 */

#include "preload/real.h"

/* Once, at start-up; dormant if it returns false, with the reason. */
bool fz_tls_init(const char **ret_why);

void fz_host_run_destructors(void);
void fz_host_reset_thread_state(void);
void fz_host_run_thread(void *(*start)(void *), void *arg, void **result);
int fz_host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg);

#endif
