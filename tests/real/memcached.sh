#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/memcached.sh - memcached answers 32 connections as it does natively.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need "$python" memcached

cat >"$work/client.py" <<'END'
import hashlib, random, socket, sys, threading

def talk(port, n, ret):
    r = random.Random(n)
    s = socket.create_connection(("127.0.0.1", port))
    f = s.makefile("rwb")
    have, said = {}, hashlib.sha256()

    def line():
        got = f.readline()
        said.update(got)
        return got

    def value():
        first = line()
        if first == b"END\r\n":
            return None
        size = int(first.split()[3])
        data = f.read(size + 2)
        said.update(data)
        assert line() == b"END\r\n"
        return data[:-2]

    for i in range(400):
        key = b"k%d-%d" % (n, r.randrange(20))
        what = r.choice(("set", "get", "append", "delete", "incr", "gets"))
        data = r.randbytes(r.choice((1, 100, 4000, 100000)))
        if what in ("set", "append"):
            f.write(b"%s %s 0 0 %d\r\n%s\r\n" % (what.encode(), key, len(data), data))
            f.flush()
            stored = line() == b"STORED\r\n"
            if what == "set":
                assert stored
                have[key] = data
            else:
                # What grows beyond an item may not be stored any more.
                if stored:
                    have[key] += data
        elif what == "get":
            f.write(b"get %s\r\n" % key)
            f.flush()
            assert value() == have.get(key)
        elif what == "delete":
            f.write(b"delete %s\r\n" % key)
            f.flush()
            assert (line() == b"DELETED\r\n") == (have.pop(key, None) is not None)
        elif what == "incr":
            f.write(b"set n%d 0 0 2\r\n41\r\nincr n%d 1\r\n" % (n, n))
            f.flush()
            assert line() == b"STORED\r\n" and line() == b"42\r\n"
        else:
            keys = list(have)[:10]
            if keys:
                f.write(b"".join(b"get %s\r\n" % k for k in keys))
                f.flush()
                for k in keys:
                    assert value() == have[k]
    ret[n] = said.hexdigest()

answers = {}
threads = [threading.Thread(target=talk, args=(int(sys.argv[1]), n, answers))
           for n in range(32)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for n in range(32):
    print(n, answers.get(n, "failed"))
END

# serve NAME COMMAND...: what it answered goes to $work/NAME.
serve() {
	local name=$1 port server
	shift
	port=$(free_port)
	begin "$name" "$@" memcached -u nobody -U 0 -l 127.0.0.1 -p "$port" -t 4
	server=$started
	wait_for_port "$server" "$port"
	limited "$python" "$work/client.py" "$port" >"$work/$name" 2>"$work/client.log" ||
		die "$name: the client failed with $?"
	grep -q failed "$work/$name" && die "$name: a wrong answer"
	stop "$server" 0
}

serve native
serve server "${fiberized[@]}"
yes "answers as natively" cmp -s "$work/native" "$work/server"
finish
