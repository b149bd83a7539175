/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_THREAD_END_H
#define FZ_PRELOAD_LIBC_THREAD_END_H

/*
 * preload/libc/thread_end.h - what libc gives back where a thread ends: malloc's cache of the
 * thread and its share of an arena, storage for thread-specific data, the resolver's state, texts
 * of errors. libc does this only on the way out of a kernel thread, which the end of a fiber is
 * not, so the library calls libc's own functions for it.
 *
 * These functions have no names. They are found in libc's function that calls start routines: on the
 * way out that function calls three functions one after the other, and the first of the three,
 * __call_tls_dtors, has a name. An experiment in a new thread then shows that the other two change
 * little: some flags, such as that malloc has no cache any more. So after they are called, libc's
 * thread-local variables are set back to what they were in that new thread. The experiment does not
 * call malloc, which would reserve 64 MB for an arena.
 */

/*
 * The first part of the experiment, which takes the loader's locks. Called by the thread that makes the first
 * other thread, before it makes that thread: the caller may hold these locks, so the new thread must not
 * wait for them.
 */
void fz_thread_end_look(void);

/*
 * The second part of the experiment. Called by a new thread; after_start: the address to which its
 * start routine returns. If libc ends a thread in another way than expected, fz_thread_end_release()
 * does nothing.
 */
void fz_thread_end_learn(const void *after_start);

/*
 * Give back what libc keeps for the calling fiber, whose life has ended; the next life may use
 * libc as a new thread does. In user code: takes locks of malloc's.
 */
void fz_thread_end_release(void);

#endif
