#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/watch.sh - does tests/helpers/watch know a hang from a busy machine?
. "$(dirname "$0")/../../lib/judge.inc"

run "$watch" -q 1 sleep 100
like 'a command that sleeps hangs' '124 watch: it hangs: less than *' "$code $err"

# It wants little CPU time, and comes last on a CPU that others keep busy.
for _ in 1 2 3 4; do
	timeout 3 setsid taskset -c 0 sh -c 'while :; do :; done' &
done
run "$watch" -q 0.5 sh -c 'echo 19 >/proc/self/autogroup
	exec chrt -i 0 taskset -c 0 perl -e "select undef, undef, undef, 0.001 for 1 .. 400"'
same 'a command that waits for a CPU does not' 0 "$code"
wait

run "$watch" sh -c 'sleep 100 & setsid sleep 100 & sh -c "sleep 100 & echo \$!"; echo $!; exit 3' 
same 'the exit status is the command'"'"'s' 3 "$code"
for pid in $out; do
	yes 'what it leaves behind is killed' eventually test ! -e "/proc/$pid"
done

run "$watch" sh -c 'kill -SEGV $$'
same 'a signal that kills it is told' 139 "$code"
finish
