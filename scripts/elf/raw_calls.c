/* SPDX-License-Identifier: MIT */
#include "raw_calls.h"

#include <string.h>

static uint32_t word_at(const unsigned char *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static void note_number(struct raw_calls *calls, uint32_t number)
{
	for (unsigned i = 0; i < calls->number_count; i++)
		if (calls->numbers[i] == number)
			return;
	if (calls->number_count < sizeof(calls->numbers) / sizeof(*calls->numbers))
		calls->numbers[calls->number_count++] = number;
}

enum { NUMBERS = 512 };			/* more than there are system calls */

/*
 * Find the instruction syscall, the bytes 0f 05. These bytes may also be part of another instruction,
 * so they count only if a system call's number is loaded in the 40 bytes before them, or if the
 * result is then compared with -4095 or -4096, the check for an error. They do not count if the two
 * bytes after them make all four look like a small displacement in another instruction.
 */
static void scan_x86_64(const unsigned char *code, size_t size, struct raw_calls *calls)
{
	static const unsigned char compare[2][6] = {
		{ 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff },
		{ 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff },
	};

	for (size_t i = 0; i + 1 < size; i++) {
		const unsigned char *next = memchr(code + i, 0x0f, size - 1 - i);
		bool found = false;

		if (!next)
			break;
		i = (size_t)(next - code);
		if (next[1] != 0x05)
			continue;
		if (size - i >= 4 && (next[3] == 0x00 || next[3] == 0xff) &&
		    (next[2] <= 0x04 || next[2] >= 0xfc))
			continue;
		/* mov $number,%eax is b8 and four bytes, or 48 c7 c0 and four bytes. */
		for (size_t back = 5; back <= 40 && back <= i && !found; back++) {
			const unsigned char *p = next - back;
			uint32_t number;

			if (p[0] == 0xb8)
				number = word_at(p + 1);
			else if (back >= 7 && p[0] == 0x48 && p[1] == 0xc7 && p[2] == 0xc0)
				number = word_at(p + 3);
			else
				continue;
			if (number < NUMBERS) {
				found = true;
				note_number(calls, number);
			}
		}
		for (int c = 0; c < 2 && !found; c++)
			found = size - i >= 8 && memcmp(next + 2, compare[c], 6) == 0;
		calls->sites += found;
	}
}

/* Find the instruction svc #0, and before it the movz that loads the number into x8 or w8. */
static void scan_aarch64(const unsigned char *code, size_t size, struct raw_calls *calls)
{
	const uint32_t svc = 0xd4000001, movz_x8 = 0xd2800008, movz_w8 = 0x52800008;

	for (size_t i = 0; i + 4 <= size; i += 4) {
		if (word_at(code + i) != svc)
			continue;
		calls->sites++;
		for (size_t back = 4; back <= 64 && back <= i; back += 4) {
			uint32_t word = word_at(code + i - back) & ~UINT32_C(0x1fffe0);

			if (word != movz_x8 && word != movz_w8)
				continue;
			note_number(calls, word_at(code + i - back) >> 5 & 0xffff);
			break;
		}
	}
}

struct scan {
	void (*of_machine)(const unsigned char *code, size_t size, struct raw_calls *calls);
	struct raw_calls *calls;
};

static void scan_code(const unsigned char *code, size_t size, void *arg)
{
	const struct scan *scan = arg;

	scan->of_machine(code, size, scan->calls);
}

void raw_calls_find(const struct object *o, struct raw_calls *ret)
{
	struct scan scan = { .calls = ret };

	memset(ret, 0, sizeof(*ret));
	if (o->header.e_machine == EM_X86_64)
		scan.of_machine = scan_x86_64;
	else if (o->header.e_machine == EM_AARCH64)
		scan.of_machine = scan_aarch64;
	else
		return;
	object_each_code(o, scan_code, &scan);
}
