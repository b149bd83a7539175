#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/aarch64.sh [BUILD] - the library on another CPU: unit tests and programs, by
# qemu-user, which has no io_uring: on epoll.  Each program natively (as far as an
# emulator is) and preloaded; output and exit status must be the same.
#
# Prints a line per failure; the last line is "N passed, N failed".
# Options and names are words on purpose:
# shellcheck disable=SC2086
set -u

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
build=${1:-$root/build}
export qemu="qemu-aarch64 -L $build/aarch64-sysroot"
export library=$build/aarch64/libfiberize.so
work=$(mktemp -d "${TMPDIR:-/tmp}/fz-aarch64.XXXXXX") || exit 1
export work
trap 'rm -rf "$work"' EXIT

[ -e "$library" ] || {
	echo "$library is missing: run make aarch64"
	exit 1
}

# What the emulator cannot do, also without us.
#	exec_basic exit_running setuid_threads	start themselves anew
#	fork_basic io_fortify io_close		fork among threads: it asserts, now and then
#	io_lfs epoll_select			pwritev2, epoll_pwait2
#	io_read_write io_socket			errors of preadv2, recvmsg
#	mutex_kinds				priority inheritance
#	thread_attr stress_churn		stacks smaller than this CPU's smallest
not_here=" exec_basic exit_running setuid_threads fork_basic io_fortify io_close io_lfs
	epoll_select io_read_write io_socket mutex_kinds thread_attr stress_churn
	legacy_server "

# There are no guards in the emulator's madvise, which says that there are.
export skip='stack/guard_faults'

one_program() {
	local name=${1##*/} status want
	mkdir -p "$work/$name"
	cd "$work/$name" || exit 1
	timeout -k 2 60 $qemu "$1" >native.out 2>native.err </dev/null
	want=$?
	timeout -k 2 60 $qemu -E LD_PRELOAD="$library" "$1" >out 2>err </dev/null
	status=$?
	if [ $want != 0 ]; then
		echo "FAILED $name: exit status $want in the emulator alone: $(head -n 2 native.err)"
	elif [ $status != 0 ]; then
		echo "FAILED $name: exit status $status: $(head -n 2 err)"
	elif [ -s err ]; then
		echo "FAILED $name: wrote on stderr: $(head -n 2 err)"
	elif ! cmp -s native.out out; then
		echo "FAILED $name: output differs: $(diff native.out out | head -n 5)"
	else
		echo PASS
	fi
}

one_unit() {
	local name=${1##*/}
	if FIBERIZE_BACKEND=epoll timeout -k 2 120 $qemu "$1" $skip >"$work/$name.log" 2>&1; then
		echo PASS
	else
		echo "FAILED $name: $(grep -vE '^qemu: uncaught' "$work/$name.log" | tail -n 6)"
	fi
}
export -f one_program one_unit

{
	for file in "$build"/aarch64/tests/unit/*; do
		case $file in
		*.d|*/test_ring)	continue ;;
		esac
		echo "one_unit $file"
	done
	for file in "$build"/aarch64/tests/programs/*; do
		name=${file##*/}
		case "$name $not_here" in
		*.d\ *|*.o\ *)	continue ;;
		*[[:space:]]"$name"[[:space:]]*)	continue ;;
		esac
		echo "one_program $file"
	done
} | xargs -P "$(nproc)" -I '{}' bash -c '{}' >"$work/results"

grep -v '^PASS$' "$work/results"
passed=$(grep -c '^PASS$' "$work/results")
failed=$(grep -c '^FAILED' "$work/results")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 30 ]
