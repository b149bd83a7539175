#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/launch/launcher_exec.sh - the program that "fiberize PROGRAM" becomes: process, descriptors,
# arguments, environment.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"

cat >"$work/bin/args" <<'ARGS'
#!/bin/sh
printf '%d' $#
for word; do printf '<%s>' "$word"; done
ARGS
chmod +x "$work/bin/args"

"$fiberize" sh -c 'echo $$' >"$work/out" &
pid=$!
wait $pid
same 'process id stays' "$pid" "$(cat "$work/out")"

for status in 0 1 2 77 126 255; do
	run "$fiberize" sh -c "exit $status"
	same "exit status $status" "$status" "$code"
done

for signal in 15 11 9 6; do
	# Quietly: what is printed about it is this shell's affair.
	{ "$fiberize" sh -c "ulimit -c 0; kill -$signal \$\$" & } 2>/dev/null
	pid=$!
	{ wait $pid; } 2>/dev/null
	same "killed by signal $signal" $((128 + signal)) $?
done

"$fiberize" sleep 100 &
pid=$!
at_exit kill -KILL "$pid"
became_sleep()
{
	[ "$(cat "/proc/$pid/comm")" = sleep ]
}
eventually became_sleep
same 'no shell stays in between' sleep "$(cat "/proc/$pid/comm")"
yes 'the library is there' grep -qF "$library" "/proc/$pid/maps"
kill -TERM $pid
{ wait $pid; } 2>/dev/null
same 'a signal from outside reaches the program' 143 $?

run "$fiberize" sh -c 'echo to-stdout; echo to-stderr >&2'
same 'standard output' to-stdout "$out"
same 'standard error' to-stderr "$err"
same 'standard input' "a b$newline c" "$(printf 'a b\n c\n' | "$fiberize" cat)"
"$fiberize" sh -c '[ ! -e /proc/self/fd/0 ]' <&-
same 'closed standard input stays closed' 0 $?
prints 'no descriptor is left open' "$(ls /proc/self/fd)" "$fiberize" ls /proc/self/fd
prints 'working directory' "$(pwd -P)" "$fiberize" pwd -P
prints 'argument zero is as given' 'cat /proc/self/cmdline ' \
	sh -c '"$1" cat /proc/self/cmdline | tr "\000" " "' - "$fiberize"

set -- '' 'a b' "c${newline}d" '*' 'back\slash' "it's" '"' '$HOME' '`id`' -n -- -p --help "end$newline"
prints 'arguments arrive as they are' "$("$work/bin/args" "$@")" "$fiberize" "$work/bin/args" "$@"
prints 'arguments behind --' "$("$work/bin/args" "$@")" "$fiberize" -- "$work/bin/args" "$@"

# The order is a shell's affair; each variable must be there.
run env -i "A=x${newline}FIBERIZE_FOO=1" PATH="$PATH" "$fiberize" env
same 'environment: nothing but LD_PRELOAD and our mark is added' \
	"$(printf 'A=x\nFIBERIZE_FOO=1\nFIBERIZE_LAUNCHED=N\nLD_PRELOAD=%s\nPATH=%s\n' \
		"$named_library" "$PATH" | sort)" \
	"$(printf '%s\n' "$out" | sed 's/^FIBERIZE_LAUNCHED=[0-9]* [0-9]*:[0-9]*:[0-9]*$/FIBERIZE_LAUNCHED=N/' | sort)"
# Names that a shell cannot hold, that mean something to it, that are the launcher's.
# environment COMMAND...: the variables of printenv -0, run by that
environment()
{
	LC_ALL=C limited "$(command -v env)" -i PATH="$PATH" 'a.b=c d' 'BASH_FUNC_x%%=() { x
}' version=9 table=t name=n code=7 section=s native=n launched=l through=t restore=r file=f \
		newline=n IFS=: PPID=1 OPTIND=5 PS1=p PWD=/nonsense OLDPWD=/q EX_USAGE=9 empty= \
		"bytes=$bytes" "more.bytes=$bytes" "$@" printenv -0 | sort -z |
		sed -z 's/^FIBERIZE_LAUNCHED=[0-9]* [0-9]*:[0-9]*:[0-9]*$/FIBERIZE_LAUNCHED=N/' | tr '\000' '\n'
}
bytes=$(awk 'BEGIN { for (i = 1; i < 256; i++) printf "\\0%03o", i }')
bytes=$(printf '%b.' "$bytes")
same 'environment: whatever the names' "$(environment "$(command -v env)" \
	FIBERIZE_LAUNCHED=N LD_PRELOAD="$named_library")" "$(environment "$fiberize" --no-profiles)"
prints 'environment: twice' "c$newline$named_library" \
	env a.b=c "$fiberize" "$fiberize" printenv a.b LD_PRELOAD
prints 'LD_PRELOAD of others is kept, behind ours' "$named_library:libm.so.6:libdl.so.2" \
	env LD_PRELOAD='libm.so.6 libdl.so.2' "$fiberize" printenv LD_PRELOAD
cat >"$work/doubled.c" <<'END'
#include <unistd.h>

int main(int argc, char **argv)
{
	char *environment[] = { "LD_PRELOAD=", "LD_PRELOAD=libm.so.6", argv[argc - 1], 0 };

	argv[argc - 1] = 0;
	execve(argv[1], argv + 1, environment);
	return 1;
}
END
"$CC" -w -o "$work/bin/doubled" "$work/doubled.c"
prints 'LD_PRELOAD twice in the environment' "$named_library:libm.so.6" \
	"$work/bin/doubled" "$fiberize" printenv LD_PRELOAD "PATH=$PATH"
prints 'twice is once' "$named_library" "$fiberize" "$fiberize" printenv LD_PRELOAD

finish
