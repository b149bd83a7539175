/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_DEBUGINFO_H
#define PROCESS_DEBUGINFO_H

/*
 * scripts/process/debuginfo.h - finds the debug information of a stripped ELF object, for libdwfl.
 *
 * The process, or who has made the core file, chose the object's path: it may be a FIFO here, or another program's
 * file.  dwfl_standard_find_debuginfo() opens PATH and PATH.debug whatever they are, so it searches by build id only.
 */

#include <elfutils/libdwfl.h>

/* Dwfl_Callbacks.find_debuginfo: by build id, else the regular file that .gnu_debuglink names, if it has its CRC. */
int debuginfo_find(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file,
		   const char *link, GElf_Word crc, char **ret_file);

#endif
