/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_KUBERNETES_H
#define LAUNCH_KUBERNETES_H

/*
 * scripts/launch/kubernetes.h - "fiberize kubernetes"; scripts/kubernetes/kubernetes.sh does the work.
 */

#include "settings.h"

/* Do it: words are those behind the command.  There is no place for options that are set in s. */
_Noreturn void kubernetes(const struct settings *s, char **words);

#endif
