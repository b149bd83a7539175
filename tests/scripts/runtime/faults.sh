#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/faults.sh - what the kernel may refuse, delay or reorder is made to happen
# (runtime/base/fault.h), in a library that checks its lock ranks and lists: programs answer
# as natively.  tests/ANSWERS.md has what happens.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/checked.inc
. "$(dirname "$0")/../../lib/checked.inc"

checked=$build/checked
units=(test_lock test_runq test_lot test_sched test_birth test_fairness test_handoff)

# Without FZ_ALL no unit tests.
[ -n "${FZ_ALL-}" ] || units=()
build_checked libfiberize.so "${units[@]/#/tests/unit/}"

for unit in "${units[@]}"; do
	run "$checked/tests/unit/$unit"
	same "$unit with slow assertions" 0 "$code"
done

# checked NAME PROGRAM [VARIABLE=VALUE]...: it ends and says what it does natively.  What the
# library says is left in $work/err.
checked() {
	local name=$1 program=$2 command
	shift 2
	command=("$@" "$programs/$program")
	case $program in
	sync_stress)	command+=(0.01 cond) ;;
	io_closed|poll_rounds)	[ -n "${FZ_ALL-}" ] || command+=(600) ;;
	esac
	if [ ! -e "$work/$program" ]; then
		run env "${command[@]}"
		mv "$work/out" "$work/$program"
		echo "$code" >"$work/$program.status"
	fi
	run env LD_PRELOAD="$checked/libfiberize.so" "${command[@]}"
	echo "$code" >"$work/out.status"
	as_natively "$name" "$work/$program" "$work/out"
}

for program in sync_stress sleep_many mixed_rungs signal_basic cancel_waits fork_basic \
		cond_basic io_closed; do
	for how in '' FIBERIZE_PROCESSORS=1 FIBERIZE_BACKEND=epoll; do
		# shellcheck disable=SC2086
		checked "$program ${how#FIBERIZE_}" "$program" $how
	done
done

