#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/everywhere.sh - libfiberize-preload.so in /etc/ld.so.preload: programs of every kind run as without it,
# and those that a profile names run with libfiberize.so.

# shellcheck source=tests/lib/everywhere.inc
. "$(dirname "$0")/../../lib/everywhere.inc"
# shellcheck source=tests/lib/class32.inc
. "$(dirname "$0")/../../lib/class32.inc"
need setpriv unshare prlimit

# with_and_without NAME COMMAND...: output and exit status with the stub are those without
with_and_without()
{
	local name=$1 wanted
	shift
	not_named
	run "$@"
	wanted="$code|$out|$err"
	named
	run "$@"
	same "$name" "$wanted" "$code|$out|$err"
}

maps=/proc/self/maps
named
cat $maps >"$work/maps"
has 'each process has the stub' "$work/maps" '/libfiberize-preload.so'

# ---- what the stub is

same 'it needs no library' '' "$(readelf -dW "$stub" | grep NEEDED)"
same 'it needs no symbol' '' "$(nm -D "$stub" | awk '$1 == "U"')"
same 'it gives no symbol' '' "$(nm -D --defined-only "$stub")"
same 'it has no thread-local storage' '' "$(readelf -lW "$stub" | grep TLS)"

# ---- what LD_PRELOAD names beside it

# with_list yes|no LIST: is_on, a program that prints its maps, with this LD_PRELOAD; what loaders say of it is no matter
with_list()
{
	# shellcheck disable=SC2016 # the inner shell expands it
	is_on "no profile, LD_PRELOAD=$2" "$1" sh -c 'LD_PRELOAD=$1 exec cat "$2" 2>/dev/null' - "$2" $maps
}
for list in /none/libfiberize.so libfiberize.so /none/notlibfiberize.so.bak '/none/libfiberize.so:libm.so.6' \
	/none/libfiberize-preload.so.bak /none/notlibfiberize-preload.so /none/libfiberize-preload.so/libm.so.6; do
	with_list no "$list"
done
for list in "$stub" "libm.so.6 $stub" "/none/libfiberize.so:$stub:libm.so.6"; do
	with_list yes "$list"
done
mkdir "$place/lib64"
ln -s ../libfiberize-preload.so "$place/lib64/libfiberize.so"
is_on 'no profile, by the name of the launcher for another glibc' yes env LD_PRELOAD="$place/lib64/libfiberize.so" cat $maps
rm -r "${place:?}/lib64"

# ---- kinds of programs

cat >"$work/hello.c" <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	fprintf(stderr, "%s\n", getenv("LD_PRELOAD") && *getenv("LD_PRELOAD") ? "preloaded" : "-");
	printf("hello %d\n", environ != NULL && stdout != NULL);
	return 3;
}
C
# built NAME COMMAND...: false, and a skipped case, if the compiler cannot do it here
built()
{
	local name=$1
	shift
	"$@" 2>"$work/compiler" && return
	skip "$name" "cannot be built here: $(head -n 1 "$work/compiler")"
	return 1
}

