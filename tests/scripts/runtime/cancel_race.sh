#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/cancel_race.sh [ROUNDS] - cancellation loses no byte: none that a call has
# received, none that it has sent without reporting it (tests/helpers/cancel_race.c); nor the count
# of what a call has moved in part, as natively with glibc 2.41 or newer (cancel_moved.c).

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
rounds=${1:-300}

for processors in 1 2 8; do
	seed=$RANDOM
	run env LD_PRELOAD="$library" FIBERIZE_PROCESSORS=$processors \
		"$helpers/cancel_race" "$rounds" $seed
	same "cancel_race, $processors processors, seed $seed" 0 "$code${err:+: $err}"
done

for how in FIBERIZE_PROCESSORS={1,2,8} FIBERIZE_BACKEND=epoll; do
	run env LD_PRELOAD="$library" "$how" "$programs/cancel_moved" strict
	same "cancel_moved ${how#FIBERIZE_}" 0 "$code${err:+: $err}"
done

finish
