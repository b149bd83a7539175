/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/x86_64/test_detour.c - functions led elsewhere, and called through
 * their trampolines; and those that must be left alone.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/arch.h"
#include "tests/plain/harness.h"

/* Near each other: a function, where it is led, its trampoline, and data. */
struct arena {
	uint8_t fn[256], target[256], slot[256];
	int32_t data[64];
};

static struct arena *arena;

static void prepare(const void *code, size_t size)
{
	/* mov $99, %eax; ret */
	static const uint8_t elsewhere[] = { 0xb8, 99, 0, 0, 0, 0xc3 };

	if (!arena)
		arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(arena != MAP_FAILED, "no executable memory");
	memset(arena, 0xcc, sizeof(*arena));
	memcpy(arena->fn, code, size);
	memcpy(arena->target, elsewhere, sizeof(elsewhere));
}

/* So that the four bytes at fn + at lead to to from the end of the instruction. */
static void aim(size_t at, size_t end, const void *to)
{
	int32_t distance = (int32_t)((const uint8_t *)to - (arena->fn + end));

	memcpy(arena->fn + at, &distance, sizeof(distance));
}

static long call(void *code, long arg)
{
	return ((long (*)(long))(uintptr_t)code)(arg);
}

/* Leads fn away; both ways must then do what they should. */
static void apply(size_t size)
{
	struct fz_detour d;
	const char *why = fz_detour_plan(arena->fn, size, arena->target, arena->slot, &d);

	REQUIRE(!why, "%s", why);
	REQUIRE(d.jump_size <= sizeof(d.jump) && d.trampoline_size <= sizeof(d.trampoline),
		"%u, %u bytes", d.jump_size, d.trampoline_size);
	memcpy(arena->slot, d.trampoline, d.trampoline_size);
	memcpy(arena->fn, d.jump, d.jump_size);
	CHECK(call(arena->fn, 1) == 99, "not led away");
}

static void refused(const void *code, size_t size, const char *want)
{
	struct fz_detour d;
	const char *why;

	prepare(code, size);
	why = fz_detour_plan(arena->fn, size, arena->target, arena->slot, &d);
	CHECK(why && strcmp(why, want) == 0, "%s, not %s", why ? why : "planned", want);
}

#define PREPARE(code) prepare(code, sizeof(code))
#define REFUSED(code, why) refused(code, sizeof(code), why)

/* cmpb $0, data(%rip); je; as read() of glibc 2.36 */
TEST(detour_rip_relative)
{
	static const uint8_t code[] = { 0x80, 0x3d, 0, 0, 0, 0, 0, 0x74, 6, 0xb8, 1, 0, 0, 0,
					0xc3, 0xb8, 2, 0, 0, 0, 0xc3 };

	PREPARE(code);
	aim(2, 7, arena->data);
	apply(sizeof(code));
	arena->data[0] = 0;
	CHECK(call(arena->slot, 0) == 2, "the operand has moved");
	arena->data[0] = 1;
	CHECK(call(arena->slot, 0) == 1, "the operand has moved");
}

/* cmp $3, %edi; je; as clock_nanosleep() */
TEST(detour_conditional)
{
	/* The jump leads farther than what is moved could reach. */
	static const uint8_t code[40] = { 0x83, 0xff, 3, 0x74, 27, 0xb8, 1, 0, 0, 0, 0xc3,
					  [32] = 0xb8, 2, 0, 0, 0, 0xc3 };

	PREPARE(code);
	apply(sizeof(code));
	CHECK(call(arena->slot, 3) == 2, "not taken");
	CHECK(call(arena->slot, 4) == 1, "taken");
}

/* xor %ecx, %ecx; jmp; as waitpid() */
TEST(detour_ends_in_jump)
{
	static const uint8_t code[] = { 0x31, 0xc9, 0xe9, 0, 0, 0, 0 };
	static const uint8_t there[] = { 0xb8, 7, 0, 0, 0, 0xc3 };

	PREPARE(code);
	memcpy(arena->fn + 128, there, sizeof(there));
	aim(3, 7, arena->fn + 128);
	apply(sizeof(code));
	CHECK(call(arena->slot, 0) == 7, "the jump leads elsewhere");
}

/* push %rbx; sub $16, %rsp; mov %edi, %eax; ...; as recvmsg() */
TEST(detour_stack)
{
	static const uint8_t code[] = { 0x53, 0x48, 0x83, 0xec, 16, 0x89, 0xf8, 0x48, 0x83,
					0xc4, 16, 0x5b, 0xc3 };

	PREPARE(code);
	apply(sizeof(code));
	CHECK(call(arena->slot, 42) == 42, "the stack is not as it was");
}

