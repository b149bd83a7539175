/* SPDX-License-Identifier: MIT */
#include "preload/libc/modules.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/gate.h"
#include "preload/libc/loader.h"

/*
 * libc's description, for debuggers, of a field of its own records: bits of an element, number of
 * elements, offset in bytes.
 */
struct field {
	uint32_t bits, count, offset;
};

static struct {
	int (*lock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *);	/* as the loader calls them */
	pthread_mutex_t *mutex;		/* NULL: not known */
	const _Atomic unsigned long long *loads;
	const char *globals;		/* _rtld_global, the loader's variables */
	const struct field *slots, *slot, *length, *next, *module_id, *dtv, *element, *block,
			   *counter;
} libc;

static const struct field *field(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static bool fields_are_known(void)
{
	const struct field *generation = field("_thread_db_dtv_slotinfo_gen");
	const struct field *map = field("_thread_db_dtv_slotinfo_map");

	libc.slots = field("_thread_db_rtld_global__dl_tls_dtv_slotinfo_list");
	libc.slot = field("_thread_db_dtv_slotinfo_list_slotinfo");
	libc.length = field("_thread_db_dtv_slotinfo_list_len");
	libc.next = field("_thread_db_dtv_slotinfo_list_next");
	libc.module_id = field("_thread_db_link_map_l_tls_modid");
	libc.dtv = field("_thread_db_pthread_dtvp");
	libc.element = field("_thread_db_dtv_dtv");
	libc.block = field("_thread_db_dtv_t_pointer_val");
	libc.counter = field("_thread_db_dtv_t_counter");
	return libc.slots && libc.slot && libc.length && libc.next && libc.module_id && libc.dtv &&
	       libc.element && libc.block && libc.counter && generation && map &&
	       generation->offset == offsetof(struct fz_tls_slot, generation) &&
	       map->offset == offsetof(struct fz_tls_slot, map) &&
	       libc.slot->bits == 8 * sizeof(struct fz_tls_slot);
}

struct search {
	const char *globals;
	size_t size;
};

/*
 * For dl_iterate_phdr, which holds a lock in the loader's globals while this callback runs. Directly
 * behind that lock are the lock that is looked for, and the count of loaded modules that
 * dl_iterate_phdr reports: look for these three.
 */
static int find_lock(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct search *search = arg;
	const size_t all = 2 * sizeof(pthread_mutex_t) + sizeof(info->dlpi_adds);

	(void)size;
	for (size_t at = 0; at + all <= search->size; at += sizeof(void *)) {
		pthread_mutex_t *held = (void *)(uintptr_t)(search->globals + at);
		const unsigned long long *loads = (void *)(held + 2);

		if (held->__data.__lock != 1 || held->__data.__owner != fz_self_tid() ||
		    held[1].__data.__lock || held[1].__data.__owner ||
		    held[0].__data.__kind != PTHREAD_MUTEX_RECURSIVE_NP ||
		    held[1].__data.__kind != PTHREAD_MUTEX_RECURSIVE_NP || *loads != info->dlpi_adds)
			continue;
		libc.loads = (void *)(uintptr_t)loads;
		libc.mutex = held + 1;
		break;
	}
	return 1;
}

void fz_modules_learn(void)
{
	struct search search = { .globals = NULL };
	const ElfW(Sym) *symbol;
	Dl_info info;

	/* The child of a fork has what its parent learned. */
	if (libc.mutex)
		return;
	search.globals = dlsym(RTLD_DEFAULT, "_rtld_global");
	if (!search.globals || !fz_loader_module(search.globals) ||
	    !fields_are_known() ||
	    !dladdr1(search.globals, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return;
	search.size = symbol->st_size;
	libc.globals = search.globals;
	libc.lock = (int (*)(pthread_mutex_t *))fz_loader_in_libc("pthread_mutex_lock");
	libc.unlock = (int (*)(pthread_mutex_t *))fz_loader_in_libc("pthread_mutex_unlock");
	if (libc.lock && libc.unlock)
		dl_iterate_phdr(find_lock, &search);
}

bool fz_modules_known(void)
{
	return FZ_LIKELY(libc.mutex != NULL);
}

bool fz_modules_locked(void)
{
	/* relaxed: the owner is equal to the caller's tid only if the caller has written it. */
	return libc.mutex && atomic_load_explicit((_Atomic int *)&libc.mutex->__data.__owner,
						  memory_order_relaxed) == fz_self_tid();
}

bool fz_modules_let_go(const void *m)
{
	if (FZ_LIKELY(!libc.mutex || m != libc.mutex - 1) || !fz_modules_locked() ||
	    libc.mutex->__data.__count != 1)
		return false;
	fz_modules_unlock();
	return true;
}

void fz_modules_lock(void)
{
	libc.lock(libc.mutex);
}

void fz_modules_unlock(void)
{
	libc.unlock(libc.mutex);
}

/* ---- reading the list ------------------------------------------------------ */

static size_t word_at(const char *record, const struct field *field)
{
	return *(const size_t *)(const void *)(record + field->offset);
}

unsigned long long fz_modules_loads(void)
{
	/* relaxed: a thread that has loaded a module itself sees its own change. */
	return atomic_load_explicit(libc.loads, memory_order_relaxed);
}

void fz_modules_each_slot(void (*visit)(const struct fz_tls_slot *slot, void *arg), void *arg)
{
	const char *list = (const char *)word_at(libc.globals, libc.slots);

	for (; list; list = (const char *)word_at(list, libc.next)) {
		const struct fz_tls_slot *slot = (const void *)(list + libc.slot->offset);
		const size_t length = word_at(list, libc.length);

		for (size_t i = 0; i < length; i++)
			visit(&slot[i], arg);
	}
}

/*
 * Find the block in libc's array of the calling thread's blocks. Element 0 of the array is its generation;
 * the element before that is its length.
 */
static char *dynamic_block(const struct fz_tls_slot *slot)
{
	const char *self = (const char *)fz_tcb_get() + fz_layout.handle;
	const char *blocks = (const char *)word_at(self, libc.dtv) + libc.element->offset;
	const size_t size = libc.element->bits / 8, unallocated = SIZE_MAX;
	const size_t id = word_at((const char *)slot->map, libc.module_id);
	size_t block;

	if (!id || id > word_at(blocks - size, libc.counter) ||
	    word_at(blocks, libc.counter) < slot->generation)
		return NULL;
	block = word_at(blocks + id * size, libc.block);
	return block == unallocated ? NULL : (char *)block;
}

char *fz_modules_tls_block(const struct fz_tls_slot *slot, bool *ret_fixed)
{
	char *fixed = fz_loader_static_tls(slot->map);

	*ret_fixed = fixed != NULL;
	return fixed ? fixed : dynamic_block(slot);
}

bool fz_modules_need_executable_stacks(bool *ret_all, bool *ret_walk)
{
	struct dl_phdr_info info;
	enum fz_module what;

	*ret_all = true;
	*ret_walk = false;
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		what = fz_loader_describe(map->l_ld, &info);
		*ret_all &= what != FZ_MODULE_UNKNOWN;
		*ret_walk |= what == FZ_MODULE_WALKED;
		if (what == FZ_MODULE_DESCRIBED &&
		    fz_loader_needs_executable_stacks(&info, sizeof(info), NULL))
			return true;
	}
	return false;
}
