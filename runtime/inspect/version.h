/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_INSPECT_VERSION_H
#define FZ_RUNTIME_INSPECT_VERSION_H

/*
 * runtime/inspect/version.h - the version of the library, which is VERSION in the Makefile.
 *
 * Only one object file contains it, so that libraries which differ in the version alone differ in
 * nothing else.  It has room for 31 characters.  It is not const, because a core file contains only
 * data that the process may write.
 */

extern char fz_version[32];

#endif
