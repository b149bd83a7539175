/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_KUBERNETES_H
#define LAUNCH_KUBERNETES_H

/*
 * scripts/launch/kubernetes.h - "fiberize kubernetes"; scripts/kubernetes/kubernetes.sh does the work.
 */

#include "settings.h"

/* Run "fiberize kubernetes". words are the words after the command. Options set in s are refused. */
_Noreturn void kubernetes(const struct settings *s, char **words);

#endif
