/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_SERVICE_H
#define LAUNCH_SERVICE_H

/*
 * scripts/launch/service.h - "fiberize enable", "disable" and "status" of a service of systemd;
 * scripts/service/ does the work.
 */

#include <stdbool.h>

#include "settings.h"

/* Does the command line, from the name of a command on, speak of a service? */
bool service_is_meant(char **words);

/* Do it: words[0] is the command.  Options that are set in s go into the drop-in. */
_Noreturn void service(struct settings *s, char **words);

#endif
