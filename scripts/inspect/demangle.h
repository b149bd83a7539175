/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_DEMANGLE_H
#define INSPECT_DEMANGLE_H

/* scripts/inspect/demangle.h - names of C++, by the C++ library (its ABI), which has no header for C. */

#include <stddef.h>

char *__cxa_demangle(const char *name, char *room, size_t *size, int *ret_status);

#endif
