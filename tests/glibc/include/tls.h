/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/tls.h - nothing: stackguard-macros.h reads the guard by itself.
 */
