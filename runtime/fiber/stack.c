/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/stack.h"

#include <asm/errno.h>
#include <linux/mman.h>

#include "runtime/base/count.h"
#include "runtime/base/features.h"
#include "runtime/base/limits.h"
#include "runtime/base/lock.h"
#include "runtime/base/uapi.h"
#include "runtime/fiber/remains.h"

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

/*
 * A slab is mapped with PROT_NONE.  The kernel counts it as address space, not as memory, and does
 * not lock, fill or dump it.  Slots are opened as they are needed, some at a time.
 */
struct slab_class {
	size_t slot;			/* guard + usable size; 0: unused entry */
	size_t guard;
	char *next;			/* first slot not yet given out */
	char *open;			/* slots from here on are not opened yet */
	char *end;
	uint32_t given;			/* a count of slots given out, which chooses the colour */
};

_Static_assert(CLASSES == 1 << 4, "fz_stack_give_back() names the class in 4 bits");

/* All guarded by lock. */
static struct {
	struct fz_lock lock;
	struct slab_class classes[CLASSES];
	uint32_t victim;
	/* Each entry costs a mapping, of which a process may have 65530 (vm.max_map_count). */
	struct fz_remains remains[16384];
	uint32_t remaining;
} slabs = { .lock = FZ_LOCK(FZ_RANK_SLABS) };

enum { REMAINS_MOST = sizeof(slabs.remains) / sizeof(*slabs.remains) };

/*
 * all_locked: the kernel locks and fills what is mapped from now on.
 * limited: a limit counts what is mapped.
 */
static _Atomic bool all_locked, limited;

/* A copy of slabs.remaining, for readers without the lock, whose holder may wait for the kernel. */
static _Atomic uint32_t remaining;

static void set_remaining(uint32_t count)
{
	slabs.remaining = count;
	atomic_store_explicit(&remaining, count, memory_order_relaxed);
}

static void unmap(char *begin, char *end)
{
	if (begin != end)
		fz_syscall2(__NR_munmap, (long)begin, end - begin);
}

static uint32_t index_of(const struct slab_class *class)
{
	return (uint32_t)(class - slabs.classes);
}

/*
 * A fork may copy the class in the middle of this change.  What the child finds between next and end must be
 * reserve and nothing else, because the child unmaps it.  So end is set last, and cleared first.
 */
static void set_reserve(struct slab_class *class, char *begin, char *end)
{
	class->end = NULL;
	/* release, both: the child of a fork sees the stores in their order. */
	atomic_thread_fence(memory_order_release);
	class->next = class->open = begin;
	atomic_thread_fence(memory_order_release);
	class->end = end;
}

static void drop_reserve(struct slab_class *class)
{
	char *end = class->end;

	set_reserve(class, class->next, class->next);
	if (end)
		unmap(class->next, end);
}

static void forget(struct slab_class *class)
{
	uint32_t kept = 0;

	drop_reserve(class);
	for (uint32_t i = 0; i < slabs.remaining; i++)
		if (slabs.remains[i].class != index_of(class))
			slabs.remains[kept++] = slabs.remains[i];
	set_remaining(kept);
}

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
	/* More sizes than entries: use the entry of another size anew. */
	class = &slabs.classes[slabs.victim++ % CLASSES];
	forget(class);
found:
	set_reserve(class, NULL, NULL);
	*class = (struct slab_class){ .slot = slot, .guard = guard };
	return class;
}

bool fz_stack_is_limited(void)
{
	/* relaxed: a hint. */
	return atomic_load_explicit(&limited, memory_order_relaxed);
}

static int refill(struct slab_class *class)
{
	size_t count = SLAB_MAX / class->slot;
	size_t size, slack;
	char *begin;
	long mem;

	if (count > SLAB_STACKS)
		count = SLAB_STACKS;
	/*
	 * If mapped memory is limited or locked, map one stack at a time: the program needs the
	 * rest.
	 */
	atomic_store_explicit(&limited, fz_limits_count_address_space(), memory_order_relaxed);
	if (count == 0 || fz_stack_is_limited() ||
	    atomic_load_explicit(&all_locked, memory_order_relaxed))
		count = 1;
	/* Try fewer stacks if the memory is not there. */
	for (;; count /= 2) {
		/* A single stack means that memory is scarce: waste none on slack. */
		slack = count > 1 && class->slot >= TABLE_SPAN ? 2 * TABLE_SPAN : 0;
		size = count * class->slot + slack;
		mem = fz_sys_mmap(size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK);
		if (!fz_sys_failed(mem))
			break;
		if (count == 1)
			return (int)mem;
	}
	/* Best effort: a huge page would make one touched page cost 2 MB. */
	fz_syscall3(__NR_madvise, mem, (long)size, MADV_NOHUGEPAGE);
	begin = (char *)mem;
	if (slack)
		begin = (char *)(FZ_ROUND_UP((size_t)mem, TABLE_SPAN) + TABLE_SPAN / 2);
	unmap((char *)mem, begin);
	unmap(begin + count * class->slot, (char *)mem + size);
	set_reserve(class, begin, begin + count * class->slot);
	return 0;
}

