#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/explore.sh HOURS - explore with new seeds, round after round: PCT and random, with and
# without store buffers, points at atomic accesses alone and at all.  Ends at the first failure, whose
# seed tests/model/replay runs again.  Says which seeds it has used.  FZ_BUILD: the build, if not build/.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
explore=${FZ_BUILD:-$root/build}/tests/model/explore
end=$(($(date +%s) + $(awk -v h="$1" 'BEGIN { printf "%d", h * 3600 }')))
first=$(($(date +%s) * 1000))
echo "seeds from $first"
while [ "$(date +%s)" -lt "$end" ]; do
	for more in "" --tso --plain "--plain --tso"; do
		# shellcheck disable=SC2086 # words
		"$explore" --first "$first" --pct 5000 --random 5000 $more || exit 1
	done
	first=$((first + 10000))
done
echo "nothing found; next seed $first"
