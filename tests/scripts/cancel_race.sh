#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/cancel_race.sh - cancellation loses nothing: no byte that a call has taken, none
# that it has sent without saying so (tests/helpers/cancel_race.c).
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${FZ_BUILD:-$PWD/build}
rounds=${1:-300}

for processors in 1 2 8; do
	seed=$RANDOM
	LD_PRELOAD=$build/libfiberize.so FIBERIZE_PROCESSORS=$processors \
		timeout 150 "$build/tests/helpers/cancel_race" "$rounds" $seed || {
		echo "cancel_race $rounds $seed, $processors processors: exit status $?"
		exit 1
	}
done
