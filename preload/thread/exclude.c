/* SPDX-License-Identifier: MIT */
#include "preload/thread/exclude.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "preload/gate.h"
#include "preload/libc/loader.h"
#include "preload/process/fork_gate.h"
#include "runtime/base/die.h"
#include "runtime/base/options.h"
#include "runtime/base/pattern.h"
#include "runtime/fiber/fiber.h"
#include "runtime/fiber/wire.h"

/*
 * Libraries whose threads wait for each other by spinning and by futexes without libc, and expect
 * one CPU each.
 */
static const char built_in[] =
	"@libgomp.so*,@libomp.so*,@libiomp5.so*,"	/* OpenMP: GCC's, LLVM's, Intel's */
	"@libtbb.so*,"					/* oneTBB */
	"@libopenblas*,@libscipy_openblas*,@libblis*,@libmkl_*";

/* A copy, because programs write over their environment (setproctitle). */
static char patterns[FZ_OPTION_MAX_native_threads + 1];

void fz_exclude_init(const char *list)
{
	if (list)
		strcpy(patterns, list);
}

void fz_exclude_by_name(struct fz_fiber *self)
{
	/* The name of a native thread is with the kernel alone. */
	if (FZ_LIKELY(!*patterns) || self->kind != FZ_KIND_FIBER ||
	    !fz_pattern_in_list(patterns, false, self->thread.name))
		return;
	fz_fiber_wire_for(self, "a name in --native-threads");
	/* Until now the kernel thread has the name of a carrier. */
	fz_real.prctl(PR_SET_NAME, self->thread.name, 0, 0, 0);
}

static const char *base_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

static bool is_listed(const char *base)
{
	return fz_pattern_in_list(built_in, true, base) || fz_pattern_in_list(patterns, true, base);
}

/* Go's linker writes its build id into an ELF note of its own. */
static bool is_go(const struct dl_phdr_info *info)
{
	static const char owner[4] = "Go";

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const char *p = (const char *)(info->dlpi_addr + ph->p_vaddr);
		const char *end = p + ph->p_memsz;

		if (ph->p_type != PT_NOTE)
			continue;
		while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)p;
			size_t name = (note->n_namesz + 3u) & ~(size_t)3;
			size_t desc = (note->n_descsz + 3u) & ~(size_t)3;

			if ((size_t)(end - p) - sizeof(*note) < name + desc)
				break;
			if (note->n_namesz == sizeof(owner) &&
			    memcmp(note + 1, owner, sizeof(owner)) == 0)
				return true;
			p += sizeof(*note) + name + desc;
		}
	}
	return false;
}

struct look {
	uintptr_t address;
	bool excluded;
	char name[64];			/* of the module; a copy, because it may be unloaded */
};

static int look_at_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct look *look = arg;
	const char *name;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || look->address < start ||
		    look->address >= start + ph->p_memsz)
			continue;
		/* The program itself has an empty name here. */
		name = *info->dlpi_name ? info->dlpi_name : program_invocation_name;
		look->excluded = is_listed(base_of(name)) || is_go(info);
		strncpy(look->name, base_of(name), sizeof(look->name) - 1);
		return 1;
	}
	return 0;
}

/*
 * A cache of answers by call site. Bit 0 of a word is the answer; the other bits are a hash of the call
 * site, the link map and the address of the module's name. The last two tell an unloaded module from
 * another one that is at its address now.
 */
static _Atomic uintptr_t known[64];

bool fz_excluded_caller(const void *caller)
{
	struct look look = { .address = (uintptr_t)caller };
	struct dl_phdr_info info;
	_Atomic uintptr_t *slot = &known[look.address >> 2 & 63];
	/*
	 * This takes no lock of the loader: a constructor may make the thread while the loader loads the
	 * library that the caller is in.
	 */
	const struct link_map *module = fz_loader_module(caller);
	uintptr_t hash = 0, seen;

	if (module) {
		hash = (look.address * 31 ^ (uintptr_t)module * 17 ^
			(uintptr_t)module->l_name) * 2;
		/* relaxed: the word refers to no other memory. */
		seen = atomic_load_explicit(slot, memory_order_relaxed);
		if ((seen & ~(uintptr_t)1) == hash && hash)
			return seen & 1;
	}
	if (fz_loader_describe(caller, &info) == FZ_MODULE_DESCRIBED) {
		look_at_module(&info, sizeof(info), &look);
	} else {
		fz_gate_enter(FZ_GATE_LOADER);
		dl_iterate_phdr(look_at_module, &look);
		fz_gate_leave(FZ_GATE_LOADER);
	}
	atomic_store_explicit(slot, hash | look.excluded, memory_order_relaxed);
	if (look.excluded && fz_verbose)
		fz_say("threads that %s makes stay kernel threads: %s", look.name,
		       fz_pattern_in_list(patterns, true, look.name) ?
			       "a name in --native-threads" :
		       fz_pattern_in_list(built_in, true, look.name) ?
			       "they wait for each other without libc" :
			       "Go's threads wait without libc");
	return look.excluded;
}
