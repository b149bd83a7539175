/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_PROPER_H
#define FZ_PRELOAD_STUB_PROPER_H

/*
 * preload/stub/proper.h - libfiberize.so, the library proper: where it is; whether it is complete and was built
 * with this stub; and whether this libc can load it. The loader ends the program if a preloaded library needs a
 * newer libc or is truncated, so the stub checks this before the loader sees the library.
 */

#include <stddef.h>

/*
 * Find the library in the directory of the stub or in one of the three above, and put its path into the buffer.
 * Returns why it cannot be used, or NULL.
 */
const char *fz_proper_find(const char *own_path, char *path, size_t size);

#endif
