/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/aarch64/test_detour.c - functions led elsewhere, and called through
 * their trampolines; and those that must be left alone.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/arch.h"
#include "tests/plain/harness.h"

enum {
	RET = (int)0xd65f03c0,
	MOV_W0_5 = 0x528000a0,
	ADRP_X0_NEXT_PAGE = (int)0xb0000000,
	ADR_X0_BACK_4 = 0x10ffffe0,
};

/* Near each other: a function, where it is led, its trampoline. */
struct arena {
	uint32_t fn[64], target[64], slot[64];
};

static struct arena *arena;

static void prepare(const uint32_t *code, size_t size)
{
	static const uint32_t elsewhere[] = { 0x52800c60, (uint32_t)RET };	/* mov w0, #99 */

	if (!arena)
		arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(arena != MAP_FAILED, "no executable memory");
	memset(arena, 0, sizeof(*arena));
	memcpy(arena->fn, code, size);
	memcpy(arena->target, elsewhere, sizeof(elsewhere));
}

static long call(void *code, long arg)
{
	return ((long (*)(long))(uintptr_t)code)(arg);
}

static void apply(size_t size)
{
	struct fz_detour d;
	const char *why = fz_detour_plan(arena->fn, size, arena->target, arena->slot, &d);

	REQUIRE(!why, "%s", why);
	REQUIRE(d.jump_size <= sizeof(d.jump) && d.trampoline_size <= sizeof(d.trampoline),
		"%u, %u bytes", d.jump_size, d.trampoline_size);
	memcpy(arena->slot, d.trampoline, d.trampoline_size);
	memcpy(arena->fn, d.jump, d.jump_size);
	__builtin___clear_cache((char *)arena, (char *)(arena + 1));
	CHECK(call(arena->fn, 1) == 99, "not led away");
}

#define APPLY(code) (prepare(code, sizeof(code)), apply(sizeof(code)))

/* stp x29, x30, [sp, #-16]! ... ldp x29, x30, [sp], #16 */
TEST(detour_stack)
{
	static const uint32_t code[] = { 0xa9bf7bfd, MOV_W0_5, 0xa8c17bfd, (uint32_t)RET };

	APPLY(code);
	CHECK(call(arena->slot, 1) == 5, "not what it did");
}

/* mrs x0, tpidr_el0 */
TEST(detour_thread_pointer)
{
	static const uint32_t code[] = { 0xd53bd040, (uint32_t)RET };

	APPLY(code);
	CHECK((uintptr_t)call(arena->slot, 1) == fz_tcb_get(), "not the thread pointer");
}

TEST(detour_adrp)
{
	static const uint32_t code[] = { (uint32_t)ADRP_X0_NEXT_PAGE, (uint32_t)RET };

	APPLY(code);
	CHECK((uintptr_t)call(arena->slot, 1) == ((uintptr_t)arena & ~4095UL) + 4096,
	      "not the next page");
}

TEST(detour_adr)
{
	static const uint32_t code[] = { ADR_X0_BACK_4, (uint32_t)RET };

	APPLY(code);
	CHECK((uintptr_t)call(arena->slot, 1) == (uintptr_t)arena->fn - 4,
	      "not four bytes before it");
}

TEST(detour_refused)
{
	static const uint32_t first[] = {
		0x34000040, 0xb5000040,			/* cbz, cbnz */
		0x36000040, 0x37000040,			/* tbz, tbnz */
		0x58000040, 0x18000040, 0x98000040,	/* ldr of a literal */
		0x14000002, 0x94000002, 0x54000040,	/* b, bl, b.eq */
		(uint32_t)RET, 0xd4200000, 0,		/* ret, brk, udf */
	};
	struct fz_detour d;
	const char *why;

	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
		const uint32_t code[] = { first[i], MOV_W0_5, (uint32_t)RET };

		prepare(code, sizeof(code));
		why = fz_detour_plan(arena->fn, sizeof(code), arena->target, arena->slot, &d);
		CHECK(why && strcmp(why, "its first instructions are not known") == 0,
		      "%x: %s", first[i], why ? why : "planned");
	}
	const uint32_t code[] = { MOV_W0_5, (uint32_t)RET };

	prepare(code, sizeof(code));
	why = fz_detour_plan(arena->fn, 4, arena->target, arena->slot, &d);
	CHECK(why && strcmp(why, "it is too short") == 0, "%s", why ? why : "planned");
	why = fz_detour_plan(arena->fn, sizeof(code), arena->fn + (1 << 26), arena->slot, &d);
	CHECK(why && strcmp(why, "it is too far away") == 0, "%s", why ? why : "planned");
}
