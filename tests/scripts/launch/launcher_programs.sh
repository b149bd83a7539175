#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/launch/launcher_programs.sh - which library and programs the launcher accepts, and its messages for others.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"

# ---- library

refused 'no such library' 115 '*/no/such.so: no such library*' \
	env FIBERIZE_LIBRARY=/no/such.so "$fiberize" true
refused 'no such library, by flag' 115 '*/no/such.so: no such library*' \
	"$fiberize" --library /no/such.so true
refused 'the library is a directory' 115 '*not a readable file*' "$fiberize" --library "$work" true
refused 'the library is something else' 115 '*not a shared library*' \
	"$fiberize" --library "$fiberize" true
refused 'FIBERIZE_LIBRARY is empty' 2 '*FIBERIZE_LIBRARY=: must be the name of a file' \
	env FIBERIZE_LIBRARY= "$fiberize" true
mkdir "$work/a:b" "$work/a b" "$work/empty"
cp "$library" "$work/a:b/libfiberize.so"
cp "$library" "$work/a b/libfiberize.so"
cp "$library" "$work/libother.so"
cp "$fiberize" "$work/empty/fiberize"
refused 'a colon in its name' 115 '*LD_PRELOAD cannot hold*' \
	"$fiberize" --library "$work/a:b/libfiberize.so" true
refused 'a blank in its name' 115 '*LD_PRELOAD cannot hold*' \
	"$fiberize" --library "$work/a b/libfiberize.so" true
refused 'not installed at all' 115 '*neither installed nor built*' "$work/empty/fiberize" true
prints 'a relative name becomes absolute' "$work/libother.so" \
	sh -c 'cd "$1" && exec "$2" --library ./libother.so printenv LD_PRELOAD' - "$work" "$fiberize"
ln -s "$fiberize" "$work/bin/by-link"
prints 'started through a symbolic link' "$named_library" "$work/bin/by-link" printenv LD_PRELOAD

# ---- programs

cat >"$work/bin/args" <<'ARGS'
#!/bin/sh
printf '%d' $#
for word; do printf '<%s>' "$word"; done
ARGS
chmod +x "$work/bin/args"

# "run" makes the next word a program, whatever its name.
for word in check bench ps status kubernetes run enable; do
	ln "$work/bin/args" "$work/bin/$word"
	prints "run: a program $word" '1<check>' env PATH="$work/bin:$PATH" "$fiberize" run -p 1 $word check
done
rm "$work/bin"/{check,bench,ps,status,kubernetes,run,enable}
refused 'an option before a command that takes none' 2 \
	'*-p: fiberize status takes no option before its name; for a program * fiberize run ?options? status' \
	"$fiberize" -p 2 status
refused 'no such program in PATH' 127 '*no-such-program: no such program in PATH' \
	"$fiberize" no-such-program
refused 'no such program by name' 127 '*/no/such: no such program' "$fiberize" /no/such
refused 'empty name' 127 '*' "$fiberize" ''
ln -s round "$work/bin/round"
refused 'a link to itself' 126 '*/round: *symbolic links' "$fiberize" "$work/bin/round"
ln -s /no/such "$work/bin/nowhere"
refused 'a link to nothing' 127 '*/nowhere: no such program' "$fiberize" "$work/bin/nowhere"
refused 'a directory' 126 '*/tmp: is a directory' "$fiberize" /tmp
echo true >"$work/bin/plain"
refused 'not executable' 126 '*/plain: not executable' "$fiberize" "$work/bin/plain"
mkfifo -m 755 "$work/bin/fifo"
refused 'a FIFO' 126 '*/fifo: not a regular file' "$fiberize" "$work/bin/fifo"
refused 'a device' 126 '*/dev/null: not a regular file' "$fiberize" /dev/null
refused 'not executable, in PATH' 126 '*/plain: not executable' \
	env PATH="$work/bin:$PATH" "$fiberize" plain
mkdir "$work/bin/printenv"
prints 'a directory in PATH is no program' "$named_library" \
	env PATH="$work/bin:$PATH" "$fiberize" printenv LD_PRELOAD
