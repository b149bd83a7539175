#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/forbidden.sh [BUILD] - io_uring forbidden by a seccomp filter, as in a
# container: threads stay native, the program's answers are the same, and the
# launcher's user is told once.  Last line: N passed, N failed.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=${1:-$root/build}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

check()
{
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
		echo "PASS $1"
	else
		failed=$((failed + 1))
		echo "FAIL $1: wanted <$2>, got <$3>"
	fi
}

forbidden()
{
	"$build/tests/forbid_io_uring" "$@" 2>"$tmp/err"
}

message='fiberize: threads stay kernel threads: io_uring_setup: EPERM'
for name in thread_basic mutex_stress io_socket signal_basic proxy_chain; do
	"$build/tests/programs/$name" >"$tmp/native"
	status=$?
	forbidden "$build/fiberize" "$build/tests/programs/$name" >"$tmp/out"
	check "$name: exit status" "$status" $?
	check "$name: output" "$(cat "$tmp/native")" "$(cat "$tmp/out")"
	check "$name: said once" "$message" "$(cat "$tmp/err")"
done

program=$build/tests/programs/mutex_stress
forbidden env LD_PRELOAD="$build/libfiberize.so" "$program" >/dev/null
check 'the bare library is quiet' '' "$(cat "$tmp/err")"
forbidden env LD_PRELOAD="$build/libfiberize.so" FIBERIZE_VERBOSE=1 "$program" >/dev/null
check 'unless asked' "$message" "$(cat "$tmp/err")"
forbidden "$build/fiberize" true
check 'no threads, nothing to say' '' "$(cat "$tmp/err")"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
