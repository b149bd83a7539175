/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_INSTALLED_H
#define LAUNCH_INSTALLED_H

/*
 * scripts/launch/installed.h - where the launcher's parts are: below the directory that it is
 * itself in, installed (../lib/fiberize, ../libexec/fiberize) or as make leaves them.
 * The texts are the process's for good.
 */

#include "scripts/elf/object.h"

/* The launcher's own file. */
const char *installed_self(void);

/* The directory of what "fiberize bench" is made of. */
const char *installed_libexec(void);

/*
 * The library to be preloaded: named, or, if that is NULL, the one that belongs to the
 * launcher.  What cannot be preloaded ends the process with CODE_LIBRARY.
 */
struct object *installed_library(const char *named);

#endif
