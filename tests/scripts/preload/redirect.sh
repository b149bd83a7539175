#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/redirect.sh - calls inside libc: what the statistics say, and how many
# kernel threads it takes to serve 1,000 threads that talk by stdio on sockets.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
program=$programs/stdio_many

# What the statistics say of it.
statistics()
{
	limited env LD_PRELOAD="$library" FIBERIZE_STATS=1 "$@" 2>&1 >/dev/null |
		sed -n 's/^fiberize: [^ ]*: calls inside libc: //p'
}

forbid=$helpers/forbid_exec_memory
like 'on' '[1-9]* entry points redirected' "$(statistics "$program" 20)"
# All of them, where tests are run.
on=$(statistics "$program" 20)
like 'every entry point' "${on%% *} of ${on%% *} *" "$on"
like 'off' 'not redirected, so each that waits takes a kernel thread: FIBERIZE_REDIRECT is 0' "$(statistics FIBERIZE_REDIRECT=0 "$program" 20)"
like 'dormant' '* takes a kernel thread: dormant' "$(statistics true)"
like 'refused by a filter' '* takes a kernel thread: changing libc*s code is forbidden here*: EPERM' \
	"$(statistics "$forbid" seccomp "$program" 20 | tail -n 1)"
"$forbid" mdwe true
if [ $? != 77 ]; then
	like 'refused by PR_SET_MDWE' '* takes a kernel thread: changing libc*s code is forbidden here*: EACCES' \
		"$(statistics "$forbid" mdwe "$program" 20 | tail -n 1)"
fi
like 'threads are native' '* takes a kernel thread: dormant' "$(statistics FIBERIZE_DISABLE=1 "$program" 20)"

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
must "$CC" -shared -fPIC -o "$work/other.so" "$work/other.c"
for order in "$library:$work/other.so" "$work/other.so:$library"; do
	run env LD_PRELOAD="$order" FIBERIZE_VERBOSE=1 "$program" 20
	same "another library's read, ${order##*/}: done" 0 "$code"
	case $order in
	"$library"*)
		like 'and libc'\''s is left alone' 'fiberize: read is not redirected: it is not *' \
			"$(grep '^fiberize: read ' "$work/err")" ;;
	esac
done

# A debugger's breakpoint in a function makes that one stay as it is.
if command -v gdb >/dev/null; then
	# Exported by libc only; the same as sendmmsg.
	run gdb -batch -nx -ex 'set pagination off' \
		-ex "set environment LD_PRELOAD $library" \
		-ex 'set environment FIBERIZE_VERBOSE 1' -ex 'set startup-with-shell off' \
		-ex 'break main' -ex 'run' -ex 'break *(long)&__sendmmsg' -ex 'continue' \
		--args "$program" 20
	like 'a breakpoint is left alone' '*sendmmsg is not redirected: its first inst*' \
		"$(grep -h sendmmsg "$work/out" "$work/err")"
	like 'and the program ends' '*EXIT-SUCCESS*' "$out"
fi

# carriers VARIABLE=VALUE: runs 1,000 threads, and sets carriers to how many kernel threads ran fibers
# at most.  The kernel's count has the kernel threads of new threads, too, which end when the machine
# lets them run.
carriers()
{
	run env LD_PRELOAD="$library" FIBERIZE_STATS=1 "$1" "$program" 1000
	carriers=$(sed -n 's/^fiberize: .*, \([0-9]*\) carriers.*/\1/p' "$work/err")
	carriers=${carriers:-0}
}

# Of 1,000 threads, 500 wait at once: as fibers, without a kernel thread each.
for processors in 1 2; do
	carriers FIBERIZE_PROCESSORS=$processors
	like "1000 threads, $processors processors: done" 'EXIT-SUCCESS' "$(tail -n 1 "$work/out")"
	yes "1000 threads, $processors processors: few kernel threads ($carriers)" \
		[ "$carriers" -lt 100 ]
	few=$carriers
done
carriers FIBERIZE_REDIRECT=0
like '1000 threads, off: done' 'EXIT-SUCCESS' "$(tail -n 1 "$work/out")"
# 500, if the machine lets all of them begin to wait before the first one is asked.
yes "1000 threads, off: a kernel thread each that waits ($carriers)" [ "$carriers" -gt $((5 * few)) ]

finish
