/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_SERVICE_H
#define LAUNCH_SERVICE_H

/*
 * scripts/launch/service.h - "fiberize enable", "disable" and "status" of a service of systemd;
 * scripts/service/ does the work.
 */

#include <stdbool.h>

#include "settings.h"

/* Is this a command for a service? words begins with the command's name. */
bool service_is_meant(char **words);

/* Run the command words[0] for a service.  Options that are set in s are written into the drop-in. */
_Noreturn void service(struct settings *s, char **words);

#endif
