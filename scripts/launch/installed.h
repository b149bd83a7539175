/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_INSTALLED_H
#define LAUNCH_INSTALLED_H

/*
 * scripts/launch/installed.h - finds the launcher's parts, relative to the launcher's own
 * directory: installed (../lib/fiberize, ../libexec/fiberize) or as make leaves them. The
 * returned texts live as long as the process.
 */

#include "scripts/elf/object.h"

/* The path of the launcher's own file. */
const char *installed_self(void);

/* The directory of the scripts and tools of "fiberize bench". */
const char *installed_libexec(void);

/*
 * Open the library to be preloaded: named, or, if named is NULL, the launcher's own. Ends the
 * process with CODE_LIBRARY if the file cannot be preloaded.
 */
struct object *installed_library(const char *named);

#endif
