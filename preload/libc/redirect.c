/* SPDX-License-Identifier: MIT */
#include "preload/libc/redirect.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>

#include "arch/arch.h"
#include "preload/config.h"
#include "preload/gate.h"
#include "preload/libc/arena.h"
#include "preload/libc/inside.h"
#include "preload/libc/lowlevellock.h"
#include "preload/libc/text.h"
#include "preload/real_call.h"
#include "runtime/base/die.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

static pid_t runtime_pid;

bool fz_redirect_in_child(void)
{
	return fz_sys_getpid() != runtime_pid;
}

/* ---- what leads where ---------------------------------------------------- */

/* A family is redirected whole or not at all: waits and wake-ups must meet in one place. */
enum families { ALONE, COND, LOW_LEVEL_LOCK, MUTEX };

struct entry {
	const char *name;
	void *body;
	void **real;		/* the pointer through which the library calls libc's function */
	bool private;		/* the name is private to libc, so not in fz_real */
	enum families group;

	uint8_t *fn;
	size_t size;
	const char *left_alone;	/* why not redirected; NULL: it is, or will be, redirected */
	uint8_t saved[FZ_DETOUR_JUMP];
	struct fz_detour detour;
};

#define ENTRY(name_, body_, group_) { .name = #name_, .body = (void *)(body_), \
				      .real = (void **)&fz_real.name_, .group = group_ },
/*
 * The families of symbols.def. The child of libc's posix_spawn runs in our memory as the
 * calling fiber, so every function that it calls must be NO (sigaction, sigprocmask) or OWN
 * (dup2, fcntl, getdents64).
 */
#define REDIRECT_NO(name)
#define REDIRECT_ALONE(name) ENTRY(name, name, ALONE)
#define REDIRECT_COND(name) ENTRY(name, name, COND)
#define REDIRECT_MUTEX(name) ENTRY(name, name, MUTEX)
#define REDIRECT_OWN(name) ENTRY(name, fz_##name##_inside, ALONE)

static struct entry entries[] = {
#define FZ_SYMBOL(name, rung, cancel, family, ...) REDIRECT_##family(name)
#include "preload/symbols.def"
	{ .name = "__close_nocancel", .body = (void *)fz_close_inside,
	  .real = (void **)&fz_inside_real.close, .private = true },
	{ .name = "__open_nocancel", .body = (void *)fz_open_inside,
	  .real = (void **)&fz_inside_real.open, .private = true },
	{ .name = "__read_nocancel", .body = (void *)fz_read_inside,
	  .real = (void **)&fz_inside_real.read, .private = true },
	{ .name = "__pread64_nocancel", .body = (void *)fz_pread_inside,
	  .real = (void **)&fz_inside_real.pread, .private = true },
	{ .name = "__write_nocancel", .body = (void *)fz_write_inside,
	  .real = (void **)&fz_inside_real.write, .private = true },
	{ .name = "mmap", .body = (void *)fz_arena_mmap, .real = (void **)&fz_arena_real_mmap },
	{ .name = "__lll_lock_wait_private", .body = (void *)fz_lll_wait_private,
	  .real = (void **)&fz_lll_real.wait_private, .private = true,
	  .group = LOW_LEVEL_LOCK },
	{ .name = "__lll_lock_wake_private", .body = (void *)fz_lll_wake_private,
	  .real = (void **)&fz_lll_real.wake_private, .private = true,
	  .group = LOW_LEVEL_LOCK },
};

enum { ENTRIES = sizeof(entries) / sizeof(*entries) };
_Static_assert(ENTRIES <= FZ_DETOUR_SLOTS, "each has a slot for its trampoline");

static struct {
	bool done;
	const char *refused;	/* why nothing is redirected; NULL: something is */
	int error;
	unsigned count;
} result = { .refused = "dormant" };

static bool refuse(const char *why, int error)
{
	result.refused = why;
	result.error = error;
	return false;
}

/* ---- libc's symbols ------------------------------------------------------ */

