/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_INSTALLED_H
#define LAUNCH_INSTALLED_H

/*
 * scripts/launch/installed.h - finds the other parts of fiberize, relative to the launcher's directory:
 * in ../lib/fiberize and ../libexec/fiberize if it is installed, or where make has put them. The
 * returned texts are never freed.
 */

#include "scripts/elf/object.h"

/* The path of the launcher's own file. */
const char *installed_self(void);

/* The directory of the scripts and tools of "fiberize bench". */
const char *installed_libexec(void);

/*
 * Open the library to be preloaded: the file named, or if named is NULL, the library that belongs to
 * this launcher. Ends the process with CODE_LIBRARY if the file cannot be preloaded.
 */
struct object *installed_library(const char *named);

#endif
