#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/stops.sh - servers end by SIGTERM and SIGINT as they do natively, while
# connections are open: status compared.  STOPS=100 for each instead of 3.
. "$(dirname "$0")/common.inc"
need $python tinyproxy microsocks
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
time.sleep(60)
END

# wait_for_calm PID: none of its threads has had anything to do for some time
wait_for_calm() {
	local tries calm=0
	for ((tries = 0; tries < 400 && calm < 4; tries++)); do
		sleep 0.025
		calm=$((calm + 1))
		! grep -q '^State:.*[RD] (' "/proc/$1"/task/*/status 2>/dev/null || calm=0
	done
}

# one SIGNAL PORT COMMAND...: the status it ends with, or a word about what went wrong.
one() {
	local signal=$1 port=$2 server holder tries status
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
	for ((tries = 0; tries < 1500; tries++)); do
		[ -s "$work/hold" ] && break
		sleep 0.02
	done
	# All are served, not only in the backlog, however long that takes.
	wait_for_calm $server
	kill -"$signal" $server
	for ((tries = 0; tries < 1500; tries++)); do
		kill -0 $server 2>/dev/null || break
		sleep 0.02
	done
	status=hung
	if ! kill -0 $server 2>/dev/null; then
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
	*)		echo "$root/build/tests/programs/accept_loop $2 ${1#loop}" ;;
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
			got=$(one $signal "$port" "${run[@]}" "${command[@]}")
			[ "$got" = "$want" ] ||
				fail "$what by SIG$signal: status $got, natively $want"
		done
	done
done
exit 0