# Faults, when they fire, and a program that reaches them with these options.  Without FZ_ALL the first
# of the times.
while read -r fault times program how; do
	[ -n "${FZ_ALL-}" ] || times=${times%%,*}
	for when in ${times//,/ }; do
		# shellcheck disable=SC2086
		checked "$fault:$when $program ${how#FIBERIZE_}" "$program" \
			FIBERIZE_STATS=1 FZ_FAULTS="$fault:$when" $how
		grep -q "^fiberize: fault $fault: reached .*, fired [1-9]" "$work/err" ||
			fail "$fault:$when $program" "has not fired: $(grep "fault $fault" "$work/err")"
	done
done <<'END'
mmap 1,2,3,4,5,6,1/2 thread_basic
mmap 5 sleep_many
dup 1,3,1+ thread_basic
dup 1,1+ io_closed
dup 1/2 io_closed FIBERIZE_BACKEND=epoll
eventfd 1,2 thread_basic FIBERIZE_PROCESSORS=2
epoll_create 1,2 thread_basic FIBERIZE_BACKEND=epoll FIBERIZE_PROCESSORS=2
ring_setup 1,2 io_socket FIBERIZE_PROCESSORS=2
thread_helper 1,2 thread_basic
thread_carrier 1,2,1/2,2+ mixed_rungs
thread_carrier 1 thread_basic
thread_carrier 2+ thread_loader
thread_carrier 1+ io_socket
thread_carrier 2+ many_blocked FIBERIZE_BACKEND=epoll
thread_carrier 2+ many_blocked FIBERIZE_PROCESSORS=1
thread_carrier 2+,3+ burst_blocked FIBERIZE_PROCESSORS=4
thread_carrier 2+ mixed_rungs FIBERIZE_PROCESSORS=8
thread_fiber 1,1/2,1/3 thread_basic
late_birth 1+ fork_limit FIBERIZE_PROCESSORS=1
late_birth 1+ fork_limit FIBERIZE_BACKEND=epoll
late_spare 1 thread_allocator FIBERIZE_PROCESSORS=1
late_submit 1+,1/2 io_closed FIBERIZE_PROCESSORS=2
late_submit 1/2 mixed_rungs
later_submit 1+ io_queued FIBERIZE_PROCESSORS=2
later_submit 1/2 io_queued FIBERIZE_PROCESSORS=8
long_tick 1+,1/2 mixed_rungs FIBERIZE_PROCESSORS=1
no_sqe 1/2,1/7 io_socket
no_sqe 1/2,1/7 poll_rounds
late_completion 1/2,1/5 io_socket
late_completion 1/3 mixed_rungs
reordered_completions 1,1/2 io_socket
reordered_completions 1/2 poll_rounds
short_tick 1+,1/2 mixed_rungs FIBERIZE_PROCESSORS=1
short_tick 1+,1/2,1/3 own_ring
submit_again 1,1/2,1+ io_closed FIBERIZE_PROCESSORS=1
submit_busy 1,1/2,1+ io_closed FIBERIZE_PROCESSORS=1
submit_busy 1/2 poll_rounds FIBERIZE_PROCESSORS=1
ring_lost 1,2 io_closed FIBERIZE_PROCESSORS=1
ring_lost 2,200 poll_rounds FIBERIZE_PROCESSORS=1
ring_lost 4,8 io_turns FIBERIZE_PROCESSORS=1
futex_spurious 1/2,1/3 native_mix
futex_eintr 1/2,1/3 native_mix
wait_eintr 1/2 io_socket
wait_eintr 1/2 mixed_rungs FIBERIZE_BACKEND=epoll
deny_accept 1+,2+ io_socket
deny_async_cancel 1+,3+ cancel_waits
deny_async_cancel 1+ io_turns FIBERIZE_PROCESSORS=1
deny_connect 1+ io_timeouts
deny_futex_wait 1+,4+ syscall_futex
deny_kick 1+,1/2 mixed_rungs
deny_kick 1+,1/2 mixed_rungs FIBERIZE_BACKEND=epoll
deny_poll_add 1+,4+ io_read_write
deny_poll_add 1+,4+ cancel_waits
deny_poll_add 10+ io_turns
deny_poll_remove 1+ cancel_waits
deny_poll_remove 1+,40+ poll_rounds
deny_read 1+,4+ io_read_write
deny_read 1+,4+ file_disk FIBERIZE_IO=ring
deny_readv 1+,4+ file_disk FIBERIZE_IO=ring
deny_recv 1+,4+ io_socket
deny_recv 20+ io_turns FIBERIZE_PROCESSORS=1
deny_recv 20+,40+ io_turns FIBERIZE_PROCESSORS=2
deny_recvmsg 1+ io_read_write
deny_send 1+,2+ io_socket FIBERIZE_PROCESSORS=1
deny_waitid 1+,2+ wait_children
deny_write 1+,4+ file_disk FIBERIZE_IO=ring
deny_writev 1+,4+ file_disk FIBERIZE_IO=ring
wrong_load 1+ mixed_rungs FIBERIZE_PROCESSORS=4
wrong_load 1/2 io_closed FIBERIZE_PROCESSORS=4
wrong_load 1+ io_turns FIBERIZE_BACKEND=epoll FIBERIZE_PROCESSORS=4
END

# The report names what was lost, and by which error.
checked 'ring_lost:2 io_closed: told' io_closed FIBERIZE_STATS=1 FIBERIZE_PROCESSORS=1 FZ_FAULTS=ring_lost:2
has 'ring_lost:2: told' "$work/err" ' epoll (io_uring_enter in mid-run: EPERM)$'

# A filter refuses requests, and io_uring is lost while the library asks whether one does.
for when in 1 2 3 4 5 6; do
	checked "deny_recv:1+,ring_lost:$when io_socket" io_socket FIBERIZE_PROCESSORS=1 \
		FZ_FAULTS="deny_recv:1+,ring_lost:$when"
done

# A filter refuses two of the calls that wake a carrier, or all three, from the start or in mid-run.
two=deny_kick:1+,deny_kick_by_vector:1+
for how in '' FIBERIZE_BACKEND=epoll; do
	for faults in $two $two,deny_kick_by_offset:1+ $two,deny_kick_by_offset:5+; do
		# shellcheck disable=SC2086
		checked "$faults mixed_rungs ${how#FIBERIZE_}" mixed_rungs $how FZ_FAULTS=$faults
	done
done

# What cannot be meant fires nothing, and is said.
for value in nothing:1 mmap mmap: mmap:0 mmap:1/0 mmap:2/3 mmap:1x mmap:1,dup; do
	checked "FZ_FAULTS=$value" thread_basic FIBERIZE_STATS=1 FZ_FAULTS=$value
	same "FZ_FAULTS=$value: said" 1 \
		"$(grep -c "^fiberize: FZ_FAULTS=$value: a list of NAME:N, .* none fires" "$work/err")"
	same "FZ_FAULTS=$value: none fires" 0 "$(grep -c 'fired [1-9]' "$work/err")"
done

# Calls that make something, denied by a filter; all of them: answers.sh.
lines "$root/tests/lib/answers.py" --quick --jobs 2 "$build" "$root/tests/ANSWERS.md"
for missing in "$work/nothing $root/tests/ANSWERS.md" "$build $work/nothing"; do
	# shellcheck disable=SC2086 # words
	run "$root/tests/lib/answers.py" $missing
	like "answers.py $missing" "2 answers.py: *nothing* is missing: run make tests" "$code $out$err"
done
run "$root/tests/lib/answers.py" --quick --filter 'mmap nosuch' "$build" "$root/tests/ANSWERS.md"
like "answers.py --filter with words of no point" "2 *answers.py: no point has all the words of --filter 'mmap nosuch'" "$code $out$err"

# Each place where the library makes a system call has a row or a reason; one without is named, also where another call
# of the function has one, and so is a reason too many.
if [ "$(uname -m)" = x86_64 ]; then
	reasons=$root/tests/lib/sites.reasons
	lines "$root/tests/lib/sites.py" "$library" "$root/tests/ANSWERS.md" "$reasons"
	sed 's/^mmap,munmap make_rings /mmap,mremap make_rings /' "$reasons" >"$work/reasons"
	echo 'read nobody runtime/sched/trace.c: is not there' >>"$work/reasons"
	run "$root/tests/lib/sites.py" "$library" "$root/tests/ANSWERS.md" "$work/reasons"
	same "a place without a reason, and a reason without a place" "1 FAIL make_rings runtime/sched/trace.c (munmap)\
: has neither row nor reason${newline}FAIL make_rings runtime/sched/trace.c (mremap)\
: has a reason, and makes no such call${newline}FAIL nobody runtime/sched/trace.c: has a reason, and makes no such call" "$code $out$err"
fi

finish
