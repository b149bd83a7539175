/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_QUEUED_H
#define FZ_RUNTIME_IO_QUEUED_H

/*
 * runtime/io/queued.h - requests that are queued on a processor's ring, and that the kernel has not taken yet.  The kernel
 * looks up the descriptor of a request only when it takes the request.  So before a descriptor is closed, the closing thread
 * waits until the kernel has taken the requests for it: otherwise they would find no file there, or another file.
 */

#include "runtime/base/base.h"

struct fz_fiber;
struct fz_processor;

/*
 * Remember that the request at `index` of p's ring is for fd.  By p's owner.  Returns true if the request must be submitted
 * at once, because it cannot be remembered: another processor has queued one for fd, too, or fd is beyond the table.
 */
bool fz_queued_note(const struct fz_processor *p, int fd, unsigned index);

/*
 * Before fd is closed or replaced: wait until the kernel has taken the requests that are queued for it, at most a second.
 * Any thread, outside the runtime.
 */
void fz_queued_await(struct fz_fiber *self, int fd);

#endif
