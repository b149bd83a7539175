/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_CONFIG_H
#define FZ_PRELOAD_CONFIG_H

/*
 * preload/config.h - the options of runtime/base/options.def, from the environment.
 */

#include "runtime/base/options.h"

/*
 * The value of each option, in the order of enum fz_option_id. Written by fz_config_read()
 * only. A text points into the environment (NULL by default), which the program may overwrite
 * once it runs.
 */
struct fz_config {
#define FZ_CONFIG_int uint64_t
#define FZ_CONFIG_bool uint64_t
#define FZ_CONFIG_size uint64_t
#define FZ_CONFIG_choice uint64_t
#define FZ_CONFIG_set uint64_t
#define FZ_CONFIG_file uint64_t
#define FZ_CONFIG_path const char *
#define FZ_CONFIG_list const char *
#define FZ_OPTION(name, variable, type, default_, min, max, help) FZ_CONFIG_##type name;
#include "runtime/base/options.def"
};

extern struct fz_config fz_config __attribute__((visibility("hidden")));

/*
 * Fill fz_config from an environment block, which may be NULL.  A value that does
 * not parse, or a FIBERIZE_ name that does not exist, is reported on standard
 * error, once, and ignored.
 */
void fz_config_read(char *const *envp);

/* getenv() on an environment block, for the time before libc has its own. NULL: not set. */
const char *fz_variable(char *const *envp, const char *name);

#endif
