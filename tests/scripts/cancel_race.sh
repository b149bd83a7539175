#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/cancel_race.sh [ROUNDS] - cancellation loses no byte: none that a call has
# received, none that it has sent without reporting it (tests/helpers/cancel_race.c).

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../lib/judge.inc"
rounds=${1:-300}

for processors in 1 2 8; do
	seed=$RANDOM
	run env LD_PRELOAD="$library" FIBERIZE_PROCESSORS=$processors \
		"$helpers/cancel_race" "$rounds" $seed
	same "cancel_race, $processors processors, seed $seed" 0 "$code${err:+: $err}"
done

finish
