/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/stack.h"

#include <asm/errno.h>
#include <linux/mman.h>

#include "runtime/base/features.h"
#include "runtime/base/limits.h"
#include "runtime/base/lock.h"
#include "runtime/base/uapi.h"

enum {
	PAGE = 4096,
	CLASSES = 16,			/* sizes of stacks in use at once */
	SLAB_STACKS = 128,
	/*
	 * Stacks end at different places (colours) in their last page.  If all ended at one
	 * place, the hot lines of all fibers would compete for a few cache sets.
	 */
	COLOURS = 64,
	COLOUR_STEP = 64,
};
#define SLAB_MAX ((size_t)2 << 30)

_Static_assert(COLOURS * COLOUR_STEP % PAGE == 0, "slots are whole pages");

/*
 * What one page table covers.  A stack's top and the guard of the stack above it are neighbours.
 * Large stacks are laid out half a TABLE_SPAN off alignment, so that top and guard share a page
 * table; if stacks were aligned, each fiber would need two.
 */
#define TABLE_SPAN ((size_t)2 << 20)

struct slab_class {
	size_t slot;			/* guard + usable size; 0: unused entry */
	size_t guard;
	char *next;			/* first slot not yet given out */
	char *end;
	uint32_t given;			/* a count of slots given out, which chooses the colour */
	struct free_slot *free;		/* given out, but the thread could not be made */
};

/* Lies at the low end of the usable part of a free slot. */
struct free_slot {
	struct free_slot *next;
};

/* All guarded by lock. */
static struct {
	struct fz_lock lock;
	struct slab_class classes[CLASSES];
	uint32_t victim;
} slabs = { .lock = FZ_LOCK(FZ_RANK_SLABS) };

static struct slab_class *find_class(size_t slot, size_t guard)
{
	struct slab_class *class;

	for (uint32_t i = 0; i < CLASSES; i++) {
		class = &slabs.classes[i];
		if (class->slot == slot && class->guard == guard)
			return class;
		if (!class->slot)
			goto found;
	}
	/* Too many sizes: forget the rest of one slab, which wastes only address space. */
	class = &slabs.classes[slabs.victim++ % CLASSES];
found:
	*class = (struct slab_class){ .slot = slot, .guard = guard };
	return class;
}

/*
 * Would the kernel give a thread of libc's so much?  It refuses what no memory could ever hold
 * (vm.overcommit_memory), but not with MAP_NORESERVE.
 */
static int ask_for_large(size_t size)
{
	const size_t large = (size_t)64 << 20;
	long mem;

	if (size < large)
		return 0;
	mem = fz_sys_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK);
	if (fz_sys_failed(mem))
		return (int)mem;
	fz_syscall2(__NR_munmap, mem, (long)size);
	return 0;
}

static int refill(struct slab_class *class)
{
	size_t count = SLAB_MAX / class->slot;
	size_t size, slack;
	long mem = ask_for_large(class->slot - class->guard);

	if (mem)
		return (int)mem;
	if (count > SLAB_STACKS)
		count = SLAB_STACKS;
	/* If mapped memory is limited, map one stack at a time: the program needs the rest. */
	if (count == 0 || fz_limits_count_address_space())
		count = 1;
	/* Try fewer stacks if the memory is not there. */
	for (;; count /= 2) {
		/* A single stack means that memory is scarce: waste none on slack. */
		slack = count > 1 && class->slot >= TABLE_SPAN ? 2 * TABLE_SPAN : 0;
		size = count * class->slot + slack;
		mem = fz_sys_mmap(size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK);
		if (!fz_sys_failed(mem))
			break;
		if (count == 1)
			return (int)mem;
	}
	/* Best effort: a huge page would make one touched page cost 2 MB. */
	fz_syscall3(__NR_madvise, mem, (long)size, MADV_NOHUGEPAGE);
	class->next = (char *)mem;
	if (slack)
		class->next = (char *)(FZ_ROUND_UP((size_t)mem, TABLE_SPAN) + TABLE_SPAN / 2);
	class->end = (char *)mem + size;
	return 0;
}

static int install_guard(char *low, size_t size)
{
	/* The kernel marks each page, and needs page tables for that. */
	const size_t most_marked = TABLE_SPAN;
	long err;

	if (size == 0)
		return 0;
	if (size <= most_marked && fz_feature_allowed(FZ_FEATURE_GUARD_INSTALL) &&
	    fz_syscall3(__NR_madvise, (long)low, (long)size, FZ_UAPI_MADV_GUARD_INSTALL) == 0)
		return 0;
	/* For small guards needed until Linux 6.13 is the oldest supported kernel. */
	err = fz_syscall3(__NR_mprotect, (long)low, (long)size, PROT_NONE);
	return (int)err;
}

int fz_stack_alloc(size_t size, size_t guard, void **ret_low, size_t *ret_size)
{
	struct slab_class *class;
	size_t colour;
	char *slot;
	int err = 0;

	if (size > SIZE_MAX / 4 || guard > SIZE_MAX / 4)
		return -EAGAIN;
	size = FZ_ROUND_UP(size, PAGE);
	guard = FZ_ROUND_UP(guard, PAGE);
	fz_lock_acquire(&slabs.lock);
	class = find_class(size + guard + COLOURS * COLOUR_STEP, guard);
	if (class->free) {
		*ret_low = class->free;
		*ret_size = size;
		class->free = class->free->next;
		fz_lock_release(&slabs.lock);
		return 0;
	}
	if ((size_t)(class->end - class->next) < class->slot)
		err = refill(class);
	slot = class->next;
	/* 11 is coprime to COLOURS: neighbours differ, and all colours are used. */
	colour = class->given++ * 11 % COLOURS;
	if (!err)
		class->next += class->slot;
	fz_lock_release(&slabs.lock);
	if (!err)
		err = install_guard(slot, guard);
	if (err)
		return err;
	*ret_low = slot + guard;
	*ret_size = size + colour * COLOUR_STEP;
	return 0;
}

void fz_stack_free(void *low, size_t size, size_t guard)
{
	struct free_slot *slot = low;
	struct slab_class *class;

	size = FZ_ROUND_UP(size, PAGE);
	guard = FZ_ROUND_UP(guard, PAGE);
	fz_lock_acquire(&slabs.lock);
	class = find_class(size + guard + COLOURS * COLOUR_STEP, guard);
	slot->next = class->free;
	class->free = slot;
	fz_lock_release(&slabs.lock);
}

void fz_stack_bounds(void *low, size_t size, void **ret_bottom, size_t *ret_size)
{
	/* Less than a page of size is colour, and the slot has room for a page of it. */
	char *end = (char *)FZ_ROUND_UP((size_t)low + size, PAGE);

	*ret_size = size / PAGE * PAGE;
	*ret_bottom = end - *ret_size;
}

void fz_stack_trim(void *low, const void *sp)
{
	/* Keep the red zone below sp (128 bytes); old signal frames need not be kept. */
	size_t unused = (size_t)((const char *)sp - (char *)low - 128) / PAGE * PAGE;

	if ((const char *)sp > (char *)low + PAGE)
		fz_syscall3(__NR_madvise, (long)low, (long)unused, MADV_DONTNEED);
}

void fz_stack_after_fork(void)
{
	/*
	 * If another thread of the parent held the lock, slabs may be half changed: forget them,
	 * which wastes only address space.
	 */
	if (atomic_load_explicit(&slabs.lock.word, memory_order_relaxed))
		__builtin_memset(&slabs, 0, sizeof(slabs));
	fz_lock_init(&slabs.lock, FZ_RANK_SLABS);
}