/*
 * sorted: the entries by address. first_bytes: one bit for each 16 bytes of code, modulo 64 KB; the bit
 * is set if the first bytes of an entry are there. For most of libc's thousands of symbols the bit is
 * not set, and they need not be compared with the entries.
 */
static struct entry *sorted[ENTRIES];
static uint64_t first_bytes[64];

static uint64_t bit_of(const uint8_t *at, uint64_t **ret_word)
{
	*ret_word = &first_bytes[(uintptr_t)at / 1024 % 64];
	return (uint64_t)1 << (uintptr_t)at / 16 % 64;
}

static void sort_entries(void)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		unsigned k = i;

		for (; k && sorted[k - 1]->fn > entries[i].fn; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = &entries[i];
		for (unsigned at = 0; at < 2 * FZ_DETOUR_JUMP; at += FZ_DETOUR_JUMP) {
			uint64_t *word, bit = bit_of(entries[i].fn + at, &word);

			*word |= bit;
		}
	}
}

static void look_at_symbol(const ElfW(Sym) *symbol, uint8_t *at, void *unused)
{
	unsigned low = 0, high = ENTRIES;
	uint64_t *word, bit = bit_of(at, &word);

	(void)unused;
	if (FZ_LIKELY(!(*word & bit)))
		return;
	/* Find the last entry that begins at or before the symbol. */
	while (high - low > 1) {
		unsigned middle = (low + high) / 2;

		if (sorted[middle]->fn <= at)
			low = middle;
		else
			high = middle;
	}
	if (at == sorted[low]->fn && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
		sorted[low]->size = symbol->st_size;
	else if (at > sorted[low]->fn && at < sorted[low]->fn + FZ_DETOUR_JUMP)
		sorted[low]->left_alone = "another function begins within its first bytes";
}

/* ---- deciding -------------------------------------------------------------- */

static void plan(struct entry *e, const struct fz_text *text, unsigned slot)
{
	uintptr_t fn = (uintptr_t)e->fn;

	if (e->left_alone)
		return;
	/*
	 * If the function is not in libc's text, another preloaded library or a sanitizer defines
	 * the name, and its function would call ours again.
	 */
	if (fn < text->begin || fn >= text->end)
		e->left_alone = "it is not libc's own";
	else if (e->size == 0 || fn + e->size > text->end)
		e->left_alone = "its size is not known";
	else
		e->left_alone = fz_detour_plan(e->fn, e->size, e->body,
					       fz_detour_slots[slot], &e->detour);
}

static void plan_all(const struct fz_text *text)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct entry *e = &entries[i];

		if (e->private)
			*e->real = dlvsym(RTLD_NEXT, e->name, "GLIBC_PRIVATE");
		e->fn = *e->real;
		e->left_alone = e->fn ? NULL : "libc does not have it";
	}
	sort_entries();
	fz_text_each_symbol(text, look_at_symbol, NULL);
	for (unsigned i = 0; i < ENTRIES; i++)
		plan(&entries[i], text, i);
	for (unsigned i = 0; i < ENTRIES; i++)
		for (unsigned k = 0; entries[i].group != ALONE && k < ENTRIES; k++)
			if (entries[k].left_alone && entries[i].group == entries[k].group)
				entries[i].left_alone = entries[k].left_alone;
}

/* Has the process one thread only? Threads that libc does not know count, too. */
static bool single_threaded(void)
{
	struct stat task;

	if (stat("/proc/self/task", &task) == 0)
		return task.st_nlink == 3;
	return __libc_single_threaded;
}

/* ---- writing --------------------------------------------------------------- */

static int protect(const void *begin, const void *end, int protection)
{
	const uintptr_t page = (uintptr_t)getpagesize() - 1;
	uintptr_t from = (uintptr_t)begin & ~page;

	return (int)fz_syscall3(__NR_mprotect, (long)from,
				(long)((((uintptr_t)end + page) & ~page) - from), protection);
}

static void write_code(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	__builtin___clear_cache((char *)to, (char *)to + size);
}