printf '\001\002\000\003' >"$work/bin/garbage"
chmod +x "$work/bin/garbage"
refused 'garbage' 126 '*/garbage: neither a program nor a script' "$fiberize" "$work/bin/garbage"
printf '\177ELF\002\001\001' >"$work/bin/cut"
chmod +x "$work/bin/cut"
refused 'a damaged program' 126 '*/cut: *' "$fiberize" "$work/bin/cut"
cp "$work/bin/args" "$work/bin/-dash"
prints 'a name with a dash' '1<x>' env PATH="$work/bin:$PATH" "$fiberize" -- -dash x
ln -s "$(command -v cat)" "$work/bin/-cat"
prints 'a name with a dash is argument zero, too' '-cat /proc/self/cmdline ' \
	env PATH="$work/bin:$PATH" sh -c '"$1" -- -cat /proc/self/cmdline | tr "\000" " "' - "$fiberize"
printf 'echo "by the shell: $1"\n' >"$work/bin/-script"
chmod +x "$work/bin/-script"
prints 'a script with a dash, without #!' 'by the shell: x y' \
	env PATH="$work/bin:$PATH" "$fiberize" -- -script 'x y'
cp "$work/bin/args" "$work/bin/bench"
prints 'a program called bench' '1<x>' env PATH="$work/bin:$PATH" "$fiberize" -- bench x
# Where shells look then, which the program does not see.
run "$(command -v env)" -i "$fiberize" printenv PATH
same 'no PATH' 1 "$code$out$err"
run "$(command -v env)" -i "$fiberize" check --json printenv
same 'no PATH: check' 0 "$code$err"
prints 'an empty element of PATH' '0' \
	sh -c 'cd "$1" && PATH="/no/where::$PATH" exec "$2" args' - "$work/bin" "$fiberize"

