#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/allocators.sh - allocators with caches by thread, preloaded before and
# after the library: the test programs that use threads and memory most.
. "$(dirname "$0")/common.inc"

build=${FZ_BUILD:-$root/build}
lib=$build/libfiberize.so
programs="thread_basic thread_tls thread_tls_cxx stress_churn sync_cxx20 fork_basic stdio_threads
	syscall_futex cond_stress"
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
	fail "no $*: run scripts/dev/deps.sh check"
}

for allocator in "$(find_library libjemalloc.so.2)" \
		"$(find_library libtcmalloc_minimal.so.4)" \
		"$(find_library libmimalloc.so.2.0 libmimalloc.so.2)"; do
	for preload in "$allocator:$lib" "$lib:$allocator"; do
		for program in $programs; do
			for processors in 1 3; do
				what="$program with LD_PRELOAD=$preload, $processors processors"
				out=$(LD_PRELOAD=$preload FIBERIZE_PROCESSORS=$processors \
					timeout 100 "$build/tests/programs/$program" 2>&1) ||
					fail "$what: exit status $?: $out"
				[ "$(tail -n 1 <<<"$out")" = EXIT-SUCCESS ] || fail "$what: $out"
			done
		done
	done
done