static void write_all(bool on)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct entry *e = &entries[i];

		if (e->left_alone)
			continue;
		if (!on) {
			write_code(e->fn, e->saved, e->detour.jump_size);
			*e->real = e->fn;
			continue;
		}
		memcpy(e->saved, e->fn, e->detour.jump_size);
		write_code(fz_detour_slots[i], e->detour.trampoline,
			   e->detour.trampoline_size);
		write_code(e->fn, e->detour.jump, e->detour.jump_size);
		*e->real = fz_detour_slots[i];
		result.count++;
	}
}

static const char forbidden[] =
	"changing libc's code is forbidden here (SELinux, PR_SET_MDWE or a seccomp filter?)";

/*
 * Make libc's functions and the trampolines writable while they stay executable, write, and make them
 * read-only again. A system that forbids this (SELinux, PR_SET_MDWE, a seccomp filter) fails the first
 * step, when nothing has changed. If the pages lost the right to execute instead, it might be
 * impossible to get that right back.
 */
static bool write_with_signals_blocked(bool on)
{
	const int rx = PROT_READ | PROT_EXEC, rwx = rx | PROT_WRITE;
	const uint8_t *low = NULL, *high = NULL;
	int err;

	for (unsigned i = 0; i < ENTRIES; i++) {
		const uint8_t *fn = entries[i].fn;

		if (entries[i].left_alone)
			continue;
		if (!low || fn < low)
			low = fn;
		if (!high || fn > high)
			high = fn;
	}
	if (!low)
		return refuse("none of this libc's functions is as expected", 0);
	high += FZ_DETOUR_JUMP;
	err = protect(low, high, rwx);
	if (err)
		return refuse(forbidden, -err);
	err = protect(fz_detour_slots, fz_detour_slots + FZ_DETOUR_SLOTS, rwx);
	if (!err)
		write_all(on);
	protect(low, high, rx);
	if (err)
		return refuse(forbidden, -err);
	protect(fz_detour_slots, fz_detour_slots + FZ_DETOUR_SLOTS, rx);
	return true;
}

/* Signals are blocked, because a handler must not call a function that is half written. */
static bool write_now(bool on)
{
	uint64_t all = ~(uint64_t)0, old;
	bool ok;

	fz_sys_sigmask(SIG_BLOCK, &all, &old);
	ok = write_with_signals_blocked(on);
	fz_sys_sigmask(SIG_SETMASK, &old, NULL);
	return ok;
}

static bool redirect(void)
{
	struct fz_text text;

	if (!fz_config.redirect)
		return refuse("FIBERIZE_REDIRECT is 0", 0);
	if (!single_threaded())
		return refuse("another thread runs already", 0);
	if (!fz_text_find(&text))
		return refuse("this libc is not laid out as expected", 0);
	plan_all(&text);
	return write_now(true);
}

void fz_redirect_start(void)
{
	runtime_pid = (pid_t)fz_sys_getpid();
	if (result.done)
		return;
	result = (typeof(result)){ .done = true };
	redirect();
	/* Here only what is not redirected is reported; --stats reports the number in any case. */
	if (!fz_config.verbose || result.count == ENTRIES)
		return;
	fz_redirect_say("");
	for (unsigned i = 0; !result.refused && i < ENTRIES; i++)
		if (entries[i].left_alone)
			fz_say("%s is not redirected: %s", entries[i].name,
			       entries[i].left_alone);
}

bool fz_redirect_reaches(const void *real)
{
	return real >= (const void *)fz_detour_slots && real < (const void *)(fz_detour_slots + FZ_DETOUR_SLOTS);
}

void fz_redirect_undo(void)
{
	if (!result.done || result.refused || !single_threaded())
		return;
	if (write_now(false))
		result = (typeof(result)){ .refused = "threads are native" };
}

void fz_redirect_say(const char *prefix)
{
	if (result.refused)
		fz_say("%scalls inside libc: not redirected, so each that waits takes a kernel thread: %s%s%s",
		       prefix, result.refused,
		       result.error ? ": " : "",
		       result.error ? strerrorname_np(result.error) : "");
	else
		fz_say("%scalls inside libc: %u of %u entry points redirected", prefix,
		       result.count, ENTRIES);
}
