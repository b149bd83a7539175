/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_LOADER_H
#define FZ_PRELOAD_LIBC_LOADER_H

/*
 * preload/libc/loader.h - what the library asks the dynamic loader. fz_loader_module(),
 * fz_loader_describe() and fz_loader_static_tls() take no lock of the loader.
 */

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Look up the loader's symbols. Once, from the constructor. */
void fz_loader_init(void);

/* The module that contains this address; NULL if there is none, or with a glibc before 2.35. */
struct link_map *fz_loader_module(const void *address);

enum fz_module {
	FZ_MODULE_UNKNOWN,	/* no module, or it is being loaded or unloaded, or glibc is older than 2.35 */
	FZ_MODULE_WALKED,	/* its program headers are not at the usual place: use dl_iterate_phdr */
	FZ_MODULE_DESCRIBED,
};

/*
 * A function of libc itself, even if another library defines the name first; NULL if there is none. By
 * the main thread. Not from the constructor: dlopen() would run libc's own constructor, which comes
 * after ours, too early.
 */
void *fz_loader_in_libc(const char *name);

/* Describe the module that contains this address in *ret, as dl_iterate_phdr would. */
enum fz_module fz_loader_describe(const void *address, struct dl_phdr_info *ret);

/*
 * The calling thread's TLS block of a module whose block is at a fixed distance from the thread
 * pointer; NULL for any other module.
 */
void *fz_loader_static_tls(const struct link_map *module);

/*
 * Make the stacks of fibers executable if a loaded module needs that, as libc does for the stacks
 * of its threads. To be called when modules may have been loaded. Waits for the lock of
 * preload/libc/modules.h.
 */
void fz_loader_check_stacks(void);

/* Does this module need executable stacks? For dl_iterate_phdr. */
int fz_loader_needs_executable_stacks(struct dl_phdr_info *info, size_t size, void *unused);

#endif