cat >"$work/main.c" <<'MAIN'
#include <stdio.h>
int main(void)
{
	return puts("hello") < 0;
}
MAIN
# patched NAME OFFSET BYTES: a copy of hello with some bytes changed
patched()
{
	cp "$work/bin/hello" "$work/bin/$1"
	# Escapes are what is wanted.
	# shellcheck disable=SC2059
	printf "$3" | dd of="$work/bin/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
$CC -o "$work/bin/hello" "$work/main.c"
prints 'a dynamic program' hello "$fiberize" "$work/bin/hello"
head -c 100 "$work/bin/hello" >"$work/bin/cut-headers"
chmod +x "$work/bin/cut-headers"
refused 'cut behind the ELF header' 126 \
	'*/cut-headers: a damaged program (no readable program headers)' \
	"$fiberize" "$work/bin/cut-headers"
$CC -static -o "$work/bin/static" "$work/main.c"
refused 'static' 116 '*/static: statically linked*' "$fiberize" "$work/bin/static"
$CC -static-pie -o "$work/bin/static-pie" "$work/main.c"
refused 'static, position independent' 116 '*/static-pie: statically linked*' \
	"$fiberize" "$work/bin/static-pie"
patched narrow 4 '\001'
refused '32-bit' 117 '*/narrow: a 32-bit program*' "$fiberize" "$work/bin/narrow"
if [ "$(uname -m)" = x86_64 ] && echo 'void _start(void) { for (;;); }' |
	$CC -m32 -nostdlib -pie -Wl,-dynamic-linker,/lib/ld-linux.so.2 -x c -o "$work/bin/i386" - \
		2>/dev/null; then
	refused '32-bit, for real' 117 '*/i386: a 32-bit program*' "$fiberize" "$work/bin/i386"
else
	skip '32-bit, for real' 'the compiler makes none'
fi
patched riscv 18 '\363\000'
refused 'other machine' 118 '*/riscv: made for RISC-V, and *' "$fiberize" "$work/bin/riscv"
if command -v aarch64-linux-gnu-gcc >/dev/null && [ "$(uname -m)" = x86_64 ]; then
	aarch64-linux-gnu-gcc -o "$work/bin/arm" "$work/main.c"
	refused 'other machine, for real' 118 '*/arm: made for AArch64, and *' \
		"$fiberize" "$work/bin/arm"
else
	skip 'other machine, for real' 'no cross compiler'
fi
$CC -Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1 -o "$work/bin/musl" "$work/main.c"
refused 'musl' 119 '*/musl: uses musl*' "$fiberize" "$work/bin/musl"
$CC -Wl,-dynamic-linker,/system/bin/linker64 -o "$work/bin/bionic" "$work/main.c"
refused 'bionic' 119 '*/bionic: needs /system/bin/linker64*' "$fiberize" "$work/bin/bionic"
$CC -Wl,-dynamic-linker,/no/ld-linux.so.2 -o "$work/bin/lost" "$work/main.c"
refused 'its loader is missing' 127 '*/lost: its loader /no/ld-linux.so.2 does not exist' \
	"$fiberize" "$work/bin/lost"
# What the kernel makes of such a program depends on who starts it; tests/scripts/check/check.sh has more.
# foreign FILE: one that is set-user-ID of another user
foreign()
{
	cp "$work/bin/hello" "$1" && chown 65534 "$1" 2>/dev/null && chmod u+s "$1"
}
cp "$(command -v grep)" "$work/bin/setuid-own"
chmod ug+s "$work/bin/setuid-own"
run "$fiberize" "$work/bin/setuid-own" -cF libfiberize.so /proc/self/maps
same 'set-user-ID, to the user that one is' 0 "$code$err"
if foreign "$work/bin/setuid"; then
	refused 'set-user-ID' 120 '*/setuid: set-user-ID,*' "$fiberize" "$work/bin/setuid"
	run "$fiberize" --force "$work/bin/setuid"
	same '--force starts a set-user-ID program' 'hello0' "$out$code"
else
	skip 'set-user-ID' 'only root can make such a file'
fi

# What Go's linker leaves, and all that is looked at.
cat >"$work/go.c" <<'GO'
#include <stdlib.h>
__attribute__((section(".note.go.buildid"), used)) static const struct {
	unsigned namesz, descsz, type;
	char name[4], id[4];
} note = { 4, 4, 4, "Go", "abc" };
int main(void)
{
	return system("echo $FIBERIZE_LAUNCHED $LD_PRELOAD") != 0;
}
GO
$CC -o "$work/bin/go" "$work/go.c"
run "$fiberize" "$work/bin/go"
case $code:$out:$err in
"0:"[0-9]*" dormant $named_library:") pass 'Go: dormant, and quiet' ;;
*) fail 'Go: dormant, and quiet' "$code:$out:$err" ;;
esac
run "$fiberize" -v "$work/bin/go"
case $err in
"fiberize: $work/bin/go: a Go program, whose"*'runs natively'*) pass 'Go: says so if asked' ;;
*) fail 'Go: says so if asked' "$err" ;;
esac
if [ -x "$build/tests/programs/go_cgo" ]; then
	prints 'Go, for real' EXIT-SUCCESS "$fiberize" "$build/tests/programs/go_cgo"
else
	skip 'Go, for real' 'make check-all builds one'
fi

run "$fiberize" --force "$work/bin/static"
same '--force starts a static program' 'hello0' "$out$code"
case $err in
*'/static: statically linked'*'; started nevertheless (--force)') pass '--force says so' ;;
*) fail '--force says so' "$err" ;;
esac
printf '\000echo wrong\n' >"$work/bin/damaged"
chmod +x "$work/bin/damaged"
run "$fiberize" --force "$work/bin/damaged"
same '--force leaves what is damaged to the kernel, not to a shell' \
	"126:fiberize: $work/bin/damaged: neither a program nor a script; started nevertheless (--force)
fiberize: $work/bin/damaged: Exec format error" "$code:$out$err"
patched unclear 4 '\000'
refused 'a program of an unclear class' 126 '*/unclear: a damaged program*' \
	"$fiberize" "$work/bin/unclear"
