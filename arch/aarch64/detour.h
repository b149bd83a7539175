/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_AARCH64_DETOUR_H
#define FZ_ARCH_AARCH64_DETOUR_H

/*
 * arch/aarch64/detour.h - sizes for detours, for C and assembly.
 */

/* The largest page size in bytes that kernels use on this CPU. */
#define FZ_DETOUR_PAGE 65536

/* Number of trampolines, and bytes of each. */
#define FZ_DETOUR_SLOTS 80
#define FZ_DETOUR_ROOM 64

/* Most bytes of a function that a detour overwrites. */
#define FZ_DETOUR_JUMP 4

#endif