/*
 * How many bytes of a slot stay closed when it is opened: its guard, if that is large.
 * MADV_GUARD_INSTALL would need page tables to mark each page of it; and the kernel would count an
 * opened guard as memory, and might refuse.
 */
static size_t closed_part(size_t guard)
{
	return guard > TABLE_SPAN ? guard : 0;
}

/* Open slots for use.  A program that has made many threads will make more, so open more at a time then. */
static int open_slots(struct slab_class *class)
{
	const size_t closed = closed_part(class->guard);
	const uint32_t most = closed ? 1 : 16;
	size_t count = class->given / 4, left = (size_t)(class->end - class->open) / class->slot;
	long err;

	if (count > most)
		count = most;
	if (count > left)
		count = left;
	for (;; count = 1) {
		if (count == 0)
			count = 1;
		err = fz_syscall3(__NR_mprotect, (long)class->open + (long)closed,
				  (long)(count * class->slot - closed), PROT_READ | PROT_WRITE);
		if (err == 0 || count == 1)
			break;
	}
	if (err == 0)
		class->open += count * class->slot;
	return (int)err;
}

/* Returns NULL, and -errno in *ret_err, if there is no memory. */
static char *take_slot(struct slab_class *class, int *ret_err)
{
	char *slot = NULL;
	int err = 0;

	if (class->next == class->end)
		err = refill(class);
	if (!err && class->next == class->open)
		err = open_slots(class);
	/* If memory is short, the program may need the reserved address space. */
	if (err && class->next == class->open)
		drop_reserve(class);
	if (!err) {
		slot = class->next;
		class->next += class->slot;
	}
	*ret_err = err;
	return slot;
}

static void leave(struct fz_remains remains)
{
	if (slabs.remaining == REMAINS_MOST)
		return;
	slabs.remains[slabs.remaining] = remains;
	set_remaining(slabs.remaining + 1);
}

/* Take remains of this class.  Returns false if none are found. */
static bool take_remains(struct slab_class *class, struct fz_remains *ret)
{
	const uint32_t tries = 16;

	for (uint32_t i = slabs.remaining, n = 0; i-- && n < tries; n++) {
		if (slabs.remains[i].class != index_of(class))
			continue;
		*ret = slabs.remains[i];
		slabs.remains[i] = slabs.remains[slabs.remaining - 1];
		set_remaining(slabs.remaining - 1);
		return true;
	}
	return false;
}

static int install_guard(char *low, size_t size)
{
	long err;

	if (size == 0 || closed_part(size))
		return 0;
	if (fz_feature_allowed(FZ_FEATURE_GUARD_INSTALL) &&
	    fz_syscall3(__NR_madvise, (long)low, (long)size, FZ_UAPI_MADV_GUARD_INSTALL) == 0)
		return 0;
	/* Needed until Linux 6.13 is the oldest supported kernel. */
	err = fz_syscall3(__NR_mprotect, (long)low, (long)size, PROT_NONE);
	return (int)err;
}

static size_t slot_size(size_t size, size_t guard)
{
	return size + guard + COLOURS * COLOUR_STEP;
}

static char *get_slot(size_t slot_size, size_t guard, size_t *ret_colour, int *ret_err)
{
	struct slab_class *class;
	struct fz_remains remains;
	char *slot = NULL;
	bool again;

	do {
		fz_lock_acquire(&slabs.lock);
		class = find_class(slot_size, guard);
		again = take_remains(class, &remains);
		if (!again)
			slot = take_slot(class, ret_err);
		/* 11 is coprime to COLOURS: neighbours differ, and all colours are used. */
		*ret_colour = class->given++ * 11 % COLOURS;
		fz_lock_release(&slabs.lock);
		if (again)
			slot = fz_remains_mend(remains, slot_size, closed_part(guard), ret_err);
		if (again && *ret_err) {
			fz_lock_acquire(&slabs.lock);
			leave(remains);
			fz_lock_release(&slabs.lock);
		}
	} while (again && !slot && !*ret_err);
	return slot;
}

