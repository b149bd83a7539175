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
 * The interposer of a brief call that answers -1 and errno on failure and needs nothing else; one that returns an error
 * number: as posix_fallocate() in preload/io/file.c:
 *
 *	FZ_EXPORT_BRIEF(int, access, (const char *path, int mode), path, mode)
 *
 * A file server answers EINTR if the kernel thread is interrupted for whatever reason: then the
 * call is made again (runtime/io/real_call.h).  After a handler it is not: no such call is restarted,
 * other than by the kernel.
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
