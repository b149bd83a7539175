/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/stackinfo.h - stacks grow down on every machine of ours.
 */
#ifndef FZ_GLIBC_STACKINFO_H
#define FZ_GLIBC_STACKINFO_H

#include <elf.h>
#include <sys/mman.h>

#define _STACK_GROWS_DOWN 1
#define DEFAULT_STACK_PERMS (PF_R | PF_W)
#define stackinfo_get_sp() __builtin_frame_address(0)
#define stackinfo_sub_sp(ptr) \
	((uintptr_t)(ptr) - (uintptr_t)__builtin_frame_address(0))

#endif
