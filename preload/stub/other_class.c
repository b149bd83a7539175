/* SPDX-License-Identifier: MIT */
/*
 * preload/stub/other_class.c - a library that does nothing. 32-bit programs find it in the place of the stub, so that
 * their loader does not report that the stub is missing.
 */
extern const char fiberize_preload_does_nothing[];
const char fiberize_preload_does_nothing[] = "fiberize is for 64-bit programs";
