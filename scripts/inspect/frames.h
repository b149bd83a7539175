/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FRAMES_H
#define INSPECT_FRAMES_H

/* scripts/inspect/frames.h - frames for people (frames.c). */

#include <stdio.h>

#include "unwind.h"

void print_stack(FILE *out, const struct unwinder *u, const struct stack *stack);

#endif
