#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/demo.sh - runs "make demo": measures an unmodified threaded server natively and
# under fiberize, with equal load.  Takes about 40 seconds.
set -eu
cd "$(dirname "$0")/../.."
build=${1-build}
fiberize=$build/fiberize
server=$build/tests/programs/legacy_server

if cpus=$(scripts/dev/two-cpus.sh); then
	set -- --cpus "$cpus"
else
	echo 'Only one CPU here: server and load share it, so expect less.' >&2
	set --
fi

show()
{
	printf '\n$ fiberize bench %s\n' "$*" | sed "s|$build/tests/programs/|./|"
	"$fiberize" bench "$@"
}

cat <<END
legacy_server (tests/programs/io/legacy_server.c) makes a thread for each connection
and blocks in read and write.  It is the same binary on both sides.

1. HTTP/1.1 with keep-alive, driven by wrk
END
show "$@" --connections 128 --duration 3 --rounds 3 -- "$server" -p 0

printf '\n2. Raw TCP echo of 64 bytes, every answer compared\n'
show "$@" --echo --connections 128 --duration 3 --rounds 3 -- "$server" -e -p 0

printf '\n'
cat <<END
Below 1 the ratio is in favour of fibers, but for requests/s, where it is above.
Your own program: $fiberize PROGRAM, and fiberize bench -- PROGRAM.
END