profile '[hello*]' 'everywhere = 1'
for kind in 'COPY relocations:-no-pie' 'static:-static' 'static-pie:-static-pie'; do
	flag=${kind#*:}
	built "${kind%:*}" "$CC" "$flag" "$work/hello.c" -o "$work/hello" || continue
	with_and_without "${kind%:*}" "$work/hello"
done
if command -v musl-gcc >/dev/null; then
	must musl-gcc "$work/hello.c" -o "$work/hello-musl"
	with_and_without 'musl' "$work/hello-musl"
	run env LD_PRELOAD="$stub" "$work/hello-musl"
	same 'musl, by LD_PRELOAD' '3|hello 1|preloaded' "$code|$out|$err"
	must musl-gcc -static "$work/hello.c" -o "$work/hello-musl"
	with_and_without 'musl, static' "$work/hello-musl"
else
	skip musl 'musl-gcc is not installed'
fi
cat >"$work/none.c" <<'C'
#include "arch/arch.h"
#include <asm/unistd.h>

void _start(void);
void _start(void)
{
	fz_syscall3(__NR_write, 1, (long)"none\n", 5);
	for (;;)
		fz_syscall1(__NR_exit_group, 5);
}
C
cpu=$($CC -dumpmachine)
bare=(-nostdlib -fno-stack-protector -I"$root" -iquote "$root/arch/${cpu%%-*}" "$work/none.c" -o "$work/hello-none")
must "$CC" -static "${bare[@]}"
with_and_without 'no libc, static' "$work/hello-none"
must "$CC" -pie -fPIE "${bare[@]}"
with_and_without 'no libc, by the loader' "$work/hello-none"
same 'no libc: ran' '5|none' "$code|$out"
if can_make_32; then
	program_32 "$work/hello-32"
	with_and_without '32 bits' "$work/hello-32"
	same '32 bits: ran' '7||' "$code|$out|$err"
else
	skip '32 bits' 'libc6-i386 is not installed'
fi
for sanitizer in address thread undefined; do
	built "sanitizer $sanitizer" "$CC" -fsanitize=$sanitizer "$work/hello.c" -o "$work/hello-san" || continue
	with_and_without "sanitizer $sanitizer" setarch -R "$work/hello-san"
done
for program in hey umoci; do
	if command -v "$program" >/dev/null; then
		with_and_without "Go, $program" "$program" --help
	else
		skip "Go, $program" 'it is not installed'
	fi
done
cp "$(command -v cat)" "$work/hello-root"
chmod 4755 "$work/hello-root"
with_and_without 'set-user-ID' "${unprivileged[@]}" "$work/hello-root" /etc/hostname
is_on 'set-user-ID: natively' no "${unprivileged[@]}" "$work/hello-root" $maps
# Even if libfiberize.so itself is named for every program, the variables of who starts it count for nothing.
echo "$place/libfiberize.so" >/etc/ld.so.preload
mkdir -m 777 "$work/open"
cp "$programs/thread_basic" "$work/ordinary"
install -m 4755 "$programs/thread_basic" "$work/secure"
for program in ordinary secure; do
	run "${unprivileged[@]}" env FIBERIZE_STATS="$work/open/$program" FIBERIZE_VERBOSE=1 "$work/$program"
	same "libfiberize.so named, $program: exit status" 0 "$code"
	echo "$err" >"$work/$program.said"
done
has 'libfiberize.so named: reads variables' "$work/ordinary.said" 'version'
yes 'libfiberize.so named: a file of --stats' [ -e "$work/open/ordinary" ]
same 'set-user-ID, libfiberize.so named: reads none' '' "$(cat "$work/secure.said")"
yes 'set-user-ID, libfiberize.so named: no file of --stats' [ ! -e "$work/open/secure" ]
named
if command -v valgrind >/dev/null; then
	is_on 'valgrind: natively' no valgrind -q cat $maps
fi

# ---- who is on

profile
is_on 'nobody without a profile' no cat $maps
profile '[cat]' 'everywhere = 1' 'processors = 3'
is_on 'by name' yes cat $maps
is_on 'not others' no head -n 1000 $maps
run env cat /proc/self/environ
has 'its options' "$work/out" '^FIBERIZE_PROCESSORS=3$'
run env FIBERIZE_PROCESSORS=4 cat /proc/self/environ
same 'a variable wins' 'FIBERIZE_PROCESSORS=4' "$(tr '\0' '\n' <"$work/out" | grep PROCESSORS)"
is_on 'as another user' yes "${unprivileged[@]}" cat $maps
is_on 'FIBERIZE_DISABLE' no env FIBERIZE_DISABLE=1 cat $maps
touch /etc/fiberize/disable
is_on 'the file that switches all off' no cat $maps
like 'that file: the launcher, too' '*switched off*' "$("$fiberize" -v true 2>&1)"
rm /etc/fiberize/disable
is_on 'and on again' yes cat $maps
profile '[/usr/bin/c*t]' 'everywhere = 1'
is_on 'by path' yes /usr/bin/cat $maps
cp "$(command -v cat)" "$work/cat"
is_on 'not from elsewhere' no "$work/cat" $maps
cp "$(command -v cat)" "$work/init"
profile '[init]' 'everywhere = 1'
is_on 'a program named init' yes "$work/init" $maps
is_on 'init, process 1' no unshare --pid --fork "$work/init" $maps
profile '[cat]' 'arguments = *self/maps' 'everywhere = 1'
is_on 'by argument' yes cat $maps
is_on 'not by other arguments' no cat $maps /dev/null
profile '[cat]' 'arguments = *null*' 'everywhere = 0' '[c*]' 'everywhere = 1'
is_on 'denied by argument' no cat $maps /dev/null
is_on 'not denied' yes cat $maps
profile '[*]' 'everywhere = 1'
is_on 'wildcards name nobody' no cat $maps
profile '[cat]' 'everywhere = 1' 'disable = 1'
is_on 'disable' no cat $maps
profile '[cat]' 'everywhere = 1'
chmod 666 /etc/fiberize/test.conf
is_on 'a profile that others may write' no cat $maps
profile 'nonsense' '[cat' ']' '=' '[]' '[cat]' 'everywhere = yes'
is_on 'nonsense' no cat $maps
refused 'nonsense: the launcher tells' 2 '*test.conf:1: neither*' "$fiberize" true
profile '[cat]' 'everywhere = yes'
refused 'everywhere: the launcher tells' 2 '*test.conf:2: everywhere: must be 0 or 1' "$fiberize" true
profile '[*]' 'everywhere = 1'
refused 'everywhere for all: the launcher tells' 2 '*test.conf:2: everywhere = 1: the section is for every program*' "$fiberize" true
profile '[printenv]' 'everywhere = 1' 'arguments = x'
refused 'arguments: the launcher tells' 2 '*test.conf:3: arguments: must be the first line*' "$fiberize" true
profile '[printenv]' 'arguments = *ESSORS' 'processors = 7' '[/usr/*/printenv]' 'stats = 1'
run env PATH=/usr/bin "$fiberize" printenv FIBERIZE_STATS FIBERIZE_PROCESSORS
same 'arguments and paths, for the launcher' "1${newline}7" "$out"
run env PATH=/usr/bin "$fiberize" printenv FIBERIZE_PROCESSORS FIBERIZE_STATS
same 'other arguments, for the launcher' 1 "$out"

profile
install -D -m 644 "$root/scripts/package/profiles.conf" /etc/fiberize/profiles.conf
ln -s "$(command -v cat)" "$work/microsocks"
is_on 'the profiles that are shipped' yes "$work/microsocks" $maps
is_on 'the profiles that are shipped: not others' no cat $maps
prints 'the profiles that are shipped: the launcher' '' "$fiberize" true

# ---- the launcher and the stub read a profile alike

# alike NAME VALUE FORMAT [ARGUMENT...]: by this profile printenv gets this value of --processors from both; or none
alike()
{
	local name=$1 wanted=$2 ours
	shift 2
	profile ''
	# shellcheck disable=SC2059
	printf "$@" >/etc/fiberize/test.conf
	named
	ours=$(env PATH=/usr/bin printenv FIBERIZE_PROCESSORS)
	not_named
	run env PATH=/usr/bin "$fiberize" printenv FIBERIZE_PROCESSORS
	same "alike: $name" "<$wanted> <$wanted>" "<$ours> <$out>"
	named
}
on='everywhere = 1\nprocessors = 7\n'
alike 'the first place wins' 3 "[printenv]\nprocessors = 3\n$on"
alike 'lines of another system' 3 "\357\273\277; a comment\r\n\r\n\t[ printenv ] \r\n  processors=\t3 \r\n$on"
alike 'no newline at the end' 3 '[printenv]\neverywhere = 1\nprocessors = 3'
alike 'brackets' 7 "[%s]\n$on" 'p[^a-q]*[[:alpha:]]nv'
alike 'backslashes' 7 "[%s]\n$on" '\printe\nv'
alike 'brackets in a path' 7 "[%s]\n$on" '/usr/bin/[op]rintenv'
alike 'not in brackets' '' "[%s]\n$on" 'print[!e]nv'
alike 'a bracket without an end' '' "[%s]\n$on" '[printenv'
alike 'arguments' 7 "[printenv]\narguments = %s\n$on" '*_[PQ]ROC?SSORS'
alike 'other arguments' '' "[printenv]\narguments = %s\n$on" '*_[!P]ROCESSORS'
alike 'the longest file' 7 "%.65535s" "$(printf "[printenv]\n$on#%065535d" 0)"
alike 'a file that is too long' '' "%.65536s" "$(printf "[printenv]\n$on#%065535d" 0)"
like 'a file that is too long: the launcher tells' '*/test.conf: ignored: it has more than 65535 bytes' "$err"
printf '[cat]\neverywhere = 1\n# c\0t\n' >/etc/fiberize/test.conf
refused 'a zero byte: the launcher tells' 2 '*/test.conf:3: a zero byte: *' "$fiberize" true
is_on 'a zero byte: the line counts for nothing' yes cat $maps
profile '[[a-z]*]' 'everywhere = 1'
is_on 'brackets alone name nobody' no cat $maps
refused 'brackets alone: the launcher tells' 2 '*test.conf:2: everywhere = 1: the section is for every program*' "$fiberize" true
profile '[cat]' 'processors = 0' 'preloaded = 1' 'everywhere = 1' '[]' 'processors = 3'
run cat /proc/self/environ
same 'a line with a mistake sets nothing' 'FIBERIZE_PRELOADED=' "$(tr '\0' '\n' <"$work/out" | grep FIBERIZE_P)"

# ---- what a program that is on sees

profile '[sh*]' 'everywhere = 1' '[hello*]' 'everywhere = 1' '[cat]' 'everywhere = 1'
# shellcheck disable=SC2016
run sh -c 'cat /proc/$$/comm; tr "\0" " " </proc/$$/cmdline; printf "<%s>" "$LD_PRELOAD" "$0" "$@"; exit 4' zero 'a b' ''
same 'name, arguments, LD_PRELOAD, exit status' "4|sh${newline}sh -c cat" "$code|${out:0:12}"
like 'its arguments' '*<><zero><a b><>' "$out"
printf '#!/bin/sh\ncat /proc/$$/comm\ngrep -c /libfiberize.so /proc/$$/maps\n' >"$work/hello-script"
chmod 755 "$work/hello-script"
run "$work/hello-script"
like 'a script: by its name, which stays' "hello-script${newline}[1-9]*" "$out"
# shellcheck disable=SC2016 # for the inner shell
run env LD_PRELOAD=/usr/lib/none-1.so:/usr/lib/none-2.so sh -c 'echo "$LD_PRELOAD"'
same 'another LD_PRELOAD stays' '/usr/lib/none-1.so:/usr/lib/none-2.so' "$out"
LD_DEBUG=files sh -c : 2>&1 | sed -n 's/.*calling init: //p' >"$work/order"
same 'its constructor is the first' libfiberize-preload.so "$(sed 's,.*/,,' "$work/order" | sed -n 2p)"
run env LD_DEBUG=files LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 true
same 'by LD_PRELOAD of the library: the stub starts it before others' yes \
	"$(awk '/dormant until/ { print libc ? "no" : "yes" } /calling init: .*libc.so/ { libc = 1 }' "$work/err")"
profile '[thread_*]' 'everywhere = 1' '[io_socket]' 'everywhere = 1'
for name in thread_basic thread_tls io_socket; do
	[ -e "$programs/$name" ] || continue
	not_named
	limited "$programs/$name" >"$work/native"
	echo $? >"$work/native.status"
	named
	limited "$programs/$name" >"$work/fibers"
	echo $? >"$work/fibers.status"
	as_natively "$name" "$work/native" "$work/fibers"
done
run env FIBERIZE_STATS=1 "$programs/thread_basic"
like 'its threads are fibers' '*pthread_create (tracked): [1-9]* by fibers*' "$err"
profile
is_on 'by LD_PRELOAD of the stub: without a profile' yes env LD_PRELOAD="$stub" cat $maps
profile '[cat]' 'everywhere = 0'
is_on 'by LD_PRELOAD of the stub: denied' no env LD_PRELOAD="$stub" cat $maps

# ---- where something is missing

profile '[cat]' 'everywhere = 1'
is_on 'before' yes cat $maps
# without NAME: changes that file; the program runs natively, and says nothing
without()
{
	is_on "$1" no cat $maps
	cp "$library" "$place/libfiberize.so"
	chmod 755 "$place/libfiberize.so"
}
rm "$place/libfiberize.so"
without 'no library'
head -c 100000 "$library" >"$place/libfiberize.so"
without 'truncated'
: >"$place/libfiberize.so"
without 'empty'
printf '\x00' | dd of="$place/libfiberize.so" bs=1 seek=300000 conv=notrunc status=none
printf '\xff\xff' | dd of="$place/libfiberize.so" bs=1 seek=300001 conv=notrunc status=none
without 'damaged'
printf '\xb7' | dd of="$place/libfiberize.so" bs=1 seek=18 conv=notrunc status=none
without 'of another machine'
cp "$stub" "$place/libfiberize.so"
without 'another library'
rm "$place/libfiberize.so"
mkdir "$place/libfiberize.so"
is_on 'a directory' no cat $maps
rmdir "$place/libfiberize.so"
mkfifo "$place/libfiberize.so"
is_on 'a FIFO' no cat $maps
rm "$place/libfiberize.so"
cp "$library" "$place/libfiberize.so"
chmod 0 "$place/libfiberize.so"
is_on 'unreadable' no "${unprivileged[@]}" cat $maps
chmod 755 "$place/libfiberize.so"
strip --strip-unneeded "$place/libfiberize.so"
is_on 'stripped' yes cat $maps
cp "$library" "$place/libfiberize.so"
cat >"$work/old.c" <<'C'
const char *gnu_get_libc_version(void);
const char *gnu_get_libc_version(void) { return "2.28"; }
C
must "$CC" -shared -fPIC "$work/old.c" -o "$work/old.so"
is_on 'an older libc' no env LD_PRELOAD="$work/old.so" cat $maps
is_on 'no /proc' no unshare -m sh -c "cp $maps $work/saved; mount -t tmpfs none /proc && cat $work/saved"
for limit in stack=65536 nofile=4 nproc=1 fsize=0 core=0; do
	with_and_without "limit $limit" prlimit --$limit cat /etc/hostname
done
with_and_without 'limit as' prlimit --as=12000000 cat /etc/hostname
at_exit umount -l "$work/noexec"
must mkdir "$work/noexec"
must mount -t tmpfs -o noexec none "$work/noexec"
cp "$library" "$work/noexec"
rm "$place/libfiberize.so"
ln -s "$work/noexec/libfiberize.so" "$place/libfiberize.so"
is_on 'the library where no code may run' no cat $maps
rm "$place/libfiberize.so"
cp "$library" "$place/libfiberize.so"
is_on 'a root that may not be written' yes unshare -m sh -c 'mount -o remount,ro,bind / 2>/dev/null; exec cat /proc/self/maps'
is_on 'the loader as a program' no "$(readelf -lW /bin/true | sed -n 's/.*interpreter: \(.*\)]/\1/p')" "$(command -v cat)" $maps

# A root with a libc, one program and nothing else.
smallest=$work/smallest
mkdir -p "$smallest/etc/fiberize" "$smallest/proc" "$smallest$place"
cp -a "$place/." "$smallest$place"
for file in "$(command -v cat)" $(ldd "$(command -v cat)" | grep -o '/[^ ]*' | grep -v fiberize); do
	install -D -m 755 "$file" "$smallest$file"
done
cp /etc/ld.so.preload "$smallest/etc"
run chroot "$smallest" "$(command -v cat)" /etc/ld.so.preload
same 'a root without /proc and profiles' "0|$(cat /etc/ld.so.preload)|" "$code|$out|$err"
must mount -t proc none "$smallest/proc"
at_exit umount -l "$smallest/proc"
is_on 'a root without profiles' no chroot "$smallest" "$(command -v cat)" $maps
cp /etc/fiberize/test.conf "$smallest/etc/fiberize"
is_on 'a root with a profile' yes chroot "$smallest" "$(command -v cat)" $maps
rm "$smallest$place/libfiberize.so"
is_on 'a root without the library' no chroot "$smallest" "$(command -v cat)" $maps

# ---- programs of the system

for program in ls cat sh env sed grep find sort tar bash awk python3; do
	command -v $program >/dev/null || continue
	with_and_without "$program --version" "${unprivileged[@]}" $program --version
done

finish
