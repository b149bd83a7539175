/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_WATCH_LISTS_H
#define FZ_RUNTIME_BACKEND_WATCH_LISTS_H

/*
 * runtime/backend/watch_lists.h - the lists of watches of one descriptor on one instance.  To find the
 * next watch, or to take one out, no list has to be walked.  All functions: under the lock of the
 * descriptor's stripe.
 */

#include "runtime/backend/watch.h"

/* The watch behind w in the list that begins with `first`, or NULL. */
static inline struct fz_watch *fz_watch_follower(const struct fz_watch *first,
						 const struct fz_watch *w)
{
	return w->next == first ? NULL : w->next;
}

static inline enum fz_watch_list fz_watch_list(const struct fz_watch *w)
{
	if (w->fired)
		return FZ_WATCH_FIRED;
	if (!w->exclusive)
		return FZ_WATCH_SHARED;
	return w->events & EPOLLOUT ? FZ_WATCH_WRITES : FZ_WATCH_READS;
}

static inline void fz_watch_append(struct fz_watch **first, struct fz_watch *w)
{
	if (*first) {
		w->next = *first;
		w->prev = (*first)->prev;
		w->prev->next = w;
		(*first)->prev = w;
	} else {
		w->next = w->prev = w;
		*first = w;
	}
}

static inline void fz_watch_take_out(struct fz_watch **first, struct fz_watch *w)
{
	w->next->prev = w->prev;
	w->prev->next = w->next;
	if (*first == w)
		*first = w->next == w ? NULL : w->next;
}

/* Is each watch of the group in its list? */
static inline bool fz_watch_group_is_sound(const struct fz_watch *leader, int fd)
{
	for (enum fz_watch_list i = 0; i < FZ_WATCH_LISTS; i++) {
		const struct fz_watch *first = leader->group.list[i];

		for (const struct fz_watch *w = first; w; w = fz_watch_follower(first, w))
			if (w->next->prev != w || !w->linked || fz_watch_list(w) != i ||
			    w->on != leader->on ||
			    atomic_load_explicit(&w->fd, memory_order_relaxed) != fd)
				return false;
	}
	return true;
}

#endif
