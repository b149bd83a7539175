#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/starts.sh - what libfiberize-preload.so costs each program of a machine that starts: 1,000 starts of
# /bin/true in turn without it, with it, and with profiles for others.
#
# The promise is 0.3 ms at most.  Elapsed time would judge what else runs here, so this judges CPU time, and by the median of
# the ratios in turn: a slower machine has slower starts without the library, too.  Where the promise was made, a start takes 0.48
# ms of CPU time without the library, so that 0.3 ms more are a ratio of 1.62; measured were 1.10 and 1.14.  The
# system calls, which are most of it, are counted, with two more than there were allowed.

# shellcheck source=tests/lib/everywhere.inc
. "$(dirname "$0")/../../lib/everywhere.inc"
must chmod 755 "$work"
need python3

run env FZ_BUILD="$place" "$root/scripts/bench/starts.py" 1000
same '1,000 starts' '0:' "$code:$err"
cat "$work/out"
# cheap NAME: the ratio of this case
cheap()
{
	local ratio
	ratio=$(sed -n "s/^$1  .* //p" "$work/out")
	if [ -n "$ratio" ] && awk -v ratio="$ratio" 'BEGIN { exit !(ratio > 0.5 && ratio <= 1.62) }'; then
		pass "$1: CPU time of a start: $ratio times"
	else
		fail "$1: CPU time of a start" "wanted at most 1.62 times, got <$ratio>"
	fi
}
cheap 'no profile'
cheap 'profiles of 20 others'

# calls: how many system calls a start makes
calls()
{
	strace -qq -o "$work/calls" true && wc -l <"$work/calls"
}
# few NAME MOST: so many more than without
few()
{
	local now
	now=$(calls)
	yes "$1: $((now - without)) system calls more" [ $((now - without)) -le "$2" -a $((now - without)) -gt 0 ]
}
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	not_named
	without=$(calls)
	named
	# Nine of them are the loader's, to map the library.
	few 'no profile' 17
	profile "$(printf '[/opt/service-%d]\neverywhere = 1\n' {1..20})"
	few 'profiles of 20 others' 26
else
	skip 'system calls' 'strace is not installed, or may not trace here'
fi
finish
