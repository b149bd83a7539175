#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/explore.sh HOURS - explore with new seeds, round after round: PCT and random, with and
# without store buffers, points at atomic accesses alone and at all.  Runs one round at least, and ends at
# the first failure, whose seed tests/model/replay runs again.  Says which seeds it has used.  FZ_BUILD: the
# build, if not build/.  Exit status 1 for a failure, 2 if it cannot begin.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
explore=${FZ_BUILD:-$root/build}/tests/model/explore

die()
{
	echo "explore.sh: $*" >&2
	exit 2
}

[ $# -eq 1 ] || die "one argument is needed, the number of hours; these are $#"
case $1 in
*[!0-9.]* | *.*.* | ???????????*)	die "not a number of hours: '$1'" ;;
*[1-9]*)	;;
*)	die "not a positive number of hours: '$1'" ;;
esac
[ -x "$explore" ] || die "$explore is missing: run make model"
end=$(($(date +%s) + $(LC_ALL=C awk -v h="$1" 'BEGIN { s = h * 3600; printf "%d", int(s) + (s > int(s)) }')))
first=$(($(date +%s) * 1000))
echo "seeds from $first"
while :; do
	for more in "" --tso --plain "--plain --tso"; do
		# shellcheck disable=SC2086 # words
		"$explore" --first "$first" --pct 5000 --random 5000 $more || exit 1
	done
	first=$((first + 10000))
	[ "$(date +%s)" -lt "$end" ] || break
done
echo "nothing found; next seed $first"
