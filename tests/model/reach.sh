#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/reach.sh OBJECT... - does an explored object reach around the model?  Names each that has
# an instruction which the hooks do not see (a system call, a locked one, a change of the thread
# pointer), or that calls what is neither explored, nor the model's, nor on the list below.  Exit 1.
set -eu

# Of libc: they only read, memory that is private or constant.
allowed='__popcountdi2 bcmp memchr memcmp strchr strcspn strlen'
# Of the linker, the compiler's hooks, and what host.c, kernel.c and hooks.c have instead of libc.
own='_GLOBAL_OFFSET_TABLE_ __ehdr_start __rseq_offset __rseq_size etext __sanitizer_cov_pcs_init
	__sanitizer_cov_trace_pc_guard __sanitizer_cov_trace_pc_guard_init __start___sancov_guards __stop___sancov_guards
	__start___sancov_pcs __stop___sancov_pcs'
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086 # words
nm -g --defined-only "$@" ${MODEL_OBJECTS:-} | awk 'NF == 3 { print $3 }' >"$work/defined"
# shellcheck disable=SC2086 # words
printf '%s\n' $allowed $own >>"$work/defined"
sort -u -o "$work/defined" "$work/defined"
for object; do
	objdump -d --no-show-raw-insn "$object" | awk -v object="$object" '
		/^[0-9a-f]+ <.*>:$/ { place = $2 }
		$2 ~ /^(syscall|sysenter|int|lock|rdtsc|rdtscp|pause|cpuid|[ms]fence|lfence|(wr|rd)[fg]sbase)$/ ||
		($2 ~ /^xchg/ && /\(/) {
			print object ": " place " " $2 " reaches around the model"; found = 1
		}
		END { exit found }' || failed=1
	nm -u "$object" | awk '{ print $2 }' | grep -v '^__tsan_' | sort -u | comm -23 - "$work/defined" >"$work/unknown"
	while read -r name; do
		echo "$object: calls $name, which is not modelled"
		failed=1
	done <"$work/unknown"
done
exit $failed
