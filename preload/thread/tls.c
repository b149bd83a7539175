/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/tls.c - pthread keys and thread-local variables. Keys stay libc's: their values are in
 * the thread control block, and so move with the fiber. The library remembers the destructors, because
 * libc would run them only when a kernel thread ends.
 */
#include "preload/thread/tls.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <locale.h>

#include "arch/arch.h"
#include "preload/gate.h"
#include "preload/libc/loader.h"
#include "preload/libc/modules.h"
#include "preload/process/fork_gate.h"

typedef void destructor(void *);

/* Indexed by key. release/acquire: a thread that sees a key sees its destructor. */
static _Atomic(destructor *) destructors[PTHREAD_KEYS_MAX];
static _Atomic unsigned keys_used;	/* highest key ever made, plus one */

static void (*call_tls_dtors)(void);

/* The load addresses of modules whose thread-local variables are not reset for a new life. */
static ElfW(Addr) kept[3];

static void note_key(pthread_key_t key, destructor *fn)
{
	unsigned used = atomic_load_explicit(&keys_used, memory_order_relaxed);

	if (key >= PTHREAD_KEYS_MAX)
		return;
	atomic_store_explicit(&destructors[key], fn, memory_order_release);
	while (key >= used &&
	       !atomic_compare_exchange_weak_explicit(&keys_used, &used, key + 1,
						      memory_order_release,
						      memory_order_relaxed))
		continue;
}

FZ_EXPORT int pthread_key_create(pthread_key_t *key, destructor *fn)
{
	int err;

	fz_enter(FZ_SYM_pthread_key_create);
	err = fz_real.pthread_key_create(key, fn);
	if (!err)
		note_key(*key, fn);
	return err;
}
FZ_EXPORT_ALIAS(__pthread_key_create, pthread_key_create);

FZ_EXPORT int pthread_key_delete(pthread_key_t key)
{
	fz_enter(FZ_SYM_pthread_key_delete);
	if (key < PTHREAD_KEYS_MAX)
		atomic_store_explicit(&destructors[key], NULL, memory_order_release);
	return fz_real.pthread_key_delete(key);
}

FZ_EXPORT int tss_create(tss_t *key, tss_dtor_t fn)
{
	int ret;

	fz_enter(FZ_SYM_tss_create);
	ret = fz_real.tss_create(key, fn);
	if (ret == thrd_success)
		note_key(*key, fn);
	return ret;
}

FZ_EXPORT void tss_delete(tss_t key)
{
	fz_enter(FZ_SYM_tss_delete);
	if (key < PTHREAD_KEYS_MAX)
		atomic_store_explicit(&destructors[key], NULL, memory_order_release);
	fz_real.tss_delete(key);
}

static bool run_key_destructors(void)
{
	unsigned used = atomic_load_explicit(&keys_used, memory_order_acquire);
	bool any = false;

	for (unsigned key = 0; key < used; key++) {
		destructor *fn = atomic_load_explicit(&destructors[key], memory_order_acquire);
		void *value = pthread_getspecific(key);

		if (!value)
			continue;
		pthread_setspecific(key, NULL);
		if (fn) {
			fn(value);
			any = true;
		}
	}
	return any;
}

void fz_host_run_destructors(void)
{
	int rounds = PTHREAD_DESTRUCTOR_ITERATIONS;

	call_tls_dtors();
	while (rounds-- > 0 && run_key_destructors())
		continue;
	/* A value that destructors set again even in the last round is dropped, as libc does. */
	for (unsigned key = 0; key < atomic_load_explicit(&keys_used, memory_order_relaxed); key++)
		if (pthread_getspecific(key))
			pthread_setspecific(key, NULL);
}

static void reset_block(char *block, const ElfW(Phdr) *ph, ElfW(Addr) base)
{
	memcpy(block, (const void *)(base + ph->p_vaddr), ph->p_filesz);
	memset(block + ph->p_filesz, 0, ph->p_memsz - ph->p_filesz);
}

static const ElfW(Phdr) *tls_of(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			return &info->dlpi_phdr[i];
	return NULL;
}

static bool is_kept(ElfW(Addr) base)
{
	bool is = false;

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		is |= base == kept[i];
	return is;
}

/*
 * The modules whose variables a new life must reset. While no library is loaded or unloaded, this
 * spares reading the list of all modules, which is long. Guarded by fz_modules_lock().
 */
static struct {
	bool valid;
	unsigned long long loads;
	size_t count;
	struct remembered {
		const struct fz_tls_slot *slot;
		struct fz_tls_slot was;
		ElfW(Addr) base;
		const ElfW(Phdr) *ph;
		intptr_t from_tcb;	/* the address of the block, relative to the TCB, in bytes */
	} modules[8];
} remembered;

static bool memory_is_right(void)
{
	if (!remembered.valid || remembered.loads != fz_modules_loads())
		return false;
	for (size_t i = 0; i < remembered.count; i++) {
		const struct remembered *m = &remembered.modules[i];

		if (m->slot->map != m->was.map || m->slot->generation != m->was.generation)
			return false;
	}
	return true;
}

