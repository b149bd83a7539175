/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/libc-symbols.h - what glibc's build includes before each file,
 * as far as its tests use it.
 */
#ifndef FZ_GLIBC_LIBC_SYMBOLS_H
#define FZ_GLIBC_LIBC_SYMBOLS_H

#define IS_IN(module) 0
#define attribute_hidden
#define libc_hidden_proto(name, ...)
#define libc_hidden_def(name)
#define TIMEOUTFACTOR 1

#include <limits.h>
#ifndef __cplusplus
#include <libc-diag.h>
#endif

#endif
