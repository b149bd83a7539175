/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FRAMES_H
#define INSPECT_FRAMES_H

/* scripts/inspect/frames.h - prints stack frames (frames.c). */

#include <stddef.h>
#include <stdio.h>

#include "unwind.h"

/* Turns a C++ symbol into a name for people.  The C++ library has it, but no header for C declares it. */
char *__cxa_demangle(const char *name, char *room, size_t *size, int *ret_status);

void print_stack(FILE *out, const struct unwinder *u, const struct stack *stack);

#endif