run "$fiberize" --force "$work/bin/unclear"
same '--force starts what only looks damaged' "$("$work/bin/unclear" 2>&1)" "$out"
refused '--force does not start what is not there' 127 '*/no-such: no such program' \
	"$fiberize" --force "$work/no-such"

# script NAME FIRST-LINE: an executable script
script()
{
	printf '%s\necho "$0:$*"\n' "$2" >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}
script by-sh '#!/bin/sh'
prints 'script' "$work/bin/by-sh:a b" "$fiberize" "$work/bin/by-sh" 'a b'
script by-blank '#!  /bin/sh -e'
prints 'script with blanks and an argument' "$work/bin/by-blank:x" "$fiberize" "$work/bin/by-blank" x
script by-env '#!/usr/bin/env sh'
prints 'script by env' "$work/bin/by-env:x" "$fiberize" "$work/bin/by-env" x
script by-env-S '#!/usr/bin/env -S X=1 sh -e'
prints 'script by env -S' "$work/bin/by-env-S:x" "$fiberize" "$work/bin/by-env-S" x
script by-nothing 'true'
prints 'script without #!' "$work/bin/by-nothing:x" "$fiberize" "$work/bin/by-nothing" x
script by-none '#! '
prints 'script that names no interpreter' "$work/bin/by-none:x" "$fiberize" "$work/bin/by-none" x
script by-long "#!/$(printf '%0300d' 1)"
prints 'script whose interpreter the kernel would cut' "$work/bin/by-long:x" \
	"$fiberize" "$work/bin/by-long" x
printf 'echo "$0"; exit\n\000\001' >"$work/bin/with-data"
chmod +x "$work/bin/with-data"
prints 'script with data behind it' "$work/bin/with-data" "$fiberize" "$work/bin/with-data"
printf '#!/bin/sh\r\n' >"$work/bin/by-cr"
chmod +x "$work/bin/by-cr"
refused 'script with lines of another system' 127 \
	'*by-cr: its interpreter /bin/sh[?]: no such program (the name ends in a carriage return)' \
	"$fiberize" "$work/bin/by-cr"
mkdir "$work/elsewhere"
cp "$work/bin/args" "$work/elsewhere/only-there"
for words in "PATH=$work/elsewhere:/usr/bin:/bin only-there" "-C $work/elsewhere ./only-there" \
	"'$work/elsewhere/only-there'"; do
	script by-env-elsewhere "#!/usr/bin/env -S $words"
	prints "script by env -S ${words%% *}" "1<$work/bin/by-env-elsewhere>" \
		"$fiberize" "$work/bin/by-env-elsewhere"
done
script by-script "#!$work/bin/by-sh"
prints 'script by script' "$work/bin/by-sh:$work/bin/by-script x" "$fiberize" "$work/bin/by-script" x
script by-static "#!$work/bin/static"
refused 'script by a static program' 116 '*/by-static: its interpreter */static: statically*' \
	"$fiberize" "$work/bin/by-static"
script by-env-static '#!/usr/bin/env static'
refused 'script by env and a static program' 116 '*by-env-static: its interpreter */static: stat*' \
	env PATH="$work/bin:$PATH" "$fiberize" by-env-static
if [ -u "$work/bin/setuid" ]; then
	script by-setuid "#!$work/bin/setuid"
	refused 'script by a set-user-ID program' 120 \
		'*/by-setuid: its interpreter */setuid: set-user-ID*' "$fiberize" "$work/bin/by-setuid"
fi
script by-lost '#!/no/such/interpreter'
refused 'script by a missing program' 127 '*by-lost: its interpreter /no/such/interpreter: no such*' \
	"$fiberize" "$work/bin/by-lost"
script by-env-lost '#!/usr/bin/env no-such-program'
refused 'script by env and a missing program' 127 '*by-env-lost: *no-such-program: no such*' \
	"$fiberize" "$work/bin/by-env-lost"
script by-itself "#!$work/bin/by-itself"
refused 'script by itself' 126 '*too many interpreters' "$fiberize" "$work/bin/by-itself"

finish
