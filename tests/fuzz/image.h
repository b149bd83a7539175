/* SPDX-License-Identifier: MIT */
#ifndef FUZZ_IMAGE_H
#define FUZZ_IMAGE_H

/*
 * tests/fuzz/image.h - what "fiberize ps" reads of a process, as a file: a byte that chooses options, then
 * pieces.  Each piece is its head, and for memory the bytes.
 */

#include <stdint.h>

enum image_kind {
	IMAGE_MAPPING,			/* address to end, value: offset in the file */
	IMAGE_THREAD,			/* value: tid */
	IMAGE_MEMORY,			/* end - address bytes follow */
};

struct image_head {
	uint8_t kind;
	uint64_t address, end, value;
} __attribute__((packed));

#endif
