#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/everywhere_roots.sh - libfiberize-preload.so in /etc/ld.so.preload of roots as containers have them: with
# a libc, a program and nothing else, where libfiberize.so is missing, damaged, of another machine or unreadable; of other
# releases of Debian, with their glibc; and beside objects whose tables of symbols are empty or missing.

# The network is for apt-get in check-all; the rest of the script has none.
if [ "${FZ_EVERYWHERE-}" != inside ] && [ -n "${FZ_ALL-}" ]; then
	top=$(cd "$(dirname "$0")/../../.." && pwd)
	for suite in bullseye trixie; do
		"$top/scripts/dev/glibc-root.sh" "${FZ_BUILD:-$top/build}/glibc-$suite" $suite >/dev/null 2>&1
	done
fi
# shellcheck source=tests/lib/everywhere.inc
. "$(dirname "$0")/../../lib/everywhere.inc"
need setpriv python3

maps=/proc/self/maps

# ---- a libc, a program, and nothing else

cat=$(command -v cat)
bare=$work/bare
mkdir -p "$bare/etc/fiberize" "$bare/proc" "$bare$place"
cp -a "$place/." "$bare$place"
for file in "$cat" $(ldd "$cat" | grep -o '/[^ ]*' | grep -v fiberize); do
	install -D -m 755 "$file" "$bare$file"
done
named
cp /etc/ld.so.preload "$bare/etc"
printf '[cat]\neverywhere = 1\n' >"$bare/etc/fiberize/test.conf"
must mount -t proc none "$bare/proc"
at_exit umount -l "$bare/proc"
same 'it has no libdl, no shell, no cache of libraries' '' "$(find "$bare" -name 'libdl*' -o -name sh -o -name ld.so.cache)"
is_on 'bare: on' yes chroot "$bare" "$cat" $maps
proper=$bare$place/libfiberize.so
others=(chroot --userspec=65534:65534 "$bare" "$cat")
is_on 'bare: on for others' yes "${others[@]}" $maps
# broken NAME COMMAND...: after that the library is not loaded, for root and for others, and the program says nothing
broken()
{
	local name=$1
	shift
	must "$@"
	is_on "bare: $name" no chroot "$bare" "$cat" $maps
	is_on "bare: $name, for others" no "${others[@]}" $maps
	run chroot "$bare" "$cat" /etc/ld.so.preload
	same "bare: $name: output" "$(cat /etc/ld.so.preload)" "$out"
	rm -rf "$proper"
	must install -m 755 "$library" "$proper"
}
# bytes AT BYTES: of the library, which is one file with others no more
bytes()
{
	printf %b "$2" | dd of="$proper" bs=1 seek="$1" conv=notrunc status=none
}
broken 'missing' rm "$proper"
broken 'empty' truncate -s 0 "$proper"
broken 'cut off' truncate -s 100000 "$proper"
# The end of what is mapped of the file; section headers and the like are behind it.
mapped=$(readelf -lW "$library" | python3 -c 'import sys
print(max(int(w[1], 16) + int(w[4], 16) for w in map(str.split, sys.stdin) if w[:1] == ["LOAD"]))')
broken 'cut off by a byte of what is mapped' truncate -s $((mapped - 1)) "$proper"
broken 'damaged in the middle' bytes 300000 '\0000\0377\0377\0377'
broken 'of another machine' bytes 18 '\0267'
broken 'of 32 bits' bytes 4 '\0001'
broken 'a program in its place' cp "$cat" "$proper"
broken 'a link that leads nowhere' ln -sf /nowhere "$proper"
must chmod 0 "$proper"
is_on 'bare: unreadable, for others' no "${others[@]}" $maps
must chmod 755 "$proper"
must mkdir -m 700 "$bare/closed"
must cp "$library" "$bare/closed"
must ln -sf /closed/libfiberize.so "$proper"
is_on 'bare: in a folder that others may not enter' no "${others[@]}" $maps
rm "$proper"
must install -m 755 "$library" "$proper"
is_on 'bare: on again' yes "${others[@]}" $maps

# ---- another glibc

# has_fibers: sets threads to how many fibers the process has
has_fibers()
{
	threads=$("$fiberize" status --json | python3 -c 'import json, sys
print(next((p["threads"] for p in json.load(sys.stdin)["processes"] if p["pid"] == int(sys.argv[1])), 0))' "$pid")
	[ "$threads" -gt 1 ]
}

# has_kernel_threads: as many as natively
has_kernel_threads()
{
	local tasks=(/proc/"$pid"/task/*)
	[ ${#tasks[@]} -eq 3 ]
}

# release SUITE GLIBC yes|no: by the profile its programs run with the library, or not
release()
{
	local suite=$1 glibc=$2 wanted=$3 other=$build/glibc-$1 before
	if [ ! -e "$other/complete" ]; then
		skip "glibc $glibc of $suite" 'apt-get reaches no archive of Debian that has it'
		return
	fi
	must mount -t tmpfs none "$other/etc"
	must mount -t tmpfs none "$other/fiberize"
	must mount -t proc none "$other/proc"
	at_exit umount -l "$other/etc" "$other/fiberize" "$other/proc"
	must install -m 755 "$stub" "$library" "$other/fiberize"
	run "$fiberize" --no-profiles --library /fiberize/libfiberize.so check --root "$other" /bin/xz
	case $wanted in
	yes)	like "glibc $glibc: check" '0:*kind        dynamic*' "$code:$out" ;;
	no)	like "glibc $glibc: check" '119:*its libc, */libc.so.6, has no GLIBC_*' "$code:$out" ;;
	esac
	is_on "glibc $glibc: natively" no chroot "$other" /bin/cat $maps
	echo /fiberize/libfiberize-preload.so >"$other/etc/ld.so.preload"
	is_on "glibc $glibc: no profile" no chroot "$other" /bin/cat $maps
	has "glibc $glibc: the stub is loaded" "$work/out" /libfiberize-preload.so
	mkdir "$other/etc/fiberize"
	printf '[cat]\neverywhere = 1\n[xz]\neverywhere = 1\n' >"$other/etc/fiberize/a.conf"
	is_on "glibc $glibc: a profile" "$wanted" chroot "$other" /bin/cat $maps
	before=$(chroot "$other" /bin/xz --version | head -n 1)
	yes "glibc $glibc: $before" [ -n "$before" ]
	# It waits for more while we look at it.
	must mkfifo "$other/etc/fifo"
	launch chroot "$other" /bin/xz -T2 --block-size=64KiB -c /etc/fifo
	exec 9>"$other/etc/fifo"
	cat "$library" >&9
	threads=0
	case $wanted in
	yes)	yes "glibc $glibc: its threads are fibers" eventually has_fibers ;;
	no)	yes "glibc $glibc: its threads are kernel threads" eventually has_kernel_threads ;;
	esac
	exec 9>&-
	wait "$pid"
	same "glibc $glibc: xz with threads" "0::" \
		"$?:$(cat "$work/complaints"):$(chroot "$other" /bin/xz -dc <"$work/said" | cmp - "$library" 2>&1)"
	run chroot "$other" /bin/xz -T2 -dc "/etc/none"
	same "glibc $glibc: a failure is the program's own" 1 "$code"
}
# Minutes, for packages from an archive.
if [ -n "${FZ_ALL-}" ]; then
	release bullseye 2.31 no
	release trixie 2.41 yes
fi

# ---- tables of symbols

cat >"$work/threads.c" <<'C'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];

