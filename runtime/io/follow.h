/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_FOLLOW_H
#define FZ_RUNTIME_IO_FOLLOW_H

/*
 * runtime/io/follow.h - a fiber follows its peer: it moves to the processor that runs on the CPU on which
 * the packets of its connection arrive.
 *
 * The kernel does the same for threads: one that a packet wakes moves to the CPU of the packet.  A fiber stays on
 * the processor with whose ring it waits.  If its peer is a thread of the same machine on another CPU, each
 * answer interrupts that CPU: 6,000 times a second for a database with 64 local connections, where native threads
 * have 400 such interrupts.
 *
 * A fiber moves only if both processors are busy, have about as many fibers, and both have peers on other
 * CPUs, so that others move the other way.
 */

#include "runtime/sched/sched.h"

/*
 * Two of this many calls of a thread may call fz_follow_peer(), which makes a system call.  The two are consecutive,
 * because sends are counted, too: if sends and receives alternate, one of any two consecutive calls is a receive.
 */
enum { FZ_FOLLOW_EVERY = 32 };

/*
 * The calling thread is about to receive from fd, an internet socket: move the thread to the processor near its peer, if
 * that pays and if the thread's last call of fz_follow_peer() found the same descriptor and CPU.  Returns true if the
 * thread has moved.  Any thread outside the runtime; errno stays.
 */
bool fz_follow_peer(struct fz_fiber *self, int fd);

#endif
