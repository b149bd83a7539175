/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/robust.h"

#include <linux/futex.h>

#include "runtime/sched/carrier.h"

enum { INHERITS = 1 };			/* bit 0 of a link */

/* A program may have unmapped what it has locked. */
static bool is_readable(uintptr_t p)
{
	return fz_sys_readable((const void *)(p & ~(uintptr_t)7));
}

static void wake(const void *word)
{
	/* As the kernel does it: a wake-up of a shared futex, without the private flag. */
	fz_syscall3(__NR_futex, (long)word, FUTEX_WAKE, 1);
}

/* Release the mutex to which `link` leads, if the thread owns it.  Returns false if its word cannot be read. */
static bool release(const struct robust_list_head *head, uintptr_t link, int tid, bool stays)
{
	const uintptr_t at = (link & ~(uintptr_t)INHERITS) + (uintptr_t)head->futex_offset;
	_Atomic uint32_t *word = (void *)at;
	const bool inherits = link & INHERITS;
	uint32_t old;

	if (at % sizeof(*word) || !is_readable(at))
		return false;
	/* release, below: the next owner sees what this thread wrote.  relaxed, here: only the word itself matters. */
	old = atomic_load_explicit(word, memory_order_relaxed);
	while ((old & FUTEX_TID_MASK) == (uint32_t)tid) {
		if (stays && inherits && old & FUTEX_WAITERS) {
			fz_syscall2(__NR_futex, (long)word, FUTEX_UNLOCK_PI);
			return true;
		}
		if (!atomic_compare_exchange_weak_explicit(word, &old, (old & FUTEX_WAITERS) | FUTEX_OWNER_DIED,
							   memory_order_release, memory_order_relaxed))
			continue;
		if (!inherits && old & FUTEX_WAITERS)
			wake(word);
		return true;
	}
	/* The thread ended between unlocking this mutex and waking a waiter. */
	if (!old && !inherits && link == (uintptr_t)head->list_op_pending)
		wake(word);
	return true;
}

static void release_all(const struct robust_list_head *head, int tid, bool stays)
{
	uintptr_t link, next, pending;

	pending = (uintptr_t)head->list_op_pending;
	link = (uintptr_t)head->list.next;
	for (int most = ROBUST_LIST_LIMIT; most && (link & ~(uintptr_t)INHERITS) != (uintptr_t)&head->list; most--) {
		const struct robust_list *entry = (const void *)(link & ~(uintptr_t)INHERITS);

		if (!is_readable((uintptr_t)entry))
			return;
		/* Read before another thread can have the mutex. */
		next = (uintptr_t)entry->next;
		if (link != pending && !release(head, link, tid, stays))
			return;
		link = next;
	}
	if (pending)
		release(head, pending, tid, stays);
}

void fz_robust_release(struct fz_fiber *self, bool stays)
{
	struct robust_list_head *libcs = self->thread.robust_list, *head = libcs;
	size_t size;

	/* The program may have given the kernel another list.  If a filter forbids to ask, assume that it has not. */
	fz_syscall3(__NR_get_robust_list, 0, (long)&head, (long)&size);
	if (head && is_readable((uintptr_t)head))
		release_all(head, self->carrier->tid, stays);
	fz_syscall2(__NR_set_robust_list, 0, sizeof(*head));
	if (!libcs)
		return;
	libcs->list.next = &libcs->list;
	libcs->list_op_pending = NULL;
}
