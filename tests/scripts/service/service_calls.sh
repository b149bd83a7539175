#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/service/service_calls.sh - SystemCallFilter= of a service: what the drop-in adds, what is refused; the system
# calls that scripts/service/filter.awk has: what programs call with the library, and not natively, is among them.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/service.inc
. "$(dirname "$0")/../../lib/service.inc"
need systemd-analyze

unit forbids 'SystemCallFilter=~@aio @mount'
service enable forbids
has 'io_uring is forbidden' "$(dropin forbids)" '^Environment=FIBERIZE_BACKEND=epoll'
same 'and stays so' 0 "$(grep -c SystemCallFilter "$(dropin forbids)")"
unit forbids 'SystemCallFilter=~io_uring_register'
service enable forbids
has 'one call of io_uring is forbidden' "$(dropin forbids)" '^Environment=FIBERIZE_BACKEND=epoll'
unit forbids SystemCallFilter=@system-service 'SystemCallFilter=~@aio'
service enable forbids
has 'io_uring is taken back from what is allowed' "$(dropin forbids)" '^Environment=FIBERIZE_BACKEND=epoll'
same 'and is not given back' 0 "$(grep -c io_uring_ "$(dropin forbids)")"
service disable forbids
# An error behind a name that is taken back from what is allowed is none for systemd.
for words in '~@io-event' '~@file-system' '~@known' '@system-service|~@io-event' '@system-service|~@io-event:EPERM'; do
	unit ends SystemCallFilter="${words%|*}" "SystemCallFilter=${words#*|}"
	refuses ends 102 '*would end it: @* forbids *, which the library calls; allow that, or set SystemCallErrorNumber=EPERM'
done
unit ends 'SystemCallFilter=~epoll_ctl'
refuses ends 102 '*would end it: epoll_ctl forbids epoll_ctl, which *'
unit ends 'SystemCallFilter=~@io-event' SystemCallErrorNumber=kill
refuses ends 102 '*would end it: @io-event forbids epoll_create1, which *'
for lines in 'SystemCallFilter=~@io-event|SystemCallErrorNumber=EPERM' 'SystemCallFilter=~@io-event:EPERM' \
	'SystemCallFilter=~@io-event|SystemCallFilter=@io-event' 'SystemCallFilter=~@io-event|SystemCallFilter='; do
	unit ends "${lines%|*}" "${lines#*|}"
	service enable ends
	same "a filter that ends nothing: $lines" 0: "$code:$err"
	same "a filter that ends nothing: $lines: is left" 0 "$(grep -c -e SystemCallFilter -e BACKEND "$(dropin ends)")"
	service disable ends
done
# What it calls only now and then: when a connection is reset, in waitid, at the end of a FIFO.
unit some 'SystemCallFilter=@basic-io @file-system @io-event @network-io @process @signal ioctl:EPERM'
service enable some
for call in ioctl getcpu vmsplice; do
	has "calls are added: $call" "$(dropin some)" "^SystemCallFilter=.* $call\( \|$\)"
done
mkdir -p "$etc/some.service.d"
printf '[Service]\nSystemCallFilter=\nSystemCallFilter=@basic-io\n' >"$etc/some.service.d/60-later.conf"
service disable some
refuses some 102 '*/60-later.conf empties SystemCallFilter=, and counts more than 50-fiberize.conf: rename it'
mv "$etc/some.service.d/60-later.conf" "$etc/some.service.d/40-sooner.conf"
service enable some
same 'a filter that was emptied before' 0: "$code:$err"
service disable some
rm -r "$etc/some.service.d"
unit mounts 'SystemCallFilter=~@mount'
service enable mounts
same 'something else is forbidden' 0 "$(grep -c -e SystemCallFilter -e BACKEND "$(dropin mounts)")"

# ---- what the library calls

command -v strace >/dev/null || { skip 'calls' 'strace is not installed'; finish; }
strace -o /dev/null true 2>/dev/null || { skip 'calls' 'strace may not trace here'; finish; }

systemd-analyze syscall-filter >"$work/groups" 2>/dev/null

# calls NAME COMMAND...: the names of the system calls that it makes, in $work/NAME
calls()
{
	must limited strace -f -qq -o "$work/log" "${@:2}" >/dev/null
	# A call that waits has two lines; the second one begins otherwise.
	sed -nE 's/^[0-9]+ +([a-z][a-z0-9_]*)\(.*/\1/p' "$work/log" | grep -v '^syscall_' | sort -u >"$work/$1"
}

for program in "$programs/thread_basic" "$programs/io_socket" "$helpers/all_rungs"; do
	calls native "$program"
	{
		cat "$work/native"
		# As if the unit allowed these alone.
		awk -f "$root/scripts/service/filter.awk" -v kind=allow -v "words=$(tr '\n' ' ' <"$work/native")" -v number= \
			"$work/groups" | sed -n 's/^missing //p'
		sed -n '/^@default$/,/^$/s/^ *\([a-z0-9_]*\)$/\1/p' "$work/groups"
	} | sort -u >"$work/allowed"
	for backend in uring epoll; do
		calls fibers -E "LD_PRELOAD=$library" -E "FIBERIZE_BACKEND=$backend" "$program"
		same "${program##*/}, $backend: no other calls" '' "$(comm -13 "$work/allowed" "$work/fibers" | xargs)"
	done
done
finish
