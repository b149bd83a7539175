#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/check/fuzz_corpus.sh [SECONDS] - the fuzz targets (tests/fuzz/README.md) on their corpus, under
# sanitizers; with SECONDS each looks for more so long, one after the other.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need clang
seconds=${1-0}
case $seconds in
*[!0-9]* | '')	echo "fuzz_corpus.sh: not a number: $seconds"; exit 2 ;;
esac
env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" B="$build" fuzz-targets >"$work/make" 2>&1 ||
	die "make fuzz-targets: $(tail -n 3 "$work/make" | tr '\n' ' ')"
mkdir -p "$build/tests/failures"

for source in "$root"/tests/fuzz/corpus/*; do
	name=${source##*/}
	run "$build/tests/fuzz/$name" "$source"/*
	same "$name: the corpus" 0 "$code"
	[ "$code" -eq 0 ] || said
	[ "$seconds" -gt 0 ] || continue
	new=$build/tests/fuzz/new/$name
	mkdir -p "$new"
	# A busy machine is no hang: 300 s for one input.
	if "$build/tests/fuzz/$name" -max_total_time="$seconds" -timeout=300 -max_len=65536 \
			-artifact_prefix="$build/tests/failures/$name-" "$new" "$source" >"$work/log" 2>&1; then
		pass "$name: $(grep -o '^#[0-9]*[[:space:]]*DONE.*corp: [0-9]*' "$work/log")"
	else
		fail "$name" "its input is in ${build#"$root/"}/tests/failures"
		grep -v '^#' "$work/log" | tail -n 30
	fi
done
finish
