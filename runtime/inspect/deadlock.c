/* SPDX-License-Identifier: MIT */
#include "runtime/inspect/deadlock.h"

#include <linux/mman.h>
#include <linux/uio.h>

#include "runtime/base/die.h"
#include "runtime/base/role.h"
#include "runtime/base/time.h"
#include "runtime/fiber/registry.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/rwlock.h"

/* Used by the monitor alone. */
static struct {
	uint32_t entries;	/* how often the runtime had been entered, at the last call of check() */
	unsigned due;		/* looks to come; two, since at the first a native thread may be about to wait */
	fz_nsec next;
	bool over;		/* a deadlock has been reported, or the library cannot find any */
} deadlock;

struct thread {
	const struct fz_fiber *record;
	uint64_t wait;		/* the word of its wait */
	const char *object;	/* fz_fiber.waits */
	int tid;
	int owner;		/* the tid of the thread that this thread waits for; 0: not known */
	uint32_t visited;
	uint8_t what;		/* enum fz_waits_for */
	bool waits;		/* only another thread can end the wait: no event, no deadline */
	bool is_main;
	char name[16];
};

struct table {
	struct thread *list;
	uint32_t count, room;
	uint32_t *places;	/* by tid: 1 + the place in list */
	uint32_t mask;		/* number of places - 1 */
	size_t size;		/* of the memory of both, bytes */
};

static bool read_memory(const void *address, void *buffer, size_t size)
{
	const struct iovec here = { buffer, size }, there = { (void *)(uintptr_t)address, size };

	/* The caller's tid: the process's id is its first thread's, which may have ended, and has no memory then. */
	return fz_syscall6(__NR_process_vm_readv, fz_sys_gettid(), (long)&here, 1, (long)&there, 1,
			   0) == (long)size;
}

static int read_int(const char *address)
{
	int value;

	return read_memory(address, &value, sizeof(value)) ? value : 0;
}

/* ---- the threads ---------------------------------------------------------------------- */

