#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect_places.sh - the frames of 70 places in which a thread can wait: those of
# "fiberize bt", of "fiber apply" in gdb, and of both with a core file are the frames that gdb has for
# the same program natively.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need gdb
places=$helpers/places
lib=$root/tests/lib
cd "$work" || exit 1

by_gdb()
{
	limited gdb -nx -batch -x "$lib/frames.gdb.py" -x "$build/gdb.py" "$@" 2>gdb.err
}

# frames FILE TAILS: FILE in a form for comparisons
frames()
{
	awk -v SOURCE=places.cc -v TAILS="$2" -f "$lib/frames.awk" "$1"
}

# Has each thread come to its place?  No thread runs, and each is in the call in which it was when we
# looked before.  gdb would interrupt some calls.
native_settled()
{
	cat "/proc/$pid/task"/*/syscall >calls.new
	! grep -q running calls.new && cmp -s calls.new calls.old && return
	mv calls.new calls.old
	return 1
}

fibers_settled()
{
	run "$fiberize" bt --each "$pid"
	frames out 0 >fibers.new
	cmp -s fibers.new fibers.old && return
	mv fibers.new fibers.old
	return 1
}

# compare NAME TAILS FIBERS: a case for each thread
compare()
{
	local verdict thread count=0
	while read -r verdict thread; do
		count=$((count + 1))
		same "$1: ${thread%%:*}" same "$verdict${thread#"${thread%%:*}"}"
	done < <(awk -f "$lib/same_frames.awk" <(frames native "$2") <(frames "$3" "$2"))
	same "$1: all threads" "$(grep -c '^thread' native)" "$count"
}

start "$places"
must eventually native_settled
by_gdb -p "$pid" -ex frames-of-threads >native
yes 'at least 70 places' [ "$(grep -c '^thread' native)" -ge 70 ]
stop

ulimit -c unlimited
start "$fiberize" "$places"
must eventually fibers_settled
"$fiberize" bt --each "$pid" >fibers
compare bt 0 fibers
by_gdb -p "$pid" -ex 'fiber apply all frames' >fibers.gdb
compare gdb 1 fibers.gdb

# Stacks in use, and no others, are in the core file that the kernel writes.
kill -ABRT "$pid"
wait "$pid"
core=$(find . -name 'core*' -print -quit)
if [ -z "$core" ]; then
	skip 'core file' "the kernel writes none here: $(cat /proc/sys/kernel/core_pattern)"
	finish
fi
"$fiberize" bt --each --core "$core" >fibers.core
compare 'bt --core' 0 fibers.core
by_gdb "$places" "$core" -ex 'fiber apply all frames' >fibers.core.gdb
compare 'gdb, core' 1 fibers.core.gdb
finish
