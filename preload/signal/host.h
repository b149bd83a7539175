/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_HOST_H
#define FZ_PRELOAD_SIGNAL_HOST_H

/*
 * preload/signal/host.h - what preload/signal/signal.c does for the runtime (runtime/base/host.h).
 */

void fz_host_signal_handler(int sig, void *info, void *ucontext);
void fz_host_call_handler(int sig, void *info);

#endif