static bool table_new(struct table *t, uint32_t threads)
{
	uint32_t places = 64;
	long memory;

	t->count = 0;
	t->room = threads;
	while (places < 2 * (uint64_t)threads)
		places *= 2;
	t->mask = places - 1;
	t->size = threads * sizeof(*t->list) + places * sizeof(*t->places);
	memory = fz_sys_mmap(t->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
	if (fz_sys_failed(memory))
		return false;
	t->list = (struct thread *)memory;
	t->places = (uint32_t *)(t->list + threads);
	return true;
}

static bool collect(struct fz_fiber *f, void *table)
{
	struct table *t = table;

	if (t->count < t->room)
		t->list[t->count++].record = f;
	return t->count == t->room;
}

static void collect_natives(struct table *t)
{
	for (int i = 0; i < FZ_ROLES; i++)
		/* relaxed: read_memory() fails if the record does not exist. */
		if (atomic_load_explicit(&fz_roles[i].tid, memory_order_relaxed) &&
		    fz_roles[i].kind == FZ_ROLE_NATIVE && t->count < t->room)
			t->list[t->count++].record = fz_roles[i].record;
}

static bool is_by_threads(enum fz_waits_for what)
{
	return what >= FZ_FOR_THREAD && what != FZ_FOR_RUNTIME;
}

static int owner_of(const struct thread *t)
{
	switch (t->what) {
	case FZ_FOR_MUTEX:
		return read_int(t->object + offsetof(struct fz_mutex, owner));
	case FZ_FOR_READ_LOCK:
		return read_int(t->object - offsetof(struct fz_rwlock, wrphase_futex) +
				offsetof(struct fz_rwlock, cur_writer));
	case FZ_FOR_WRITE_LOCK:
		return read_int(t->object - offsetof(struct fz_rwlock, writers_futex) +
				offsetof(struct fz_rwlock, cur_writer));
	case FZ_FOR_THREAD:
		return read_int(t->object - offsetof(struct fz_fiber, thread.life) +
				offsetof(struct fz_fiber, thread.tid));
	default:
		return 0;
	}
}

/* Read what the thread waits for.  Returns false if it has ended. */
static bool read_thread(struct thread *t)
{
	struct fz_fiber f;
	bool kernel_thread;
	unsigned state;

	if (!read_memory(t->record, &f, sizeof(f)) ||
	    atomic_load_explicit(&f.thread.life, memory_order_relaxed) &
		    (FZ_LIFE_ENDED | FZ_LIFE_FREE))
		return false;
	kernel_thread = f.kind != FZ_KIND_FIBER;
	t->wait = atomic_load_explicit(&f.wait, memory_order_relaxed);
	state = t->wait & FZ_WAIT_STATE_MASK;
	t->object = f.waits.object;
	t->what = f.call.waits_for;
	t->tid = f.thread.tid ? f.thread.tid :
				read_int((const char *)fz_tcb_tid(fz_tcb_of(t->record)));
	t->is_main = f.thread.is_main;
	__builtin_memcpy(t->name, f.thread.name, sizeof(t->name));
	t->name[sizeof(t->name) - 1] = '\0';
	t->waits = state == (kernel_thread ? FZ_WAIT_ARMED : FZ_WAIT_PARKED) &&
		   is_by_threads(t->what) &&
		   (kernel_thread ? f.timer.deadline == FZ_FOREVER : !f.timer.processor);
	if (t->waits)
		t->owner = owner_of(t);
	return true;
}

static struct thread *by_tid(const struct table *t, int tid)
{
	uint32_t i = (uint32_t)tid & t->mask;

	for (; t->places[i]; i = (i + 1) & t->mask)
		if (t->list[t->places[i] - 1].tid == tid)
			return &t->list[t->places[i] - 1];
	return NULL;
}

static void fill(struct table *t)
{
	uint32_t kept = 0;

	for (uint32_t n = 0; n < t->count; n++) {
		uint32_t i;

		if (!read_thread(&t->list[n]))
			continue;
		t->list[kept] = t->list[n];
		for (i = (uint32_t)t->list[kept].tid & t->mask; t->places[i];)
			i = (i + 1) & t->mask;
		t->places[i] = ++kept;
	}
	t->count = kept;
}

/* ---- who waits for whom --------------------------------------------------------------- */

static struct thread *next_of(const struct table *t, const struct thread *at)
{
	return at->waits && at->owner ? by_tid(t, at->owner) : NULL;
}

/* Is the thread still in the wait that read_thread() has found? */
static bool still_waits(const struct thread *t)
{
	uint64_t wait;

	return t->waits && read_memory((const char *)t->record + offsetof(struct fz_fiber, wait), &wait,
				       sizeof(wait)) && wait == t->wait;
}

/* Returns how many threads are in the circle that begins with `first`; 0: it is no circle any more. */
static unsigned circle(const struct table *t, const struct thread *first)
{
	const struct thread *at = first;
	unsigned count = 0;

	do {
		if (!at || !still_waits(at))
			return 0;
		count++;
		at = next_of(t, at);
	} while (at != first);
	return count;
}

static const struct thread *find_circle(const struct table *t, unsigned *ret_count)
{
	for (uint32_t i = 0; i < t->count; i++) {
		struct thread *at = &t->list[i];

		while (at && !at->visited) {
			at->visited = i + 1;
			at = next_of(t, at);
		}
		if (at && at->visited == i + 1 && (*ret_count = circle(t, at)))
			return at;
	}
	return NULL;
}

/* Did all threads wait at one moment?  They did if each is still in the wait in which it was read. */
static bool all_are_asleep(const struct table *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (!still_waits(&t->list[i]))
			return false;
	return t->count && t->count == fz_fiber_alive();
}

static void say_circle(const struct table *t, const struct thread *first, unsigned count)
{
	static const char *const what[FZ_FOR_COUNT] = {
		[FZ_FOR_THREAD] = "the end of", [FZ_FOR_MUTEX] = "a mutex held by",
		[FZ_FOR_READ_LOCK] = "a rwlock held by", [FZ_FOR_WRITE_LOCK] = "a rwlock held by",
	};
	const unsigned shown = 16;
	const int pid = (int)fz_sys_getpid();
	const struct thread *at = first;

	fz_say("deadlock of %u thread%s; fiberize ps %d and fiberize bt %d show more", count,
	       fz_plural(count), pid, pid);
	for (unsigned i = 0; i < count && i < shown; i++, at = next_of(t, at))
		fz_say("deadlock: %d (%s) waits for %s %d", at->tid,
		       *at->name ? at->name : at->is_main ? "main" : "no name", what[at->what],
		       at->owner);
}

/* ---- when ----------------------------------------------------------------------------- */

static void look(void)
{
	const uint32_t spare = 16, alive = fz_fiber_alive();
	const struct thread *first;
	struct table t;
	unsigned count;

	if (!read_memory(&spare, &count, sizeof(count))) {
		fz_say("FIBERIZE_DEADLOCK: process_vm_readv is not allowed here, so deadlocks are not "
		       "found");
		deadlock.over = true;
		return;
	}
	if (!table_new(&t, alive + spare))
		return;
	fz_fiber_each(collect, &t);
	collect_natives(&t);
	fill(&t);
	first = find_circle(&t, &count);
	deadlock.over = first || all_are_asleep(&t);
	if (first)
		say_circle(&t, first, count);
	else if (deadlock.over)
		fz_say("all %u threads are asleep: each waits for another one, and nothing is in flight, so "
		       "only a signal or another process can end that; fiberize ps %d shows more",
		       t.count, (int)fz_sys_getpid());
	fz_syscall2(__NR_munmap, (long)t.list, (long)t.size);
}

static bool check(fz_nsec now, uint32_t entries, bool in_use)
{
	const fz_nsec pause = 100 * FZ_MSEC, busy = 10000 * FZ_MSEC;
	const unsigned share = 100;

	if (deadlock.over)
		return false;
	if (entries != deadlock.entries || in_use)
		deadlock.due = 2;
	deadlock.entries = entries;
	if (!deadlock.due || now < deadlock.next + (in_use ? busy : 0))
		return deadlock.due;
	deadlock.due--;
	look();
	deadlock.next = now + pause + share * (fz_now() - now);
	return deadlock.due;
}

void fz_deadlock_report(void)
{
	fz_monitor_find_deadlocks = check;
}
