/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FRAMES_H
#define INSPECT_FRAMES_H

/* scripts/inspect/frames.h - frames for people (frames.c). */

#include "unwind.h"

void print_stack(const struct unwinder *u, const struct stack *stack);

#endif