static void *reads(void *got)
{
	return read(ends[0], got, 1) == 1 ? got : NULL;
}

int main(void)
{
	pthread_t thread;
	char got = 0;
	void *ret;

	if (pipe(ends) || pthread_create(&thread, NULL, reads, &got))
		return 1;
	if (write(ends[1], "x", 1) != 1 || pthread_join(thread, &ret))
		return 2;
	printf("%c %d\n", got, ret == &got);
	return 3;
}
C
echo 'int fz_nothing(void) __attribute__((visibility("hidden"))); int fz_nothing(void) { return 0; }' >"$work/nothing.c"
cat >"$work/tables.py" <<'PYTHON'
"""tables.py FILE NEW EMPTY|NONE - a copy of an object whose tables of symbols for the loader have no buckets, or that has none."""
import struct
import sys

data = bytearray(open(sys.argv[1], 'rb').read())
offset, count = struct.unpack_from('<Q', data, 32)[0], struct.unpack_from('<H', data, 56)[0]
headers = [struct.unpack_from('<IIQQQQQQ', data, offset + 56 * i) for i in range(count)]
dynamic = next(h for h in headers if h[0] == 2)
changed = 0
for at in range(dynamic[2], dynamic[2] + dynamic[5], 16):
    tag, value = struct.unpack_from('<QQ', data, at)
    if tag not in (4, 0x6ffffef5):
        continue
    if sys.argv[3] == 'NONE':
        struct.pack_into('<Q', data, at, 0x6ffffdf5)
    else:
        load = next(h for h in headers if h[0] == 1 and h[3] <= value < h[3] + h[5])
        struct.pack_into('<I', data, value - load[3] + load[2], 0)
    changed += 1
assert changed == 2, changed
open(sys.argv[2], 'wb').write(data)
PYTHON
must "$CC" -O1 -pthread -Wl,--hash-style=both "$work/threads.c" -o "$work/tables"
must "$CC" -O1 -shared -fPIC -nostdlib -Wl,--hash-style=both "$work/nothing.c" -o "$work/nothing.so"
profile '[tables*]' 'everywhere = 1' 'stats = 1' '[cat]' 'everywhere = 1'
# The machine is that of the test's: tables.py writes little-endian words of 64-bit objects.
for kind in EMPTY NONE; do
	must python3 "$work/tables.py" "$work/tables" "$work/tables-$kind" $kind
	must python3 "$work/tables.py" "$work/nothing.so" "$work/nothing-$kind.so" $kind
	chmod 755 "$work/tables-$kind"
	not_named
	run "$work/tables-$kind"
	same "tables: $kind: natively" '3:x 1:' "$code:$out:$err"
	named
	run "$work/tables-$kind"
	same "tables: $kind: as fibers" '3:x 1' "$code:$out"
	like "tables: $kind: its thread is a fiber" '*: read (request): 1 by fibers*' "$err"
	for order in "$work/nothing-$kind.so $(cat /etc/ld.so.preload)" "$(cat /etc/ld.so.preload) $work/nothing-$kind.so"; do
		echo "$order" >/etc/ld.so.preload
		is_on "tables: a library with tables: $kind, $([[ $order = *.so\ *nothing* ]] && echo behind || echo before)" yes cat $maps
		run "$work/tables"
		same 'tables: beside it, as fibers' '3:x 1' "$code:$out"
	done
	named
done
finish
