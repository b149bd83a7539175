/* SPDX-License-Identifier: MIT */
/* tests/fuzz/profile.c - a profile, and what it sets. */
#include "fuzz.h"

#define main look_at_files
#include "tests/helpers/fuzz.c"
#undef main

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	current = fuzz_file(bytes, size);
	read_as_profile(current);
	return 0;
}
