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

/*
 * What $LIB stands for, for the loader of this machine's glibc, if the library's directory has a link at
 * $LIB/NAME-OF-THE-LIBRARY that leads to the library; otherwise NULL.
 */
const char *installed_loader_directory(const char *library);

/*
 * The name by which LD_PRELOAD names the library: DIRECTORY/${LIB}/NAME if there is such a link, otherwise the library's
 * path. Each loader finds by $LIB the file that is for its programs, or none: the one of musl does not expand $LIB, and
 * ignores a file that is missing, but ends a program if it lacks a function of glibc that the library needs. make expands
 * variables in variables of the environment: of the braces it leaves DIRECTORY//NAME, the library, but of $LIB without
 * them DIRECTORY/IB/NAME.
 */
const char *installed_preload_name(const char *library);

#endif