static void reset_slot(const struct fz_tls_slot *slot, void *ret_walk)
{
	const size_t most = sizeof(remembered.modules) / sizeof(*remembered.modules);
	struct dl_phdr_info info;
	const ElfW(Phdr) *ph;
	enum fz_module what;
	char *block;
	bool fixed;

	if (!slot->map || is_kept(slot->map->l_addr))
		return;
	block = fz_modules_tls_block(slot, &fixed);
	what = fz_loader_describe(slot->map->l_ld, &info);
	*(bool *)ret_walk |= what == FZ_MODULE_WALKED;
	ph = what == FZ_MODULE_DESCRIBED ? tls_of(&info) : NULL;
	if (!ph || !fixed || remembered.count == most)
		remembered.valid = false;
	else
		remembered.modules[remembered.count++] = (struct remembered){
			.slot = slot,
			.was = *slot,
			.base = info.dlpi_addr,
			.ph = ph,
			.from_tcb = (intptr_t)((uintptr_t)block - fz_tcb_get()),
		};
	if (ph && block)
		reset_block(block, ph, info.dlpi_addr);
}

/* Reset what can be reset without dl_iterate_phdr(). Returns true if reset_walked() must reset a module. */
static bool reset_modules(void)
{
	bool walk = false;

	if (FZ_LIKELY(memory_is_right())) {
		for (size_t i = 0; i < remembered.count; i++) {
			const struct remembered *m = &remembered.modules[i];

			reset_block((char *)(fz_tcb_get() + (uintptr_t)m->from_tcb), m->ph, m->base);
		}
		return false;
	}
	remembered.valid = true;
	remembered.loads = fz_modules_loads();
	remembered.count = 0;
	fz_modules_each_slot(reset_slot, &walk);
	return walk;
}

/*
 * Returns the calling thread's block of a module if it is at a fixed distance from the thread pointer.
 * For a library loaded after the start, libc reports no block (dlpi_tls_data) until the thread uses it
 * by __tls_get_addr(); code that relies on the fixed distance does not.
 */
static char *static_block_of(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			return fz_loader_static_tls(fz_loader_module(
				(void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr)));
	return NULL;
}

/*
 * For dl_iterate_phdr: reset the variables of one module. Used if the loader's lock is not known, or if a
 * module's program headers must be looked for.
 */
static int reset_walked(struct dl_phdr_info *info, size_t size, void *unused)
{
	const ElfW(Phdr) *ph = tls_of(info);
	char *block = info->dlpi_tls_data;

	(void)size;
	(void)unused;
	if (!ph || is_kept(info->dlpi_addr))
		return 0;
	if (!block)
		block = static_block_of(info);
	if (block)
		reset_block(block, ph, info->dlpi_addr);
	return 0;
}

void fz_host_reset_thread_state(void)
{
	bool walk = true;

	fz_gate_enter(FZ_GATE_LOADER);
	if (fz_modules_known()) {
		fz_modules_lock();
		walk = reset_modules();
		fz_modules_unlock();
	}
	if (FZ_UNLIKELY(walk))
		dl_iterate_phdr(reset_walked, NULL);
	fz_gate_leave(FZ_GATE_LOADER);
	fz_loader_check_stacks();
	uselocale(LC_GLOBAL_LOCALE);
	errno = 0;
}

/* Addresses in modules whose variables stay as they are, and how many of the modules are found. */
struct keep {
	uintptr_t inside[sizeof(kept) / sizeof(*kept)];
	size_t found;
};

/* For dl_iterate_phdr. */
static int keep_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct keep *keep = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		for (size_t k = 0; k < sizeof(kept) / sizeof(*kept); k++) {
			if (ph->p_type != PT_LOAD ||
			    keep->inside[k] - (info->dlpi_addr + ph->p_vaddr) >= ph->p_memsz)
				continue;
			kept[k] = info->dlpi_addr;
			keep->found++;
		}
	}
	return keep->found == sizeof(kept) / sizeof(*kept);
}

bool fz_tls_init(const char **ret_why)
{
	struct keep keep = {
		.inside = {
			(uintptr_t)&fz_real,
			(uintptr_t)fz_real.read,
			/*
			 * This address is in the loader. AT_BASE is not used, since it is 0 if the
			 * loader was named on the command line.
			 */
			(uintptr_t)dlsym(RTLD_DEFAULT, "__tls_get_addr"),
		},
	};

	call_tls_dtors = (void (*)(void))dlsym(RTLD_DEFAULT, "__call_tls_dtors");
	if (!call_tls_dtors) {
		*ret_why = "this libc has no __call_tls_dtors";
		return false;
	}
	*ret_why = "a module of libc cannot be found";
	/* dladdr() is not used, since it compares the address with each of the module's symbols. */
	return dl_iterate_phdr(keep_module, &keep);
}
