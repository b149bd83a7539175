/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_PROPER_H
#define FZ_PRELOAD_STUB_PROPER_H

/*
 * preload/stub/proper.h - libfiberize.so, the library proper: where it is, and whether it is the one that was built
 * with this stub, whole, and one that this libc can load. A loader ends the program if a library that is preloaded
 * needs another libc, or is cut off, so all of this is known before the loader sees it.
 */

#include <stddef.h>

/*
 * Find the library in the directory of the stub or in one of the three above, and put its path into the buffer.
 * Returns why it cannot be used, or NULL.
 */
const char *fz_proper_find(const char *own_path, char *path, size_t size);

#endif
