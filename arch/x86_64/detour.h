/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_X86_64_DETOUR_H
#define FZ_ARCH_X86_64_DETOUR_H

/*
 * arch/x86_64/detour.h - how big things are, for C and assembly.
 */

/* A page of the largest kind that this CPU's kernels use. */
#define FZ_DETOUR_PAGE 4096

/* Trampolines: how many there is room for, and bytes for one. */
#define FZ_DETOUR_SLOTS 64
#define FZ_DETOUR_ROOM 64

/* Bytes that one may overwrite of a function. */
#define FZ_DETOUR_JUMP 5

#endif
