/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FRAMES_H
#define INSPECT_FRAMES_H

/* scripts/inspect/frames.h - frames for people (frames.c). */

#include <stddef.h>
#include <stdio.h>

#include "unwind.h"

/* Names of C++.  Of the C++ library (its ABI), which has no header for C. */
char *__cxa_demangle(const char *name, char *room, size_t *size, int *ret_status);

void print_stack(FILE *out, const struct unwinder *u, const struct stack *stack);

#endif
