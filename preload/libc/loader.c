/* SPDX-License-Identifier: MIT */
#include "preload/libc/loader.h"

#include <dlfcn.h>
#include <stdint.h>
#include <sys/auxv.h>

#include "arch/arch.h"
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/modules.h"
#include "preload/process/fork_gate.h"

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

enum fz_module fz_loader_describe(const void *address, struct dl_phdr_info *ret)
{
	struct found_object object;
	const ElfW(Ehdr) *header;

	if (!find_object || find_object((void *)(uintptr_t)address, &object) != 0)
		return FZ_MODULE_UNKNOWN;
	header = object.map_start;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff != sizeof(*header))
		return FZ_MODULE_WALKED;
	*ret = (struct dl_phdr_info){
		.dlpi_addr = object.link_map->l_addr,
		.dlpi_name = object.link_map->l_name,
		.dlpi_phdr = (const void *)(header + 1),
		.dlpi_phnum = header->e_phnum,
	};
	return FZ_MODULE_DESCRIBED;
}

void *fz_loader_static_tls(const struct link_map *module)
{
	intptr_t offset;

	if (!module || !tls_offset)
		return NULL;
	offset = *(const intptr_t *)(const void *)((const char *)module + tls_offset[2]);
	/*
	 * These values are no offset. 0 on x86-64, -1 elsewhere: the module has no TLS, or its block has no
	 * fixed distance yet. -1 on x86-64, -2 elsewhere: it never has a fixed distance.
	 */
	if (offset <= 0)
		return NULL;
	return (char *)fz_tcb_get() + FZ_TLS_DIRECTION * offset;
}

int fz_loader_needs_executable_stacks(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_STACK)
			return (info->dlpi_phdr[i].p_flags & PF_X) != 0;
	/*
	 * A module without PT_GNU_STACK is old and needs executable stacks; except the kernel's own
	 * module, the vdso, which does not need them.
	 */
	return (uintptr_t)info->dlpi_phdr - getauxval(AT_SYSINFO_EHDR) > sizeof(ElfW(Ehdr));
}

/* Look at all modules by dl_iterate_phdr, which may have to wait for callbacks of other threads. */
static void check_by_walking(void)
{
	bool needed;

	fz_gate_enter(FZ_GATE_LOADER);
	needed = dl_iterate_phdr(fz_loader_needs_executable_stacks, NULL) != 0;
	fz_gate_leave(FZ_GATE_LOADER);
	if (needed)
		fz_fiber_stacks_executable();
}

void fz_loader_check_stacks(void)
{
	/* relaxed: a thread that finds an older count looks once more. */
	static _Atomic unsigned long long looked_at;
	unsigned long long loads;
	bool all, walk, needed;

	if (!fz_modules_known()) {
		check_by_walking();
		return;
	}
	loads = fz_modules_loads();
	if (FZ_LIKELY(loads == atomic_load_explicit(&looked_at, memory_order_relaxed)))
		return;
	fz_gate_enter(FZ_GATE_LOADER);
	fz_modules_lock();
	needed = fz_modules_need_executable_stacks(&all, &walk);
	fz_modules_unlock();
	fz_gate_leave(FZ_GATE_LOADER);
	if (needed)
		fz_fiber_stacks_executable();
	else if (FZ_UNLIKELY(walk))
		check_by_walking();
	if (all)
		atomic_store_explicit(&looked_at, loads, memory_order_relaxed);
}

/* Does the place where dlopen looks for the file depend on the module that calls dlopen? */
static bool caller_matters(const char *file, const void *caller)
{
	const struct link_map *module;

	if (strchr(file, '/'))
		return strchr(file, '$') != NULL;
	module = fz_loader_module(caller);
	if (!module)
		return true;
	for (const ElfW(Dyn) *d = module->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_RUNPATH || d->d_tag == DT_RPATH)
			return true;
	return false;
}

/*
 * libc's dlopen finds the calling module by its return address. Where the module matters, libc's
 * function is called by a tail call, so that it returns to the program; the next new thread then
 * checks the stacks.
 */
FZ_EXPORT void *dlopen(const char *file, int mode)
{
	void *handle;

	fz_enter(FZ_SYM_dlopen);
	if (!file || !fz_runtime_runs() || caller_matters(file, __builtin_return_address(0)))
		return fz_real.dlopen(file, mode);
	handle = fz_real.dlopen(file, mode);
	if (handle)
		fz_loader_check_stacks();
	return handle;
}

void *fz_loader_in_libc(const char *name)
{
	/*
	 * Kept for a fork's child, which must not call dlopen: the fork may have come in the middle of
	 * another thread's dlopen, and the loader ends a process that loads then.
	 */
	static void *libc;

	if (!libc)
		libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return libc ? dlsym(libc, name) : NULL;
}
