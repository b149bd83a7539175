#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/allocators.sh - allocators with caches by thread, preloaded before and
# after the library: the test programs that use threads and memory most.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"

names="thread_basic thread_tls thread_tls_cxx stress_churn sync_cxx20 fork_basic stdio_threads
	syscall_futex syscall_futex_wake cond_stress"
places="/usr/lib/$(gcc -dumpmachine) /usr/lib"

# find_library NAME...: the first of them that there is.
find_library()
{
	local name place

	for name in "$@"; do
		for place in $places; do
			[ -e "$place/$name" ] && { echo "$place/$name"; return; }
		done
	done
	die "no $*: run scripts/dev/deps.sh check"
}

for allocator in "$(find_library libjemalloc.so.2)" \
		"$(find_library libtcmalloc_minimal.so.4)" \
		"$(find_library libmimalloc.so.2.0 libmimalloc.so.2)"; do
	for preload in "$allocator:$library" "$library:$allocator"; do
		for program in $names; do
			for processors in 1 3; do
				succeeds "$program with LD_PRELOAD=$preload, $processors processors" \
					env LD_PRELOAD="$preload" FIBERIZE_PROCESSORS=$processors \
					"$programs/$program"
			done
		done
	done
done
finish
