#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/check/check_odd.sh - "fiberize check" where a FIFO, a device or a directory has the name of a library, of a
# loader, of the loader's cache or of a profile: it is not opened, and the report says what it is.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need jq "$CC"
cd "$work" || exit 1
unset LD_LIBRARY_PATH

tree=$work/tree
must mkdir -p "$tree/bin" "$tree/own" "$tree/later" "$tree/etc" "$tree/${library%/*}"
must cp "$library" "$tree/$library"
printf 'int f(void) { return 0; }\n' >own.c
printf 'int f(void);\nint main(void) { return f(); }\n' >main.c
must "$CC" -shared -fPIC -Wl,-soname,libown.so -o libown.so own.c
must "$CC" -Wl,--disable-new-dtags,-rpath,/own:/later -o "$tree/bin/main" main.c -L. -lown
for file in $(ldd "$tree/bin/main" | grep -o '/[^ ]*'); do
	must mkdir -p "$tree${file%/*}"
	must cp "$file" "$tree$file"
done
# The loader does not come to this one.
must cp libown.so "$tree/later"
loader=$(readelf -lW "$tree/bin/main" | sed -n 's/.*program interpreter: \(.*\)]/\1/p')

# look FILTER: what jq makes of the report
look()
{
	run "$fiberize" --no-profiles --library "$library" check --root "$tree" --json main
	out=$(jq -r "$1" <<<"$out")
}

look '"\(.code) \(.no_library) \(.not_found | length)"'
same 'all are files' '0 null 0' "$out"

sleeps()
{
	[ "$(cut -d ' ' -f 3 "/proc/$1/stat")" = S ]
}

# The writer waits for a reader.  Where there was one that has gone again, the writer has ended by SIGPIPE.
# no_reader NAME FIFO COMMAND...
no_reader()
{
	local name=$1 fifo=$2 line
	shift 2
	( trap - PIPE; echo waited >"$fifo" ) &
	must eventually sleeps $!
	"$@"
	exec 9<>"$fifo"
	read -r -t 20 line <&9
	exec 9<&-
	same "$name: not opened" waited "$line"
	wait $!
}

must mkfifo "$tree/own/libown.so"
no_reader 'a FIFO for a library' "$tree/own/libown.so" look '"\(.no_library) \(.not_found | tojson) \(.advice)"'
like 'a FIFO for a library: said' '/own/libown.so, a FIFO \["libown.so"\] put a library in the place of*' "$out"
run "$fiberize" --no-profiles --library "$library" check --root "$tree" main
has 'a FIFO for a library: said in text' "$work/out" '^no library  /own/libown.so, a FIFO$'
must rm "$tree/own/libown.so"
must mkdir "$tree/own/libown.so"
look .no_library
same 'a directory for a library' '/own/libown.so, a directory' "$out"
must rmdir "$tree/own/libown.so"
# A program opens it by dlopen, perhaps.
printf '#include <dlfcn.h>\nint main(void) { return !dlopen("/own/libmay.so", RTLD_NOW); }\n' >loads.c
must "$CC" -o "$tree/bin/loads" loads.c
must mkfifo "$tree/own/libmay.so"
no_reader 'a FIFO for what may be loaded' "$tree/own/libmay.so" \
	run "$fiberize" --no-profiles --library "$library" check --root "$tree" loads
same 'a FIFO for what may be loaded: it starts' 0: "$code:$err"
must mkfifo "$tree/etc/ld.so.cache"
no_reader 'a FIFO for the cache' "$tree/etc/ld.so.cache" look .code
same 'a FIFO for the cache: it starts' 0 "$out"
# Nobody but root makes devices, and not everywhere.
if mknod "$tree/own/libown.so" c 1 3 2>/dev/null; then
	look .no_library
	same 'a device for a library' '/own/libown.so, a device' "$out"
	must rm "$tree/own/libown.so"
else
	skip 'a device for a library' 'mknod is not allowed'
fi
must mv "$tree$loader" "$tree/loader"
must mkfifo "$tree$loader"
look '"\(.kind): \(.reason)"'
same 'a FIFO for a loader' "missing loader: /bin/main: its loader $loader is a FIFO" "$out"

# ---- profiles

export HOME=$work/home
must mkdir -p "$HOME/.config/fiberize"
must mkfifo "$HOME/.config/fiberize/a.conf"
no_reader 'a FIFO for a profile' "$HOME/.config/fiberize/a.conf" \
	run env -u XDG_CONFIG_HOME "$fiberize" check /bin/true
like 'a FIFO for a profile: said' '*/a.conf: not a readable file*' "$err"
finish
