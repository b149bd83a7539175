#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/service/service_calls.sh - the system calls that a unit must allow for the library, as scripts/service/filter.awk
# has them: what programs call with it, and not natively, is among them.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need systemd-analyze strace
strace -o /dev/null true 2>/dev/null || { skip 'calls' 'strace may not trace here'; finish; }

systemd-analyze syscall-filter >"$work/groups" 2>/dev/null

# calls NAME COMMAND...: the names of the system calls that it makes, in $work/NAME
calls()
{
	must limited strace -f -qq -o "$work/log" "${@:2}" >/dev/null
	# A call that waits has two lines; the second one begins otherwise.
	sed -nE 's/^[0-9]+ +([a-z][a-z0-9_]*)\(.*/\1/p' "$work/log" | grep -v '^syscall_' | sort -u >"$work/$1"
}

for program in "$programs/thread_basic" "$programs/io_socket" "$helpers/all_rungs"; do
	calls native "$program"
	{
		cat "$work/native"
		# As if the unit allowed these alone.
		awk -f "$root/scripts/service/filter.awk" -v kind=allow -v "words=$(tr '\n' ' ' <"$work/native")" -v number= \
			"$work/groups" | sed -n 's/^missing //p'
		sed -n '/^@default$/,/^$/s/^ *\([a-z0-9_]*\)$/\1/p' "$work/groups"
	} | sort -u >"$work/allowed"
	for backend in uring epoll; do
		calls fibers -E "LD_PRELOAD=$library" -E "FIBERIZE_BACKEND=$backend" "$program"
		same "${program##*/}, $backend: no other calls" '' "$(comm -13 "$work/allowed" "$work/fibers" | xargs)"
	done
done
finish
