/* SPDX-License-Identifier: MIT */
#include "preload/libc/thread_end.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/real.h"
#include "runtime/base/host.h"

enum { WORDS = 64 };

/* What the experiment has found. */
static struct {
	/* release/acquire: set when all other members are set. */
	_Atomic bool known;
	void (*steps[2])(void);
	uintptr_t tls_dtors;		/* libc's __call_tls_dtors */
	/* libc's thread-local variables: their place, their number of words, the values in a new thread. */
	intptr_t from_tcb;
	size_t words;
	uintptr_t fresh[WORDS];
	uintptr_t own[WORDS];		/* all bits set: the word is an address in the TCB */
} end;

/* What libc's program headers say. */
struct libc {
	uintptr_t inside;		/* an address in its text */
	uintptr_t text, text_end;
	char *block;			/* the thread-local variables of the thread that looked */
	const char *image;		/* initial values; zeros follow */
	size_t size, image_size;
};

static struct libc libc;		/* written before the first thread is made */

static int find_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct libc found = *(struct libc *)arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const uintptr_t begin = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_TLS) {
			found.block = info->dlpi_tls_data;
			found.image = (const char *)begin;
			found.size = ph->p_memsz;
			found.image_size = ph->p_filesz;
		} else if (ph->p_type == PT_LOAD && found.inside - begin < ph->p_memsz) {
			found.text = begin;
			found.text_end = begin + ph->p_memsz;
		}
	}
	if (!found.text)
		return 0;
	*(struct libc *)arg = found;
	return 1;
}

/*
 * Does the code at pc call __call_tls_dtors() and two functions directly after that? Then it is the way out of
 * a thread, and end.steps are these two functions.
 */
static bool is_way_out(uintptr_t pc, uintptr_t tls_dtors)
{
	if (fz_call_target(pc, &pc) != tls_dtors)
		return false;
	for (size_t i = 0; i < 2; i++) {
		end.steps[i] = (void (*)(void))fz_call_target(pc, &pc);
		if (!end.steps[i])
			return false;
	}
	return true;
}

/* Look for the way out near the call of the start routine, in front of that call or behind it. */
static bool find_way_out(uintptr_t after_start)
{
	enum { NEAR = 1024 };
	uintptr_t pc = after_start - NEAR, last = after_start + NEAR;

	if (pc < libc.text || last + NEAR > libc.text_end)
		return false;
	while (pc < last && !is_way_out(pc, end.tls_dtors))
		pc++;
	return pc < last;
}

static uintptr_t fresh_word(uintptr_t tcb, size_t i)
{
	return end.fresh[i] + (end.own[i] & tcb);
}

static void note_fresh(const uintptr_t *block, uintptr_t tcb)
{
	const uintptr_t near = 65536;

	for (size_t i = 0; i < end.words; i++) {
		if (block[i] - tcb + near < 2 * near)
			end.own[i] = ~(uintptr_t)0;
		end.fresh[i] = block[i] - (end.own[i] & tcb);
	}
}

static bool is_fresh(const uintptr_t *block, uintptr_t tcb)
{
	uintptr_t differs = 0;

	for (size_t i = 0; i < end.words; i++)
		differs |= block[i] ^ fresh_word(tcb, i);
	return !differs;
}

static void make_fresh(uintptr_t *block, uintptr_t tcb)
{
	for (size_t i = 0; i < end.words; i++)
		block[i] = fresh_word(tcb, i);
}

/* Does each word that the steps have changed have its initial value in a new thread? */
static bool changed_initial(const uintptr_t *block, uintptr_t tcb)
{
	for (size_t i = 0; i < end.words; i++) {
		const size_t at = i * sizeof(uintptr_t);
		uintptr_t initial = 0;

		if (at < libc.image_size)
			memcpy(&initial, libc.image + at, sizeof(initial));
		if (block[i] != fresh_word(tcb, i) && fresh_word(tcb, i) != initial)
			return false;
	}
	return true;
}

void fz_thread_end_look(void)
{
	end.tls_dtors = (uintptr_t)dlsym(RTLD_DEFAULT, "__call_tls_dtors");
	libc = (struct libc){ .inside = end.tls_dtors };
	if (!end.tls_dtors || !dl_iterate_phdr(find_libc, &libc))
		libc.block = NULL;
	end.from_tcb = (intptr_t)((uintptr_t)libc.block - fz_tcb_get());
}

void fz_thread_end_learn(const void *after_start)
{
	const uintptr_t tcb = fz_tcb_get();
	uintptr_t *block = (uintptr_t *)(tcb + (uintptr_t)end.from_tcb);

	if (!libc.block || !find_way_out((uintptr_t)after_start) ||
	    libc.size > sizeof(end.fresh) ||
	    ((uintptr_t)libc.block | libc.size | libc.image_size) % sizeof(*block))
		return;
	end.words = libc.size / sizeof(*block);
	note_fresh(block, tcb);
	end.steps[0]();
	end.steps[1]();
	if (!changed_initial(block, tcb))
		return;
	make_fresh(block, tcb);
	/* release: pairs with fz_thread_end_release(). */
	atomic_store_explicit(&end.known, true, memory_order_release);
}

void fz_thread_end_release(void)
{
	const uintptr_t tcb = fz_tcb_get();
	uintptr_t *block = (uintptr_t *)(tcb + (uintptr_t)end.from_tcb);

	if (!atomic_load_explicit(&end.known, memory_order_acquire))
		return;
	errno = 0;
	/*
	 * What libc keeps for a thread is allocated by malloc. If malloc is libc's, that changes these
	 * variables; if they are as in a new thread, there is nothing to give back.
	 */
	if (!fz_host.has_own_allocator && is_fresh(block, tcb))
		return;
	end.steps[0]();
	end.steps[1]();
	make_fresh(block, tcb);
}
