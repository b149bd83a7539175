/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/tls.c - pthread keys and thread-local variables. Keys stay libc's, whose storage
 * is in the TCB and so moves with the fiber. The library only remembers the destructors, because
 * libc runs them where a kernel thread ends.
 */
#include "preload/thread/tls.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <locale.h>

#include "arch/arch.h"
#include "preload/gate.h"
#include "preload/libc/loader.h"
#include "preload/process/fork_gate.h"

typedef void destructor(void *);

/* By key. release/acquire: a thread that sees a key sees its destructor. */
static _Atomic(destructor *) destructors[PTHREAD_KEYS_MAX];
static _Atomic unsigned keys_used;	/* highest key ever made, plus one */

static void (*call_tls_dtors)(void);

/* Modules whose thread-local variables a new life keeps: their link addresses. */
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

/*
 * The calling thread's block of a module, if it is at a fixed distance from the thread pointer. libc
 * does not know the block of a library loaded later if only code that relies on the distance has
 * used it.
 */
static char *static_block_of(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			return fz_loader_static_tls(fz_loader_module(
				(void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr)));
	return NULL;
}

/* Initial values of a module's variables; zeros follow. */
struct image {
	const void *values;
	size_t values_size, size;
	intptr_t from_tcb;		/* of the block; valid in `remembered` */
};

/*
 * All modules that a new life must reset, as long as no library comes or goes: then the list of
 * modules, which is long, need not be read. Guarded by the loader's lock, which dl_iterate_phdr
 * holds.
 */
static struct {
	bool valid;
	unsigned long long loads, unloads;
	size_t count;
	struct image images[8];
} remembered;

static void reset_block(char *block, const struct image *image)
{
	memcpy(block, image->values, image->values_size);
	memset(block + image->values_size, 0, image->size - image->values_size);
}

static void remember(const struct image *image, char *block)
{
	const size_t most = sizeof(remembered.images) / sizeof(*remembered.images);
	struct image *entry = &remembered.images[remembered.count];

	if (!block || remembered.count == most) {
		remembered.valid = false;
		return;
	}
	*entry = *image;
	entry->from_tcb = (intptr_t)((uintptr_t)block - fz_tcb_get());
	remembered.count++;
}

/* Counts of libraries loaded so far: now, and when their need of executable stacks was looked at. */
struct reset {
	unsigned long long loads, looked_at;
	bool needs_executable_stacks;
	bool begun;
};

/* The first module: is all known? */
static bool reset_remembered(const struct dl_phdr_info *info, struct reset *reset)
{
	reset->begun = true;
	reset->loads = info->dlpi_adds;
	if (remembered.valid && remembered.loads == info->dlpi_adds &&
	    remembered.unloads == info->dlpi_subs && reset->looked_at == info->dlpi_adds) {
		for (size_t i = 0; i < remembered.count; i++)
			reset_block((char *)(fz_tcb_get() +
					     (uintptr_t)remembered.images[i].from_tcb),
				    &remembered.images[i]);
		return true;
	}
	remembered.valid = true;
	remembered.loads = info->dlpi_adds;
	remembered.unloads = info->dlpi_subs;
	remembered.count = 0;
	return false;
}

/* Set the module's thread-local variables back to their initial values. */
static int reset_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct reset *reset = arg;

	if (!reset->begun && FZ_LIKELY(reset_remembered(info, reset)))
		return 1;
	if (FZ_UNLIKELY(info->dlpi_adds != reset->looked_at))
		reset->needs_executable_stacks |=
			fz_loader_needs_executable_stacks(info, size, NULL);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (info->dlpi_addr == kept[i])
			return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const struct image image = {
			.values = (void *)(info->dlpi_addr + ph->p_vaddr),
			.values_size = ph->p_filesz,
			.size = ph->p_memsz,
		};
		char *block, *fixed;

		if (ph->p_type != PT_TLS)
			continue;
		fixed = static_block_of(info);
		block = info->dlpi_tls_data ? info->dlpi_tls_data : fixed;
		remember(&image, block == fixed ? fixed : NULL);
		if (block)
			reset_block(block, &image);
	}
	return 0;
}

void fz_host_reset_thread_state(void)
{
	/* relaxed: a thread that finds an older count looks once more. */
	static _Atomic unsigned long long looked_at;
	struct reset reset = {
		.looked_at = atomic_load_explicit(&looked_at, memory_order_relaxed),
	};

	fz_gate_enter(FZ_GATE_LOADER);
	dl_iterate_phdr(reset_module, &reset);
	fz_gate_leave(FZ_GATE_LOADER);
	if (reset.needs_executable_stacks)
		fz_fiber_stacks_executable();
	if (FZ_UNLIKELY(reset.loads != reset.looked_at))
		atomic_store_explicit(&looked_at, reset.loads, memory_order_relaxed);
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
			 * The loader. Not by AT_BASE, which is 0 if the loader was named on the
			 * command line.
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
	/* Not by dladdr(), which compares the address with each of the module's symbols. */
	return dl_iterate_phdr(keep_module, &keep);
}
