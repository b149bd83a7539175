#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/haproxy.sh - curl through haproxy: eight threads, each with an epoll
# instance and a timer on its CPU time, which "show threads" interrupts by a signal.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
TRANSFERS=400
need curl "$python" haproxy

serve_files
port=$(free_port)
cat >"$work/haproxy.conf" <<END
global
	nbthread 8
	maxconn 1000
	stats socket $work/control mode 600 level admin
defaults
	mode http
	timeout connect 1h
	timeout client 1h
	timeout server 1h
frontend all
	bind 127.0.0.1:$port
	default_backend files
backend files
	server one 127.0.0.1:$files_port
END
begin server "${fiberized[@]}" haproxy -db -f "$work/haproxy.conf"
server=$started
wait_for_port "$server" "$port"
fetch "$port"
cat >"$work/ask.py" <<'END'
import socket
import sys

s = socket.socket(socket.AF_UNIX)
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
	limited "$python" "$work/ask.py" "$work/control" >"$work/threads.log" 2>&1 ||
		die 'no answer to "show threads"'
	seen=$(grep -c 'Thread [1-8] ' "$work/threads.log")
	same "show threads: all of them" 8 "$seen"
done
idle "$server"
stop "$server" 0 USR1
stop "$files" 0
finish
