#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/redirect.sh - calls inside libc: what the statistics say, and how many
# kernel threads it takes to serve 1,000 threads that talk by stdio on sockets.  Last
# line: N passed, N failed.

# shellcheck source=tests/scripts/cases.inc
. "$(dirname "$0")/cases.inc"
program=$programs/stdio_many

# check NAME PATTERN GOT
check()
{
	# shellcheck disable=SC2254 # a pattern
	case $3 in
	$2)	pass "$1" ;;
	*)	fail "$1" "wanted <$2>, got <$3>" ;;
	esac
}

# What the statistics say of it.
said()
{
	env LD_PRELOAD="$library" FIBERIZE_STATS=1 "$@" 2>&1 >/dev/null |
		sed -n 's/^fiberize: calls inside libc: //p'
}

forbid=$build/tests/helpers/forbid_exec_memory
check 'on' '[1-9]* entry points redirected' "$(said "$program" 20)"
# All of them, where tests are run.
on=$(said "$program" 20)
check 'every entry point' "${on%% *} of ${on%% *} *" "$on"
check 'off' 'not redirected: switched off' "$(said FIBERIZE_REDIRECT=0 "$program" 20)"
check 'dormant' 'not redirected: dormant' "$(said true)"
check 'refused by a filter' 'not redirected: the system forbids it: EPERM' \
	"$(said "$forbid" seccomp "$program" 20 | tail -n 1)"
"$forbid" mdwe true
if [ $? != 77 ]; then
	check 'refused by PR_SET_MDWE' 'not redirected: the system forbids it: EACCES' \
		"$(said "$forbid" mdwe "$program" 20 | tail -n 1)"
fi
check 'threads are native' 'not redirected: dormant' "$(said FIBERIZE_DISABLE=1 "$program" 20)"

# A library before libc that has the name calls libc's in turn: that must not lead back.
cat >"$work/other.c" <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
ssize_t read(int fd, void *buf, size_t n)
{
	static ssize_t (*next)(int, void *, size_t);
	if (!next)
		next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	return next(fd, buf, n);
}
EOF
${CC:-gcc} -shared -fPIC -o "$work/other.so" "$work/other.c" || exit 1
for order in "$library:$work/other.so" "$work/other.so:$library"; do
	LD_PRELOAD=$order FIBERIZE_VERBOSE=1 timeout 60 "$program" 20 >"$work/out" 2>"$work/err"
	check "another library's read, ${order##*/}: done" 0 $?
	case $order in
	"$library"*)
		check 'and libc'\''s is left alone' 'fiberize: read is not redirected: it is not *' \
			"$(grep '^fiberize: read ' "$work/err")" ;;
	esac
done

# A debugger's breakpoint in a function makes that one stay as it is.
if command -v gdb >/dev/null; then
	# Exported by libc only; the same as sendmmsg.
	env LD_PRELOAD= timeout 200 gdb -batch -nx -ex 'set pagination off' \
		-ex "set environment LD_PRELOAD $library" \
		-ex 'set environment FIBERIZE_VERBOSE 1' -ex 'set startup-with-shell off' \
		-ex 'break main' -ex 'run' -ex 'break *(long)&__sendmmsg' -ex 'continue' \
		--args "$program" 20 >"$work/out" 2>&1
	check 'a breakpoint is left alone' '*sendmmsg is not redirected: its first inst*' \
		"$(grep sendmmsg "$work/out")"
	check 'and the program ends' '*EXIT-SUCCESS*' "$(cat "$work/out")"
fi

# most FILE COMMAND...: runs it, and prints how many kernel threads it had at most.
most()
{
	local out=$1 pid most=0 now
	shift
	"$@" >"$out" 2>&1 &
	pid=$!
	while now=$(sed -n 's/^Threads:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null) &&
			[ -n "$now" ]; do
		[ "$now" -gt "$most" ] && most=$now
		sleep 0.01
	done
	wait $pid || echo "exit status $?" >>"$out"
	echo "$most"
}

# Besides the monitor and the maker of carriers.  On a busy machine some more are taken
# for blocked that only were not their turn: in one of several runs it must do.
for processors in 1 2; do
	for _ in 1 2 3 4 5 6; do
		threads=$(most "$work/out" env LD_PRELOAD="$library" \
			FIBERIZE_PROCESSORS=$processors "$program" 1000)
		if [ "$(tail -n 1 "$work/out")" != EXIT-SUCCESS ] ||
				[ $((threads - 2)) -le $((processors + 4)) ]; then
			break
		fi
	done
	check "1000 threads, $processors processors: done" 'EXIT-SUCCESS' "$(tail -n 1 "$work/out")"
	[ $((threads - 2)) -le $((processors + 4)) ]
	check "1000 threads, $processors processors: $((threads - 2)) carriers" 0 $?
done
threads=$(most "$work/out" env LD_PRELOAD="$library" FIBERIZE_REDIRECT=0 "$program" 1000)
check "1000 threads, off, $threads kernel threads: done" 'EXIT-SUCCESS' "$(tail -n 1 "$work/out")"

finish
