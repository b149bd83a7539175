/* SPDX-License-Identifier: MIT */
/*
 * arch/x86_64/detour.c - lead a function elsewhere by a jump in place of its first instructions,
 * which move to a trampoline.  arch/arch.h has the contract.
 *
 * This file knows only the instructions that compilers put at the beginning of libc's functions: push,
 * mov, lea, arithmetic, and a conditional or final jump.  It refuses calls: their return address would
 * lie in the trampoline, where no unwinder knows the function.
 */
#include "arch/arch.h"

enum { JUMP_SIZE = 5 };		/* e9 rel32 */

/* What must be done to an instruction when it is moved. */
enum kind {
	PLAIN,			/* nothing: it does not depend on its address */
	RIP_RELATIVE,		/* its operand's distance changes */
	JUMP, CONDITIONAL,	/* its target's distance changes */
};

struct insn {
	unsigned length;
	enum kind kind;
	unsigned disp_at;	/* RIP_RELATIVE: offset of its 4-byte distance */
	uint8_t condition;	/* CONDITIONAL: low half of the opcode */
	intptr_t distance;	/* jumps: from the instruction's end */
};

static intptr_t get32(const uint8_t *p)
{
	int32_t value;

	__builtin_memcpy(&value, p, sizeof(value));
	return value;
}

/*
 * Decode the ModRM byte at `at`, its operand, and `immediate` bytes after that.  Returns the
 * length of the whole instruction.
 */
static unsigned operands(const uint8_t *p, unsigned at, unsigned immediate, struct insn *ret)
{
	unsigned mod = p[at] >> 6, rm = p[at] & 7, end = at + 1;

	if (mod != 3 && rm == 4) {
		/* A SIB byte; without a base, 4 bytes of displacement follow. */
		if (mod == 0 && (p[end] & 7) == 5)
			end += 4;
		end++;
	} else if (mod == 0 && rm == 5) {
		ret->kind = RIP_RELATIVE;
		ret->disp_at = end;
		end += 4;
	}
	if (mod == 1)
		end++;
	else if (mod == 2)
		end += 4;
	return end + immediate;
}

/* Returns false if the instruction is not one that this file knows. */
static bool decode(const uint8_t *p, struct insn *ret)
{
	unsigned at = 0;
	bool wide = false;
	uint8_t op;

	*ret = (struct insn){ .kind = PLAIN };
	if (p[0] == 0xf3) {
		/* endbr64 */
		ret->length = 4;
		return p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa;
	}
	/* Prefix fs: the thread control block. */
	if (p[at] == 0x64)
		at++;
	if ((p[at] & 0xf0) == 0x40)
		wide = p[at++] & 8;
	op = p[at++];
	switch (op) {
	case 0x50 ... 0x57:			/* push */
		ret->length = at;
		break;
	case 0x6a:				/* push of an immediate byte */
		ret->length = at + 1;
		break;
	case 0x01: case 0x03: case 0x09: case 0x0b: case 0x21: case 0x23:
	case 0x29: case 0x2b: case 0x31: case 0x33: case 0x38: case 0x39: case 0x3b:
	case 0x63: case 0x84: case 0x85: case 0x88: case 0x89: case 0x8a: case 0x8b:
	case 0x8d:				/* arithmetic, test, mov, lea */
		ret->length = operands(p, at, 0, ret);
		break;
	case 0x0f:				/* syscall */
		ret->length = at + 1;
		return p[at] == 0x05;
	case 0x3d:				/* cmp of eax with 4 immediate bytes */
		ret->length = at + 4;
		break;
	case 0x80: case 0x83:			/* arithmetic with an immediate byte */
		ret->length = operands(p, at, 1, ret);
		break;
	case 0x81:				/* arithmetic with 4 immediate bytes */
		ret->length = operands(p, at, 4, ret);
		break;
	case 0xf7:				/* test with 4 immediate bytes; refuse the rest of the group */
		if (p[at] & 0x38)
			return false;
		ret->length = operands(p, at, 4, ret);
		break;
	case 0xb8 ... 0xbf:			/* mov immediate */
		ret->length = at + (wide ? 8 : 4);
		break;
	case 0x70 ... 0x7f:			/* jcc */
		ret->kind = CONDITIONAL;
		ret->condition = op & 15;
		ret->distance = (int8_t)p[at];
		ret->length = at + 1;
		break;
	case 0xeb:
		ret->kind = JUMP;
		ret->distance = (int8_t)p[at];
		ret->length = at + 1;
		break;
	case 0xe9:
		ret->kind = JUMP;
		ret->distance = get32(p + at);
		ret->length = at + 4;
		break;
	default:
		return false;
	}
	return true;
}

/*
 * Store the distance from `end`, the end of an instruction, to `to`.  Returns false if 32 bits
 * cannot hold it.
 */
