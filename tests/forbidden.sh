#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/forbidden.sh [BUILD] - io_uring forbidden by a seccomp filter, as in a
# container: fibers wait by epoll, the program's answers are the same, and whoever
# asks is told why.  Last line: N passed, N failed.
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

for name in thread_basic mutex_stress io_socket signal_basic proxy_chain; do
	"$build/tests/programs/$name" >"$tmp/native"
	status=$?
	forbidden "$build/fiberize" "$build/tests/programs/$name" >"$tmp/out"
	check "$name: exit status" "$status" $?
	check "$name: output" "$(cat "$tmp/native")" "$(cat "$tmp/out")"
	check "$name: nothing to say" '' "$(cat "$tmp/err")"
done

why='epoll (io_uring_setup: EPERM)'
program=$build/tests/programs/mutex_stress
forbidden "$build/fiberize" -v -p 3 "$program" >/dev/null
check 'said when asked' "fiberize: version 0.1.0, 3 processors, $why" "$(cat "$tmp/err")"
forbidden "$build/fiberize" --stats "$program" >/dev/null
check 'and in the statistics' 1 "$(grep -c "^fiberize: running, .*, $why\$" "$tmp/err")"

message='fiberize: threads stay kernel threads: io_uring_setup: EPERM'
forbidden "$build/fiberize" --backend uring "$program" >/dev/null
check 'insisted upon: native, said once' "$message" "$(cat "$tmp/err")"
forbidden env LD_PRELOAD="$build/libfiberize.so" FIBERIZE_BACKEND=uring "$program" >/dev/null
check 'the bare library is quiet' '' "$(cat "$tmp/err")"
forbidden "$build/fiberize" true
check 'no threads, nothing to say' '' "$(cat "$tmp/err")"

for backend in auto uring epoll; do
	case $backend in
	auto|uring) name=io_uring ;;
	epoll) name=epoll ;;
	esac
	"$build/fiberize" -v -p 2 --backend $backend "$program" >/dev/null 2>"$tmp/err"
	check "backend $backend" "fiberize: version 0.1.0, 2 processors, $name" "$(cat "$tmp/err")"
done
"$build/fiberize" -v -p 2 --without sync-cancel "$program" >/dev/null 2>"$tmp/err"
check 'an old io_uring' "fiberize: version 0.1.0, 2 processors, epoll (this kernel's io_uring is too old (6.0 or newer is needed): ENOSYS)" "$(cat "$tmp/err")"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
