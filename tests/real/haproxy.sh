#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/haproxy.sh - curl through haproxy: eight threads, each with an epoll
# instance and a timer on its CPU time, which "show threads" interrupts by a signal.
. "$(dirname "$0")/common.inc"
TRANSFERS=400
need curl $python haproxy

serve_files
port=$(free_port)
cat >"$work/haproxy.conf" <<END
global
	nbthread 8
	maxconn 1000
	stats socket $work/control mode 600 level admin
defaults
	mode http
	timeout connect 20s
	timeout client 20s
	timeout server 20s
frontend all
	bind 127.0.0.1:$port
	default_backend files
backend files
	server one 127.0.0.1:$files_port
END
begin server "${run[@]}" haproxy -db -f "$work/haproxy.conf"
server=$started
wait_for_port "$server" "$port"
fetch "$port"
cat >"$work/ask.py" <<'END'
import socket
import sys

s = socket.socket(socket.AF_UNIX)
s.settimeout(15)
s.connect(sys.argv[1])
s.sendall(b"show threads\n")
answer = b""
while True:
    more = s.recv(65536)
    if not more:
        break
    answer += more
print(answer.decode())
END
for ((i = 0; i < 3; i++)); do
	$python "$work/ask.py" "$work/control" >"$work/threads.log" 2>&1 ||
		fail 'no answer to "show threads"'
	seen=$(grep -c 'Thread [1-8] ' "$work/threads.log")
	[ "$seen" = 8 ] || fail "$seen of 8 threads answered"
done
idle "$server"
stop "$server" 0 USR1
stop "$files" 0
