/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_OBJECTS_H
#define INSPECT_OBJECTS_H

/*
 * scripts/inspect/objects.h - finds names of variables in a process, by libdwfl.
 */

#include "scripts/process/target.h"

/*
 * The name of the variable that contains this address, with "+OFFSET" if the address is not its first
 * byte. NULL if there is no such variable, as on the heap or on a stack.  Valid until the tool ends.
 */
const char *object_name(const struct target *t, uint64_t address);

#endif
