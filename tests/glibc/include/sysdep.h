/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/sysdep.h - system calls as glibc's tests make them.
 */
#include <sys/syscall.h>
