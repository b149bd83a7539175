#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/send_calls.sh - sendmsg and sendmmsg ask the kernel nothing for each message.  So a program that sends
# more messages makes more of these calls, and no more of others.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

command -v strace >/dev/null || { skip 'calls' 'strace is not installed'; finish; }
strace -o /dev/null true 2>/dev/null || { skip 'calls' 'strace may not trace here'; finish; }

# asked ROUNDS THREADS BACKEND: sets n to how many system calls were made that only ask
asked()
{
	must limited strace -f -qq -e trace=rt_sigprocmask,statx,getsockopt -o "$work/log" \
		-E "LD_PRELOAD=$library" -E "FIBERIZE_BACKEND=$3" "$helpers/sends" "$1" "$2"
	n=$(grep -c -v -e '+++' -e '---' "$work/log")
}

asked 10 0 auto
few=$n
asked 60 0 auto
same 'one thread' "$few" "$n"
for backend in uring epoll; do
	asked 10 1 $backend
	few=$n
	asked 60 1 $backend
	# What the runtime's own threads do varies, but is far from one for each of 1,700 messages.
	yes "threads, $backend" [ $((n - few)) -lt 500 ]
done
finish
