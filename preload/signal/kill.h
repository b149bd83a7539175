/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_KILL_H
#define FZ_PRELOAD_SIGNAL_KILL_H

/*
 * preload/signal/kill.h - sends a signal to this process, or to one of its threads by its virtual
 * tid. If the caller is the thread that handles the signal, the handler has run on return.
 */

#include <stdbool.h>
#include <sys/types.h>

struct fz_fiber;
struct fz_siginfo;

/*
 * Does the library send sig to this process in place of the kernel? Yes if the caller is a fiber
 * (self is not NULL) and sig is valid and not one of libc's own two signals.
 */
bool fz_kill_is_ours(const struct fz_fiber *self, int sig);

/*
 * Send sig to this process; only if fz_kill_is_ours(). info: the program's, or that of fz_signal_info().
 * Returns 0 or -errno.
 */
int fz_kill_own_process(struct fz_fiber *self, int sig, const struct fz_siginfo *info);

/*
 * Returns false if no thread of this process has that tid: the kernel must be asked. Otherwise
 * *ret is the result of tgkill(), with errno set. queued: the siginfo of the program's; NULL:
 * that of tgkill().
 */
bool fz_kill_by_tid(int pid, int tid, int sig, const struct fz_siginfo *queued, long *ret);

/*
 * preload/signal/kill_info.c: rt_sigqueueinfo(pid, sig, info) and rt_tgsigqueueinfo(pid, tid, sig,
 * info). They return false if the kernel must be asked, otherwise *ret and errno are set.
 */
bool fz_kill_with_info(struct fz_fiber *self, pid_t pid, int sig, const void *from, long *ret);
bool fz_kill_thread_with_info(pid_t pid, pid_t tid, int sig, const void *from, long *ret);

#endif
