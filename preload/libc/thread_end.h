/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_THREAD_END_H
#define FZ_PRELOAD_LIBC_THREAD_END_H

/*
 * preload/libc/thread_end.h - what libc gives back where a thread ends: malloc's cache of the
 * thread and its share of an arena, storage for thread-specific data, the resolver's state, texts
 * of errors. libc does this only on the way out of a kernel thread, which the end of a fiber is
 * not, so the library calls libc's own functions for it.
 *
 * They have no names. They are found in the function that calls start routines: on the way out
 * it calls three functions one behind the other, and the first of them, __call_tls_dtors, has a
 * name. An experiment then shows that the other two change little of a new thread: some flags, such
 * as that malloc has no cache any more. So libc's thread-local variables are set back afterwards to
 * what they were in that new thread. No malloc in the experiment: it would reserve 64 MB for an
 * arena.
 */

/*
 * Call this in the thread that makes the first other thread, before that: it does what needs the loader's
 * locks, which the caller may hold, so that the new thread would wait for them.
 */
void fz_thread_end_look(void);

/*
 * By a new thread, with the address to which its start routine returns. If libc's end of a thread
 * looks otherwise, fz_thread_end_release() does nothing from then on.
 */
void fz_thread_end_learn(const void *after_start);

/*
 * Give back what libc keeps for the calling fiber, whose life has ended; the next life may use
 * libc as a new thread does. In user code: takes locks of malloc's.
 */
void fz_thread_end_release(void);

#endif
