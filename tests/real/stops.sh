#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/stops.sh - servers end by SIGTERM and SIGINT as they do natively, while
# connections are open: status compared.  STOPS=100 for each instead of 3.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need "$python" tinyproxy microsocks
STOPS=${STOPS-3}

cat >"$work/tinyproxy.conf" <<END
Listen 127.0.0.1
Timeout 60
MaxClients 200
LogLevel Critical
LogFile "$work/tinyproxy.log"
END

make_file_server
mkdir -p "$work/files"

cat >"$work/hold.py" <<'END'
import socket, sys, time
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for i in range(8)]
print("held", flush=True)
time.sleep(3600)
END

# is_calm PID: none of its threads had anything to do, the last four times
is_calm() {
	calm=$((calm + 1))
	! grep -q '^State:.*[RD] (' "/proc/$1"/task/*/status 2>/dev/null || calm=0
	[ $calm -ge 4 ]
}

# one SIGNAL PORT COMMAND...: the status it ends with, or a word about what went wrong.
one() {
	local signal=$1 port=$2 server holder calm=0 status=hung
	shift 2
	# SIGINT is ignored in what a shell without job control puts in the background.
	$python -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@" >"$work/server.log" 2>&1 </dev/null &
	server=$!
	pids+=("$server")
	wait_for_port $server "$port"
	$python "$work/hold.py" "$port" >"$work/hold" 2>/dev/null </dev/null &
	holder=$!
	pids+=("$holder")
	eventually [ -s "$work/hold" ]
	# All are served, not only in the backlog, however long that takes.
	eventually is_calm $server
	kill -"$signal" $server
	if eventually gone $server; then
		wait $server
		status=$?
	fi
	kill -KILL $holder $server 2>/dev/null
	wait $holder 2>/dev/null
	rm -f "$work/hold"
	echo "$status"
}

command_for() {
	case $1 in
	python)		echo "$python $work/file_server.py $2 $work/files" ;;
	microsocks)	echo "microsocks -i 127.0.0.1 -p $2" ;;
	tinyproxy)	echo "tinyproxy -d -c $work/tinyproxy.conf.$2" ;;
	*)		echo "$programs/accept_loop $2 ${1#loop}" ;;
	esac
}

for what in python microsocks tinyproxy loop0 loop1; do
	for signal in TERM INT; do
		port=$(free_port)
		{ cat "$work/tinyproxy.conf"; echo "Port $port"; } >"$work/tinyproxy.conf.$port"
		read -ra command <<<"$(command_for $what "$port")"
		want=$(one $signal "$port" "${command[@]}")
		for ((i = 0; i < STOPS; i++)); do
			port=$(free_port)
			{ cat "$work/tinyproxy.conf"; echo "Port $port"; } >"$work/tinyproxy.conf.$port"
			read -ra command <<<"$(command_for $what "$port")"
			got=$(one $signal "$port" "${fiberized[@]}" "${command[@]}")
			same "$what by SIG$signal: status" "$want" "$got"
		done
	done
done
finish
