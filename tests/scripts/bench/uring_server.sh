#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/bench/uring_server.sh - the server that benchmarks compare with: who has sent all gets all back; a
# connection that breaks while all buffers are in use is freed once.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need python3

cat >"$work/client.py" <<'END'
import select, socket, struct, sys
port, what = int(sys.argv[1]), sys.argv[2]

def connected():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", port))
    return s

# Send and read nothing, until the server reads no more.
def fill(s):
    s.setblocking(False)
    while select.select([], [s], [], 1)[1]:
        s.send(b"x" * 65536)
    s.setblocking(True)

if what == "half":
    # With multishot the server has room for 16 MB; otherwise it reads no more until it has sent.
    sent = 12 << 20 if sys.argv[3] == "multishot" else 4000
    s = connected()
    s.sendall(b"x" * sent)
    s.shutdown(socket.SHUT_WR)
    got = 0
    while n := len(s.recv(65536)):
        got += n
    print(got == sent)
else:
    for _ in range(3):
        s = connected()
        fill(s)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        t = connected()
        t.sendall(b"ping")
        print(t.recv(4).decode())
END

# An address that is used after it was freed is told.
must "$CC" -g -fsanitize=address -D_GNU_SOURCE -I"$root" -o "$work/server" "$root/scripts/bench/uring_server.c" -luring
for kind in one-shot multishot; do
	words=()
	[ $kind = one-shot ] || words=(-m)
	launch "$work/server" "${words[@]}"
	at_exit kill -KILL "$pid"
	if ! eventually grep -qs listening "$work/said" || ! kill -0 "$pid" 2>/dev/null; then
		skip "$kind" "$(tail -n 1 "$work/complaints")"
		continue
	fi
	port=$(sed -n 's/^listening on //p' "$work/said")
	same "$kind: who has sent all gets all back" True "$(limited python3 "$work/client.py" "$port" half $kind)"
	same "$kind: others are served after a connection that breaks" 'ping ping ping' \
		"$(limited python3 "$work/client.py" "$port" break | xargs)"
	kill -TERM "$pid"
	wait "$pid"
	same "$kind: the server ends well" 0 "$?$(cat "$work/complaints")"
done
finish
