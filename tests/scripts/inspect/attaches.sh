#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/attaches.sh - ps, bt, stat and trace look at a server a thousand times in all while it answers:
# each look succeeds, and no answer is lost or wrong.
#
#	attaches.sh [TIMES]

# Dollars in single quotes belong to awk.
# shellcheck disable=SC2016
# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
times=$((${1-1000} / 4))
client=$build/libexec/echo_client

"$fiberize" "$programs/legacy_server" -e -p 0 >"$work/said" 2>&1 &
server=$!
at_exit kill -KILL $server
must eventually grep -q listening "$work/said"
port=$(sed -n 's/^listening on //p' "$work/said")

# It compares each answer.  Its connections come and go.
load()
{
	while [ ! -e "$work/over" ]; do
		"$client" -c 64 -d 1 -w 0 -t 3600 "$port" >>"$work/load" 2>&1 || echo failed >>"$work/load"
	done
}
# The server makes its first thread for its first connection: before, there is nothing to see.
must "$client" -c 1 -d 0.1 -w 0 "$port" >>"$work/load"
load &
loading=$!

# looks COMMAND...: does it succeed each time?
looks()
{
	local bad='' i code
	for ((i = 0; i < times; i++)); do
		"$fiberize" "$@" $server >"$work/out" 2>"$work/err"
		code=$?
		[ $code = 0 ] && [ -s "$work/out" ] || bad="$bad $code: $(head -n 3 "$work/err")"
	done
	same "$1, $times times" '' "$bad"
}

looks ps
looks bt
looks stat
looks trace --summary --seconds 0.01
: >"$work/over"
wait $loading
same 'no answer is lost or wrong' '' "$(grep -v -E '^[a-z0-9_.]+ [0-9.e+-]+$' "$work/load"; grep '^errors [^0]' "$work/load")"
yes 'there were answers' awk '$1 == "requests_total" { n += $2 } END { exit !n }' "$work/load"
same 'nobody traces the server' '' "$(grep -h '^TracerPid:.[1-9]' /proc/$server/task/*/status)"
kill -TERM $server
wait $server
same 'the server ends as it should' 0 $?
finish
