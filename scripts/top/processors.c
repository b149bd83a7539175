/* SPDX-License-Identifier: MIT */
#include "processors.h"

#include <string.h>
#include <sys/param.h>

void processors_begin(struct processors *all)
{
	memset(all, 0, sizeof(*all));
}

struct look {
	uint64_t owner, slot;
	uint32_t queue, calls;
};

/* Read the pieces that can be read; the others keep what they have. */
static void read_all(const struct target *t, const struct piece *pieces, size_t count)
{
	for (size_t done = 0; done < count; done++)
		done += target_read_pieces(t, pieces + done, MIN(count - done, (size_t)PIECES_MOST));
}

static struct piece field(const struct target *t, enum entry name, uint64_t record, void *to, size_t size)
{
	return (struct piece){ record + target_value(t, name), to, MIN(size, t->entries[name].size) };
}

/* Is the carrier in a call?  Only carriers that run the program are asked. */
static void read_calls(const struct target *t, struct look *looks, size_t count)
{
	const uint64_t mask = target_value(t, ENTRY_owner_state_mask);
	struct piece pieces[FZ_PROCESSORS_MOST];
	size_t asked = 0;

	for (size_t i = 0; i < count; i++)
		if ((looks[i].owner & mask) == target_value(t, ENTRY_owner_user))
			pieces[asked++] = field(t, ENTRY_carrier_calls, looks[i].owner & ~mask,
						&looks[i].calls, sizeof(looks[i].calls));
	read_all(t, pieces, asked);
}

static enum doing doing_of(const struct target *t, const struct look *look)
{
	const uint64_t state = look->owner & target_value(t, ENTRY_owner_state_mask);

	if (state == target_value(t, ENTRY_owner_runtime))
		return DOING_LIBRARY;
	if (state == target_value(t, ENTRY_owner_announced))
		return DOING_CALL;
	if (state != target_value(t, ENTRY_owner_user))
		return DOING_IDLE;
	return look->calls & target_value(t, ENTRY_call_bit) ? DOING_CALL : DOING_BUSY;
}

void processors_look(struct processors *all, const struct target *t)
{
	const uint64_t base = target_root(t, ENTRY_processors);
	const uint64_t size = target_value(t, ENTRY_processor_size);
	struct look looks[FZ_PROCESSORS_MOST];
	struct piece pieces[3 * FZ_PROCESSORS_MOST];
	size_t n = 0;

	memset(looks, 0, sizeof(looks));
	all->count = MIN(target_root(t, ENTRY_processor_count), FZ_PROCESSORS_MOST);
	for (size_t i = 0; i < all->count; i++) {
		const uint64_t record = base + i * size;
		struct look *look = &looks[i];

		pieces[n++] = field(t, ENTRY_processor_owner, record, &look->owner, sizeof(look->owner));
		pieces[n++] = field(t, ENTRY_processor_queue, record, &look->queue, sizeof(look->queue));
		pieces[n++] = field(t, ENTRY_processor_slot, record, &look->slot, sizeof(look->slot));
	}
	read_all(t, pieces, n);
	read_calls(t, looks, all->count);
	all->looks++;
	all->queued = target_root(t, ENTRY_queue_global) + target_root(t, ENTRY_queue_births);
	for (size_t i = 0; i < all->count; i++) {
		struct processor *p = &all->list[i];

		p->doing = doing_of(t, &looks[i]);
		p->seen[p->doing]++;
		p->queued = looks[i].queue + (looks[i].slot != 0);
		p->queued_sum += p->queued;
		all->queued += p->queued;
	}
}

double processor_share(const struct processors *all, size_t number, enum doing what)
{
	return all->looks ? 100.0 * all->list[number].seen[what] / all->looks : 0;
}
