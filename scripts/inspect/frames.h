/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FRAMES_H
#define INSPECT_FRAMES_H

/* scripts/inspect/frames.h - prints stack frames (frames.c). */

#include <stddef.h>
#include <stdio.h>

#include "unwind.h"

/* Turns a C++ symbol into a name for people.  The C++ library has it, but no header for C declares it. */
char *__cxa_demangle(const char *name, char *room, size_t *size, int *ret_status);

/*
 * The C++ name that this symbol stands for, to be freed; NULL if it is the symbol of no C++ name.  A name in C
 * that is also the code of a type ("f", "rw") stays as it is.
 */
char *demangled(const char *name);

void print_stack(FILE *out, const struct unwinder *u, const struct stack *stack);

#endif
