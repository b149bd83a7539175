/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/shlib-compat.h - references to old versions of a symbol.
 */
#ifndef FZ_GLIBC_SHLIB_COMPAT_H
#define FZ_GLIBC_SHLIB_COMPAT_H

#define TEST_COMPAT(library, introduced, obsoleted) 0
#define SHLIB_COMPAT(library, introduced, obsoleted) 0
#define compat_symbol_reference(library, local, symbol, version)

#endif