/* endbr64; mov %fs:0, %rax */
TEST(detour_endbr_fs)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25,
					0, 0, 0, 0, 0xc3 };

	PREPARE(code);
	apply(sizeof(code));
	CHECK((uintptr_t)call(arena->slot, 0) == fz_tcb_get(), "not the thread pointer");
}

/* mov %rdi, 8(%rsp,%riz); movabs: lengths */
TEST(detour_operands)
{
	static const uint8_t code[] = { 0x48, 0x89, 0x7c, 0x24, 0xf8,	/* mov %rdi, -8(%rsp) */
					0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8,
					0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3 };
	static const uint8_t wide[] = { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 0, 0xc3 };
	/* test $4, %edi; setne %al; movzbl %al, %eax */
	static const uint8_t test[] = { 0xf7, 0xc7, 4, 0, 0, 0, 0x0f, 0x95, 0xc0, 0x0f, 0xb6,
					0xc0, 0xc3 };

	PREPARE(code);
	apply(sizeof(code));
	CHECK(call(arena->slot, 42) == 42, "the operand is not where it was");
	PREPARE(test);
	apply(sizeof(test));
	CHECK(call(arena->slot, 4) == 1 && call(arena->slot, 3) == 0, "not the test");
	PREPARE(wide);
	apply(sizeof(wide));
	CHECK(call(arena->slot, 0) == 0x7060504030201, "the constant is cut");
}

/* xor %eax, %eax; syscall; cmp $-4096, %rax: as __read_nocancel() */
TEST(detour_syscall)
{
	static const uint8_t code[] = { 0x31, 0xc0, 0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff,
					0xc3 };
	static const uint8_t other[] = { 0x0f, 0x0b, 0x90, 0x90, 0x90, 0xc3 };	/* ud2 */
	const long bad_descriptor = -9;

	PREPARE(code);
	apply(sizeof(code));
	CHECK(call(arena->slot, -1) == bad_descriptor, "not a read of -1");
	REFUSED(other, "its first instructions are not known");
}

TEST(detour_refused)
{
	static const char unknown[] = "its first instructions are not known";
	static const uint8_t breakpoint[] = { 0xcc, 0x3d, 0, 0, 0, 0, 0, 0xc3 };
	static const uint8_t call_first[] = { 0xe8, 0, 0, 0, 0, 0xc3 };
	static const uint8_t indirect[] = { 0xff, 0x25, 0, 0, 0, 0, 0xc3 };
	static const uint8_t returns[] = { 0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90 };
	static const uint8_t cut[] = { 0x31, 0xc0, 0xb8, 0, 0 };
	static const uint8_t negates[] = { 0xf7, 0xdf, 0x89, 0xf8, 0x89, 0xf8, 0xc3 };
	static const uint8_t tiny[] = { 0x31, 0xc0, 0x31, 0xc9 };
	/* mov %edi, %eax; 2: sub $1, %eax; jne 2 */
	static const uint8_t loop[] = { 0x89, 0xf8, 0x83, 0xe8, 1, 0x75, 0xfb, 0xc3 };
	static const uint8_t inner[] = { 0x74, 2, 0x31, 0xc0, 0x31, 0xc9, 0xc3 };
	static const uint8_t plain[] = { 0xb8, 1, 0, 0, 0, 0xc3 };
	struct fz_detour d;
	const char *why;

	REFUSED(breakpoint, unknown);
	REFUSED(call_first, unknown);
	REFUSED(indirect, unknown);
	REFUSED(returns, unknown);
	REFUSED(cut, unknown);
	REFUSED(negates, unknown);
	REFUSED(tiny, "it is too short");
	REFUSED(loop, "it may jump into its first instructions");
	REFUSED(inner, "it jumps within its first instructions");

	PREPARE(plain);
	why = fz_detour_plan(arena->fn, sizeof(plain), arena->fn + (1L << 33), arena->slot, &d);
	CHECK(why && strcmp(why, "it is too far away") == 0, "a far target: %s", why);
	why = fz_detour_plan(arena->fn, sizeof(plain), arena->target,
			     arena->slot + (1L << 33), &d);
	CHECK(why && strcmp(why, "it is too far away") == 0, "a far trampoline: %s", why);
}
