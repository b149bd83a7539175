/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_INSPECT_VERSION_H
#define FZ_RUNTIME_INSPECT_VERSION_H

/*
 * runtime/inspect/version.h - the release that this is, as the Makefile's VERSION says.
 *
 * One object has it, so libraries of two versions differ in nothing else.  It has room for
 * 31 characters, and is not const: a core file contains what a process may write.
 */

extern char fz_version[32];

#endif
