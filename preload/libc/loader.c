/* SPDX-License-Identifier: MIT */
#include "preload/libc/loader.h"

#include <dlfcn.h>
#include <stdint.h>

#include "arch/arch.h"

/*
 * glibc 2.35's struct dl_find_object, declared here for older headers; the members after
 * link_map differ by CPU.
 */
struct found_object {
	unsigned long long flags;
	void *map_start, *map_end;
	struct link_map *link_map;
	void *rest[12];
};

static int (*find_object)(void *address, struct found_object *ret);

/*
 * libc's description, for debuggers, of where a link map holds the offset of its TLS: bits of
 * an element, number of elements, offset in bytes. NULL: not usable.
 */
static const uint32_t *tls_offset;

void fz_loader_init(void)
{
	find_object = (int (*)(void *, struct found_object *))dlsym(RTLD_DEFAULT,
								    "_dl_find_object");
	tls_offset = dlsym(RTLD_DEFAULT, "_thread_db_link_map_l_tls_offset");
	if (tls_offset && (tls_offset[0] != 8 * sizeof(intptr_t) || tls_offset[1] != 1))
		tls_offset = NULL;
}

struct link_map *fz_loader_module(const void *address)
{
	struct found_object object;

	if (!find_object || find_object((void *)(uintptr_t)address, &object) != 0)
		return NULL;
	return object.link_map;
}

void *fz_loader_static_tls(const struct link_map *module)
{
	intptr_t offset;

	if (!module || !tls_offset)
		return NULL;
	offset = *(const intptr_t *)(const void *)((const char *)module + tls_offset[2]);
	/*
	 * The module has no TLS, or none at a fixed offset: 0 and -1 on x86-64, -1 and -2
	 * elsewhere.
	 */
	if (offset <= 0)
		return NULL;
	return (char *)fz_tcb_get() + FZ_TLS_DIRECTION * offset;
}
