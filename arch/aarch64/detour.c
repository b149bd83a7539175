/* SPDX-License-Identifier: MIT */
/*
 * arch/aarch64/detour.c - lead a function elsewhere by a jump in place of its first instruction,
 * which moves to a trampoline.  arch/arch.h has the contract.
 *
 * A branch takes the place of one instruction, and reaches 128 MB.  If the replaced instruction is adr
 * or adrp, the trampoline loads the address that it would compute.  Other instructions that depend on
 * their own address (loads of literals, branches) do not begin functions of libc, and are refused.
 */
#include "arch/arch.h"

enum {
	BRANCH = 0x14000000,		/* b: distance / 4 in 26 bits */
	BRANCH_REACH = 1 << 27,
	LOAD_LITERAL = 0x58000000,	/* ldr xN, distance / 4 in 19 bits from bit 5 */
};

static bool branch(uintptr_t from, uintptr_t to, uint32_t *ret)
{
	int64_t distance = (int64_t)(to - from);

	if (distance < -(int64_t)BRANCH_REACH || distance >= BRANCH_REACH)
		return false;
	*ret = BRANCH | ((uint32_t)(distance >> 2) & 0x3ffffff);
	return true;
}

/* Returns what adr or adrp at address `pc` puts into its register. */
static uint64_t address(uint32_t insn, uintptr_t pc)
{
	uint64_t value = (insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3);
	int64_t distance = (int64_t)(value << 43) >> 43;

	if (insn >> 31)
		return (pc & ~(uintptr_t)4095) + (uint64_t)distance * 4096;
	return pc + (uint64_t)distance;
}

static bool is_adr(uint32_t insn)
{
	return (insn & 0x1f000000) == 0x10000000;
}

/*
 * Does the instruction depend on its address?  Loads of literals, and every branch except those to
 * a register.
 */
static bool knows_its_place(uint32_t insn)
{
	return (insn & 0x3b000000) == 0x18000000 ||	/* ldr literal */
	       (insn & 0x7c000000) == 0x14000000 ||	/* b, bl */
	       (insn & 0x7e000000) == 0x34000000 ||	/* cbz, cbnz */
	       (insn & 0x7e000000) == 0x36000000 ||	/* tbz, tbnz */
	       (insn & 0xfe000000) == 0x54000000;	/* b.cond */
}

/*
 * Does the instruction leave the function?  blr, ret, exceptions and udf; no function begins with
 * one.
 */
static bool leaves(uint32_t insn)
{
	return (insn & 0xfe000000) == 0xd6000000 || (insn & 0xff000000) == 0xd4000000 ||
	       insn >> 16 == 0;
}

const char *fz_detour_plan(const void *fn, size_t size, const void *target, const void *at,
			   struct fz_detour *ret)
{
	uintptr_t begin = (uintptr_t)fn, slot = (uintptr_t)at;
	uint32_t insn, jump, code[2], n = 0;
	bool literal;

	*ret = (struct fz_detour){ .jump_size = sizeof(jump) };
	if (size < 2 * sizeof(insn))
		return "it is too short";
	__builtin_memcpy(&insn, fn, sizeof(insn));
	if (knows_its_place(insn) || leaves(insn))
		return "its first instructions are not known";
	if (!branch(begin, (uintptr_t)target, &jump))
		return "it is too far away";
	__builtin_memcpy(ret->jump, &jump, sizeof(jump));

	literal = is_adr(insn);
	/* The literal, an address, lies behind the two instructions of the trampoline. */
	code[n++] = literal ? LOAD_LITERAL | 2 << 5 | (insn & 31) : insn;
	if (!branch(slot + n * sizeof(insn), begin + sizeof(insn), &code[n]))
		return "it is too far away";
	n++;
	__builtin_memcpy(ret->trampoline, code, sizeof(code));
	ret->trampoline_size = sizeof(code);
	if (literal) {
		uint64_t value = address(insn, begin);

		__builtin_memcpy(ret->trampoline + sizeof(code), &value, sizeof(value));
		ret->trampoline_size += sizeof(value);
	}
	return NULL;
}
