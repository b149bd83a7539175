#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/in_time.sh NAME SECONDS SCRIPT... - runs test scripts one after the other, which together may take SECONDS, for
# "make check-oci" and "make fleet".
#
# Its last line says how many passed, which were skipped and why, and how long all took.  Exit status: 0; 77 if all were
# skipped; 1 if one failed or the time was up.
set -u
name=$1 limit=$2
shift 2
SECONDS=0 passed=0 failed=0 child=''
skipped=()
trap '[ -z "$child" ] || kill "$child"; exit 130' HUP INT TERM

output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
for script; do
	left=$((limit - SECONDS)) over=''
	if [ $left -le 0 ]; then
		status=124 over=1
	else
		begun=${EPOCHREALTIME//[!0-9]/}
		timeout --kill-after=20 $left "$script" >"$output" 2>&1 &
		child=$!
		wait "$child"
		status=$?
		child=
		# A script may end with 124 or 137 by itself, long before that.
		[ $((${EPOCHREALTIME//[!0-9]/} - begun)) -lt $((left * 1000000)) ] || over=1
		cat "$output"
	fi
	case $over:$status in
	*:0)	passed=$((passed + 1)) ;;
	*:77)	skipped+=("$(basename "$script" .sh): $(sed -n 's/^SKIP [^:]*: //p' "$output" | head -n 1)") ;;
	1:124 | 1:137)
		echo "$name: FAIL: the limit of $limit s for all of it was reached in ${script##*/}"
		exit 1
		;;
	*)	failed=$((failed + 1)) ;;
	esac
done
printf '%s: %d of %d scripts passed, %d failed, %d skipped; %d s of at most %d s\n' "$name" $passed $# $failed ${#skipped[@]} \
	$SECONDS "$limit"
[ ${#skipped[@]} -eq 0 ] || printf "$name: skipped: %s\n" "${skipped[@]}"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
