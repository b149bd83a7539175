/* SPDX-License-Identifier: MIT */
/* tests/fuzz/program.c - an ELF file or a script: as a program, a library of one, and the library to preload. */
#include "fuzz.h"

#define main look_at_files
#include "tests/helpers/fuzz.c"
#undef main

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	current = fuzz_file(bytes, size);
	look_at(current);
	return 0;
}
