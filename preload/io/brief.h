/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_IO_BRIEF_H
#define FZ_PRELOAD_IO_BRIEF_H

/*
 * preload/io/brief.h - interposers of calls that usually return at once: the real call, marked for
 * the monitor as brief (runtime/sched/announce.h).
 */

#include "preload/gate.h"
#include "preload/real_call.h"

/*
 * Define the interposer of a brief call that returns -1 and sets errno on failure, and that needs nothing else:
 *
 *	FZ_EXPORT_BRIEF(int, access, (const char *path, int mode), path, mode)
 *
 * For a function that returns an error number see posix_fallocate() in preload/io/file.c.
 *
 * A file server answers EINTR if the kernel thread is interrupted for whatever reason. If no handler of the fiber
 * has run, the call is made again (runtime/io/real_call.h).  After a handler it is not made again, even with
 * SA_RESTART: natively, too, only the kernel restarts such a call.
 */
#define FZ_EXPORT_BRIEF(type, name, parameters, ...)                                \
	FZ_EXPORT type name parameters                                              \
	{                                                                           \
		struct fz_blocked call = fz_block(fz_enter(FZ_SYM_##name),          \
						  FZ_CALL_BRIEF);                   \
                                                                                    \
		return (type)fz_block_end(&call,                                    \
					  FZ_REPEAT(&call, fz_real.name(__VA_ARGS__))); \
	}

#endif
