#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/forbidden.sh - io_uring forbidden by a seccomp filter, as in a
# container: fibers wait by epoll, the program's output does not change, and
# --verbose reports the reason.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../lib/judge.inc"

forbidden()
{
	limited "$helpers/forbid_io_uring" "$@" 2>"$work/err"
}

for name in thread_basic mutex_stress io_socket signal_basic proxy_chain; do
	limited "$programs/$name" >"$work/native"
	echo $? >"$work/native.status"
	forbidden "$fiberize" "$programs/$name" >"$work/fibers"
	echo $? >"$work/fibers.status"
	as_natively "$name" "$work/native" "$work/fibers"
	same "$name: nothing to say" '' "$(cat "$work/err")"
done

why='epoll (io_uring_setup: EPERM)'
program=$programs/mutex_stress
forbidden "$fiberize" -v -p 3 "$program" >/dev/null
same 'said when asked' "fiberize: version 0.1.0, 3 processors, $why" "$(cat "$work/err")"
forbidden "$fiberize" --stats "$program" >/dev/null
same 'and in the statistics' 1 "$(grep -c "^fiberize: mutex_stress\[[0-9]*\]: running, .*, $why\$" "$work/err")"

# As older container runtimes, and a kernel without memory for it.
for error in ENOSYS:38 ENOMEM:12 EACCES:13; do
	run "$helpers/forbid_io_uring" "-${error#*:}" "$fiberize" -v -p 2 "$program"
	same "${error%:*}: exit status" 0 "$code"
	same "${error%:*}: on epoll" \
		"fiberize: version 0.1.0, 2 processors, epoll (io_uring_setup: ${error%:*})" \
		"$err"
done

message='fiberize: threads stay kernel threads: io_uring_setup: EPERM'
forbidden "$fiberize" --backend uring "$program" >/dev/null
same 'insisted upon: native, said once' "$message" "$(cat "$work/err")"
forbidden env LD_PRELOAD="$build/libfiberize.so" FIBERIZE_BACKEND=uring "$program" >/dev/null
same 'the bare library is quiet' '' "$(cat "$work/err")"
forbidden "$fiberize" true
same 'no threads, nothing to say' '' "$(cat "$work/err")"

for backend in auto uring epoll; do
	case $backend in
	auto|uring) name=io_uring ;;
	epoll) name=epoll ;;
	esac
	run "$fiberize" -v -p 2 --backend $backend "$program"
	same "backend $backend" "fiberize: version 0.1.0, 2 processors, $name" "$err"
done
run "$fiberize" -v -p 2 --without sync-cancel "$program"
same 'an old io_uring' "fiberize: version 0.1.0, 2 processors, epoll (this kernel's io_uring is too old (6.0 or newer is needed): ENOSYS)" "$err"

finish