static bool put32(uint8_t *p, uintptr_t to, uintptr_t end)
{
	int64_t distance = (int64_t)(to - end);
	int32_t value = (int32_t)distance;

	__builtin_memcpy(p, &value, sizeof(value));
	return value == distance;
}

/*
 * Append the instruction at `from` to the trampoline at `at`, with its distance corrected.
 * Returns false if the distance is too far.
 */
static bool move(const struct insn *insn, const uint8_t *from, uintptr_t at,
		 struct fz_detour *d)
{
	uint8_t *out = d->trampoline + d->trampoline_size;
	uintptr_t old_end = (uintptr_t)from + insn->length;
	unsigned n = 0;

	at += d->trampoline_size;
	switch (insn->kind) {
	case PLAIN:
	case RIP_RELATIVE:
		__builtin_memcpy(out, from, insn->length);
		d->trampoline_size += insn->length;
		return insn->kind == PLAIN ||
		       put32(out + insn->disp_at,
			     old_end + (uintptr_t)get32(from + insn->disp_at),
			     at + insn->length);
	case CONDITIONAL:
		out[n++] = 0x0f;
		out[n++] = 0x80 | insn->condition;
		break;
	case JUMP:
		out[n++] = 0xe9;
		break;
	}
	d->trampoline_size += n + 4;
	return put32(out + n, old_end + (uintptr_t)insn->distance, at + n + 4);
}

/*
 * May a jump in the function lead into its first `moved` bytes, other than to the first one?  Any byte
 * from `moved` on is taken for the possible beginning of a jump.
 */
static bool jumps_back(const uint8_t *p, size_t size, unsigned moved)
{
	const size_t near = moved + 128 < size ? moved + 128 : size;

	for (size_t i = moved; i + 2 <= near; i++) {
		intptr_t target = (intptr_t)i + 2 + (int8_t)p[i + 1];

		if ((p[i] == 0xeb || (p[i] & 0xf0) == 0x70 || (p[i] & 0xfc) == 0xe0) &&
		    target > 0 && target < (intptr_t)moved)
			return true;
	}
	/* call, jmp, or the second byte of jcc.  The distance is tested first, because it rarely fits. */
	for (size_t i = moved; i + 5 <= size; i++) {
		/* Wraps around if the target is not behind the first byte. */
		const uintptr_t behind = i + 4 + (uintptr_t)get32(p + i + 1);

		if (behind < moved - 1 &&
		    (p[i] == 0xe8 || p[i] == 0xe9 ||
		     (i > moved && p[i - 1] == 0x0f && (p[i] & 0xf0) == 0x80)))
			return true;
	}
	return false;
}

const char *fz_detour_plan(const void *fn, size_t size, const void *target, const void *at,
			   struct fz_detour *ret)
{
	const uint8_t *p = fn;
	intptr_t nearest = INTPTR_MAX;	/* nearest target behind fn of a moved jump */
	unsigned moved = 0;
	bool ended = false;

	*ret = (struct fz_detour){ .jump = { 0xe9 }, .jump_size = JUMP_SIZE };
	while (moved < JUMP_SIZE) {
		/* The most bytes that decode() reads. */
		const unsigned longest = 15;
		uint8_t bytes[15] = { 0 };
		struct insn insn;

		if (ended || moved >= size)
			return "it is too short";
		/*
		 * Never read beyond the function, even if its last bytes look like a longer
		 * instruction.
		 */
		__builtin_memcpy(bytes, p + moved,
				 size - moved < longest ? size - moved : longest);
		if (!decode(bytes, &insn) || moved + insn.length > size)
			return "its first instructions are not known";
		if (insn.kind == CONDITIONAL || insn.kind == JUMP) {
			intptr_t to = (intptr_t)(moved + insn.length) + insn.distance;

			if (to > 0 && to < nearest)
				nearest = to;
		}
		if (!move(&insn, p + moved, (uintptr_t)at, ret))
			return "what it refers to is too far away";
		ended = insn.kind == JUMP;
		moved += insn.length;
	}
	if (nearest < (intptr_t)moved)
		return "it jumps within its first instructions";
	if (jumps_back(p, size, moved))
		return "it may jump into its first instructions";
	if (!put32(ret->jump + 1, (uintptr_t)target, (uintptr_t)p + JUMP_SIZE))
		return "it is too far away";
	if (!ended) {
		uint8_t *out = ret->trampoline + ret->trampoline_size;

		out[0] = 0xe9;
		ret->trampoline_size += JUMP_SIZE;
		if (!put32(out + 1, (uintptr_t)p + moved,
			   (uintptr_t)at + ret->trampoline_size))
			return "it is too far away";
	}
	return NULL;
}
