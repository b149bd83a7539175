/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_CONFIG_H
#define FZ_PRELOAD_CONFIG_H

/*
 * preload/config.h - the options of runtime/base/options.def, from the environment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fz_config {
#define FZ_TYPE_int uint64_t
#define FZ_TYPE_bool uint64_t
#define FZ_TYPE_size uint64_t
#define FZ_TYPE_choice uint64_t
#define FZ_TYPE_set uint64_t
#define FZ_WORDS_OPTION(name, env, type, words, help) FZ_TYPE_##type name;
#define FZ_OPTION(name, env, type, default_, min, max, help) FZ_TYPE_##type name;
#include "runtime/base/options.def"
#undef FZ_OPTION
};

extern struct fz_config fz_config __attribute__((visibility("hidden")));

/*
 * Fill fz_config from an environment block, which may be NULL.  A value that does
 * not parse, or a FIBERIZE_ name that does not exist, is reported on standard
 * error, once, and ignored.
 */
void fz_config_read(char *const *envp);

/* The value of a variable in such a block, or NULL: getenv(), before libc can. */
const char *fz_variable(char *const *envp, const char *name);

#endif
