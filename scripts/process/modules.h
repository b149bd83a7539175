/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_MODULES_H
#define PROCESS_MODULES_H

/*
 * scripts/process/modules.h - the ELF objects of a process or a core file, for libdwfl: each by the file that
 * is mapped, never by another file of this name.
 *
 * The name in /proc/PID/maps may be that of another file here: the process is in another mount namespace (a
 * container), or the file was replaced since (an upgrade).  So an object of a live process is, in this order:
 * the mapped file itself (/proc/PID/map_files, which needs CAP_CHECKPOINT_RESTORE); the file of that name, as
 * the process sees it or as we see it, if its build id, or its device and inode, are those of the mapped file;
 * what is in memory of it.  Memory suffices to unwind, but has only exported names, and no source lines.
 */

#include <elfutils/libdwfl.h>
#include <stdio.h>

#include "source.h"

/*
 * Open libdwfl with the objects of s, which must stay valid.  Returns NULL, or why that is impossible.  A tool looks
 * at one process only.
 */
const char *modules_open(const struct source *s, Dwfl **ret_dwfl);

/* Report the objects once more, after dwfl_report_begin_add(): some may be new.  Returns NULL, or why that is impossible. */
const char *modules_report(Dwfl *dwfl);

/* Print a line that begins with prefix for each object whose file was needed and could not be had. */
void modules_say_missing(Dwfl *dwfl, FILE *out, const char *prefix);

#endif
