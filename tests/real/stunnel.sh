#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/stunnel.sh - TLS connections through stunnel, one thread per connection. After a hundred
# of them have ended, memory is as whole as before: stunnel does not map new memory for each message.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need "$python" openssl stunnel4

cat >"$work/echo.py" <<'END_OF_ECHO'
import asyncio, sys

async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", int(sys.argv[1]), backlog=200)
    await server.serve_forever()

asyncio.run(main())
END_OF_ECHO

# Prints how many pages the server has had to be given for each message of the last connection.
cat >"$work/client.py" <<'END_OF_CLIENT'
import os, socket, ssl, sys, threading, time

port, server = int(sys.argv[1]), sys.argv[2]
context = ssl.create_default_context(cafile=sys.argv[3])
context.check_hostname = False

def connect():
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(s)

def talk(s, n):
    for i in range(n):
        message = os.urandom(1 + i * 37 % 9000)
        s.sendall(message)
        got = b""
        while len(got) < len(message):
            more = s.recv(65536)
            assert more
            got += more
        assert got == message

def faults():
    with open("/proc/" + server + "/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[7])

good = []
all_talk = threading.Barrier(100)

def one():
    s = connect()
    all_talk.wait()
    talk(s, 30)
    all_talk.wait()
    s.close()
    good.append(1)

threads = [threading.Thread(target=one) for _ in range(100)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert len(good) == 100
time.sleep(1)
s = connect()
talk(s, 100)
before = faults()
talk(s, 1000)
print((faults() - before) // 1000)
END_OF_CLIENT

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$work/key.pem" \
	-out "$work/cert.pem" >"$work/openssl.log" 2>&1 || die "openssl failed"
cat "$work/key.pem" "$work/cert.pem" >"$work/both.pem"

# serve NAME COMMAND...: what the client has printed goes to $work/NAME.
serve() {
	local name=$1 port server
	shift
	port=$(free_port)
	cat >"$work/stunnel.conf" <<-END
		foreground = yes
		pid =
		syslog = no
		debug = 3
		cert = $work/both.pem
		[echo]
		accept = 127.0.0.1:$port
		connect = 127.0.0.1:$echo_port
	END
	begin "$name" "$@" stunnel4 "$work/stunnel.conf"
	server=$started
	wait_for_port "$server" "$port"
	limited "$python" "$work/client.py" "$port" "$server" "$work/cert.pem" >"$work/$name" \
		2>"$work/client.log" || die "$name: the client failed with $?"
	stop "$server" 0
}

echo_port=$(free_port)
begin echo "$python" "$work/echo.py" "$echo_port"
echo=$started
wait_for_port "$echo" "$echo_port"
serve native
serve server "${fiberized[@]}"
yes "no more pages for each message than natively" \
	test "$(cat "$work/server")" -le "$(cat "$work/native")"
stop "$echo" 143
finish
