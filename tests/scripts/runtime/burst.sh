#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/burst.sh - soon after a burst of threads the process has no more than twice the memory that it
# has without the library, resident and mapped.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

rss=0 size=0
must read -r rss size < <("$programs/thread_burst" left)
for backend in uring epoll; do
	run "$fiberize" --processors 2 --backend $backend "$programs/thread_burst" left $((2 * rss)) $((2 * size))
	same "$backend: memory after a burst" 0 "$code$err"
done
finish