int fz_stack_alloc(size_t size, size_t guard, void **ret_low, size_t *ret_size)
{
	size_t colour;
	char *slot;
	int err;

	if (size > SIZE_MAX / 4 || guard > SIZE_MAX / 4)
		return -EAGAIN;
	size = FZ_ROUND_UP(size, PAGE);
	guard = FZ_ROUND_UP(guard, PAGE);
	slot = get_slot(slot_size(size, guard), guard, &colour, &err);
	if (err)
		return err;
	err = install_guard(slot, guard);
	if (err) {
		unmap(slot, slot + slot_size(size, guard));
		return err;
	}
	fz_count_total(FZ_TOTAL_stack_bytes, (int64_t)slot_size(size, guard));
	*ret_low = slot + guard;
	*ret_size = size + colour * COLOUR_STEP;
	return 0;
}

void fz_stack_free(void *low, size_t size, size_t guard)
{
	char *slot = (char *)low - FZ_ROUND_UP(guard, PAGE);

	size = slot_size(FZ_ROUND_UP(size, PAGE), FZ_ROUND_UP(guard, PAGE));
	fz_count_total(FZ_TOTAL_stack_bytes, -(int64_t)size);
	unmap(slot, slot + size);
}

bool fz_stack_can_give_back(void)
{
	bool can;

	fz_lock_acquire(&slabs.lock);
	can = slabs.remaining < REMAINS_MOST;
	fz_lock_release(&slabs.lock);
	return can;
}

size_t fz_stack_left(void)
{
	/* relaxed: a hint. */
	return (size_t)atomic_load_explicit(&remaining, memory_order_relaxed) * PAGE;
}

void fz_stack_give_back(void *low, size_t usable, size_t guard, const void *keep, size_t keep_size)
{
	const size_t size = slot_size(usable / PAGE * PAGE, FZ_ROUND_UP(guard, PAGE));
	char *slot = (char *)low - FZ_ROUND_UP(guard, PAGE);
	char *kept = (char *)((uintptr_t)keep / PAGE * PAGE);
	char *kept_end = (char *)FZ_ROUND_UP((uintptr_t)keep + keep_size, PAGE);
	struct fz_remains remains = {
		.slot = (uintptr_t)slot / PAGE,
		.hole = (size_t)(kept - slot) / PAGE,
		.pages = (size_t)(kept_end - kept) / PAGE & 3,
	};

	fz_syscall3(__NR_madvise, (long)kept, slot + size - kept, MADV_DONTNEED);
	/* Too large a hole for struct fz_remains: the slot stays mapped; its memory is free. */
	if (remains.hole != (size_t)(kept - slot) / PAGE)
		return;
	fz_count_total(FZ_TOTAL_stack_bytes, -(int64_t)size);
	unmap(slot, kept);
	unmap(kept_end, slot + size);
	fz_lock_acquire(&slabs.lock);
	remains.class = index_of(find_class(size, FZ_ROUND_UP(guard, PAGE))) & (CLASSES - 1);
	leave(remains);
	fz_lock_release(&slabs.lock);
}

void fz_stack_drop_reserve(void)
{
	fz_lock_acquire(&slabs.lock);
	for (uint32_t i = 0; i < CLASSES; i++)
		drop_reserve(&slabs.classes[i]);
	fz_lock_release(&slabs.lock);
}

bool fz_stack_set_all_locked(bool locked)
{
	/* relaxed: fz_stack_drop_reserve() takes the lock under which refill() looks. */
	return atomic_exchange_explicit(&all_locked, locked, memory_order_relaxed);
}

void fz_stack_bounds(void *low, size_t size, void **ret_bottom, size_t *ret_size)
{
	/* size is whole pages plus the colour, for which the slot has room of one page. */
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
	 * If another thread of the parent held the lock, slabs may be half changed: forget them.  Unmap their
	 * reserve first: mlockall in the child would lock it.
	 */
	if (atomic_load_explicit(&slabs.lock.word, memory_order_relaxed)) {
		for (uint32_t i = 0; i < CLASSES; i++)
			drop_reserve(&slabs.classes[i]);
		__builtin_memset(&slabs, 0, sizeof(slabs));
		set_remaining(0);
	}
	fz_lock_init(&slabs.lock, FZ_RANK_SLABS);
	/* A fork's child does not inherit mlockall's flags. */
	fz_stack_set_all_locked(false);
}
