/* SPDX-License-Identifier: MIT */
/*
 * preload/stub/other_class.c - the library that 32-bit programs find in the place of the stub, so that their loader has
 * nothing to report: it does nothing.
 */
extern const char fiberize_preload_does_nothing[];
const char fiberize_preload_does_nothing[] = "fiberize is for 64-bit programs";
