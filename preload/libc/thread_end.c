/* SPDX-License-Identifier: MIT */
#include "preload/libc/thread_end.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/real.h"

/* What the experiment has found. */
static struct {
	/* release/acquire: set last. */
	_Atomic bool known;
	void (*steps[2])(void);
	/* Bytes of libc's thread-local variables that the steps leave changed. */
	struct {
		intptr_t from_tcb;
		uint8_t fresh;
	} marks[16];
	size_t count;
} end;

/* What libc's program headers say. */
struct libc {
	uintptr_t inside;		/* an address in its text */
	uintptr_t text, text_end;
	char *block;			/* the calling thread's thread-local variables */
	const char *image;		/* initial values; zeros follow */
	size_t size, image_size;
};

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

/* Is this the way out of a thread? If so, set end.steps. */
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

/* The function that calls start routines has the way out, before or behind the call. */
static bool find_way_out(const struct libc *libc)
{
	enum { NEAR = 1024 };
	const uintptr_t tls_dtors = (uintptr_t)dlsym(RTLD_DEFAULT, "__call_tls_dtors");
	uintptr_t pc = libc->inside - NEAR, last = libc->inside + NEAR;

	if (!tls_dtors || pc < libc->text || last + NEAR > libc->text_end)
		return false;
	while (pc < last && !is_way_out(pc, tls_dtors))
		pc++;
	return pc < last;
}

/* Returns false if the steps leave behind what no new thread has. */
static bool note_marks(const struct libc *libc, const char *before)
{
	for (size_t i = 0; i < libc->size; i++) {
		const char fresh = i < libc->image_size ? libc->image[i] : 0;

		if (libc->block[i] == before[i])
			continue;
		if (before[i] != fresh || end.count == sizeof(end.marks) / sizeof(*end.marks))
			return false;
		end.marks[end.count].from_tcb = libc->block + i - (char *)fz_tcb_get();
		end.marks[end.count++].fresh = (uint8_t)fresh;
	}
	return true;
}

static void remove_marks(void)
{
	for (size_t i = 0; i < end.count; i++)
		*(uint8_t *)(fz_tcb_get() + (uintptr_t)end.marks[i].from_tcb) = end.marks[i].fresh;
}

void fz_thread_end_learn(const void *after_start)
{
	struct libc libc = { .inside = (uintptr_t)after_start };
	char before[512];

	if (!dl_iterate_phdr(find_libc, &libc) || !libc.block || libc.size > sizeof(before) ||
	    !find_way_out(&libc))
		return;
	memcpy(before, libc.block, libc.size);
	end.steps[0]();
	end.steps[1]();
	if (!note_marks(&libc, before))
		return;
	remove_marks();
	/* release: pairs with fz_thread_end_release(). */
	atomic_store_explicit(&end.known, true, memory_order_release);
}

void fz_thread_end_release(void)
{
	if (!atomic_load_explicit(&end.known, memory_order_acquire))
		return;
	end.steps[0]();
	end.steps[1]();
	remove_marks();
}
