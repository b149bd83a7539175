/* SPDX-License-Identifier: MIT */
#ifndef LAUNCH_USAGE_H
#define LAUNCH_USAGE_H

/*
 * scripts/launch/usage.h - what --help prints.
 */

#include <stdio.h>

#include "runtime/base/options.h"

void usage_run(FILE *out);
void usage_check(FILE *out);
void usage_bench(FILE *out);

/* The name of an option as its flag: "--stack-size" for stack_size. Valid until the next call. */
const char *usage_flag(const char *name);

/* If word is --help or --version (or -h, -V), print what it asks for and end the process. */
void usage_if_wanted(const char *word, void (*usage)(FILE *out));

#endif
