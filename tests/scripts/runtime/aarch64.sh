#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/aarch64.sh - the library on another CPU: unit tests and programs, by
# qemu-user, which has no io_uring: on epoll.  Each program natively (as far as an
# emulator is) and preloaded; output and exit status must be the same.
#
# Options and names are words on purpose:
# shellcheck disable=SC2086

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need qemu-aarch64
qemu="qemu-aarch64 -L $build/aarch64-sysroot"
library=$build/aarch64/libfiberize.so
[ -e "$build/aarch64/tests/unit" ] || die "$build/aarch64/tests is missing: run make aarch64-tests"

# What the emulator cannot do, also without us.
#	exec_basic exit_running setuid_threads	start themselves anew
#	fork_basic io_fortify io_close		fork among threads: it asserts, now and then
#	io_lfs epoll_select			pwritev2, epoll_pwait2
#	io_read_write io_socket io_datagram	errors of preadv2, recvmsg
#	mutex_kinds				priority inheritance
#	select_table				sets of more than 1,024 numbers: it asserts
#	thread_attr stress_churn		stacks smaller than this CPU's smallest
not_here=" exec_basic exit_running setuid_threads fork_basic io_fortify io_close io_lfs
	epoll_select io_read_write io_socket io_datagram mutex_kinds thread_attr stress_churn
	legacy_server select_table "

# There are no guards in the emulator's madvise, which says that there are.
skip='stack/guard_faults'

one_program() {
	local name=${1##*/} base=$work/${1##*/}.dir
	mkdir -p "$base"
	cd "$base" || exit 1
	limited $qemu "$1" >native 2>native.err </dev/null
	echo $? >native.status
	limited $qemu -E LD_PRELOAD="$library" "$1" >fibers 2>fibers.err </dev/null
	echo $? >fibers.status
	if [ "$(cat native.status)" != 0 ]; then
		fail "$name" "exit status $(cat native.status) in the emulator alone: $(head -n 2 native.err)"
	elif [ -s fibers.err ]; then
		fail "$name" "wrote on stderr: $(head -n 2 fibers.err)"
	else
		as_natively "$name" native fibers
	fi
}

one_unit() {
	local name=${1##*/}
	FIBERIZE_BACKEND=epoll limited $qemu "$1" $skip 2>&1 | sed -nE "s/^(PASS|FAIL|SKIP) /\1 $name: /p"
	[ "${PIPESTATUS[0]}" -lt 124 ] || fail "$name" 'hangs or crashes'
}

# One more for each CPU, as soon as one has ended.
each() {
	local number=0 file one=$1
	shift
	for file; do
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
			wait -n
		done
		number=$((number + 1))
		$one "$file" >"$work/$one.$number" &
	done
	wait
	cat "$work/$one".*
}

files=()
for file in "$build"/aarch64/tests/unit/*; do
	case $file in
	*.d|*/test_ring)	;;
	*)	files+=("$file") ;;
	esac
done
each one_unit "${files[@]}" >"$work/results"
files=()
for file in "$build"/aarch64/tests/programs/*; do
	case "${file##*/} $not_here" in
	*.d\ *|*.o\ *)	continue ;;
	esac
	[[ $not_here == *[[:space:]]"${file##*/}"[[:space:]]* ]] || files+=("$file")
done
each one_program "${files[@]}" >>"$work/results"
cat "$work/results"
passed=$(grep -c '^PASS' "$work/results")
failed=$(grep -c '^FAIL' "$work/results")
skipped=$(grep -c '^SKIP' "$work/results")
finish
