/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_HOST_H
#define FZ_PRELOAD_STUB_HOST_H

/*
 * preload/stub/host.h - what kind of process this is. All symbols of libc that are used here are weak,
 * so that the stub can be loaded with any libc.
 */

#include <stdbool.h>

/* The start of libfiberize.so; NULL if it is not loaded (preload/init.c). */
extern void fiberize_start(int argc, char **argv, char **envp) __attribute__((weak));

/*
 * Is the process's loader glibc's? Only then does a constructor get arguments, and only then may the
 * functions below be called.
 */
bool fz_stub_on_glibc(void);

/* Does the program have AddressSanitizer, ThreadSanitizer or MemorySanitizer? */
bool fz_stub_sanitized(void);

/*
 * Move this library to the end of the loader's list of objects: AddressSanitizer ends a program in
 * which another library is in front of its own. No other order depends on that list.
 */
void fz_stub_step_back(void);

/* The minor version of glibc, such as 36 for glibc 2.36; 0 if it cannot be told. */
unsigned fz_stub_libc_minor(void);

/* getauxval(3) */
unsigned long fz_stub_auxiliary(unsigned long type);

/* The file that this library was loaded from, as the loader knows it; NULL if it is not found. */
const char *fz_stub_own_path(void);

/* The value of a variable; NULL if it is not set. */
const char *fz_stub_variable(char **envp, const char *name);

/* Write a line to standard error if FIBERIZE_VERBOSE is 1. */
void fz_stub_say(char **envp, const char *name, const char *what);

#endif
