#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/bench/echo.sh - compares five echo servers over TCP: native threads, fibers on io_uring,
# fibers on epoll, and uring_server.c with one-shot requests and with multishot requests.
#
#	echo.sh [--rounds N] [--duration SECONDS] [--connections LIST]
#		[--size BYTES] [--cpus SERVER:LOAD] [--build DIRECTORY]
#
# Each round measures each server once; the first three are one binary.  The
# server has one CPU and the load another.  Prints every sample, then for each
# number of connections the medians, and the medians of the ratios within a
# round.  FIGURES.md next to this file says what is measured.  Exit status 0 if
# all rounds could be run, whatever the result; 2 for a bad option.
cd "$(dirname "$0")/../.." || exit 2
name=echo.sh
. scripts/bench/common.inc

rounds=5 duration=4 connections=128,1000 size=64 cpus=''
parse 'rounds duration connections size cpus' "$@"
no_operands
numbers "$rounds" "$duration" "$size" "$connections"
two_cpus
server=$build/tests/programs/legacy_server
uring=$build/bench/uring_server
need "$server" "$uring" "$build/libexec/measure" "$build/libexec/echo_client"
descriptors "${connections##*,}"
scratch

# sample CONNECTIONS ROUND SIDE COMMAND...: measures COMMAND, a server, once
sample()
{
	local n=$1 round=$2 side=$3
	shift 3
	"$build/libexec/measure" -n "$side, round $round" -s "$work/server" -l "$work/load" \
		"taskset -c ${cpus#*:} $build/libexec/echo_client -c $n -d $duration -s $size {port}" \
		-- taskset -c "${cpus%:*}" "$@" >"$work/figures" ||
		failed "$side, $n connections, round $round" $? "$work/server" "$work/load"
	cat "$work/figures" "$work/load" | awk -v head="$n $round $side" '
		{ v[$1] = $2 }
		END {
			printf "%s %.3f %.0f %.0f %.0f %.3f %d\n", head,
				v["cpu_us"] / v["requests_total"],
				v["requests_per_second"],
				v["latency_p50_us"], v["latency_p99_us"],
				(v["switches_voluntary"] + v["switches_involuntary"]) / \
					v["requests_total"],
				v["peak_kb"]
		}' | tee -a "$work/samples"
}

scripts/bench/machine.sh
echo "# echo of $size bytes, $rounds rounds of $duration s; server on CPU ${cpus%:*}, load on CPU ${cpus#*:}"
echo "# connections round side cpu_us/request requests/s p50_us p99_us switches/request peak_kb"

for n in ${connections//,/ }; do
	for ((round = 1; round <= rounds; round++)); do
		# Rotate the order, so that no side is always first.
		for ((i = 0; i < 5; i++)); do
			case $(((round + i) % 5)) in
			0)	sample "$n" $round native "$server" -e -p 0 ;;
			1)	sample "$n" $round fiberize "$build/fiberize" "$server" -e -p 0 ;;
			3)	sample "$n" $round epoll "$build/fiberize" --backend epoll \
					"$server" -e -p 0 ;;
			2)	sample "$n" $round uring "$uring" -p 0 ;;
			4)	sample "$n" $round multishot "$uring" -m -p 0 ;;
			esac
		done
	done
done

awk -f scripts/bench/median.awk -f scripts/bench/samples.awk -f /dev/stdin "$work/samples" <<'A'
function show(c, side, base, target,    m)
{
	m = ratio(c, side, base)
	printf "  %s/%s: %s%s\n", side, base, spread(m), target ? verdict(target, m <= target) : ""
}

{ note($1, $2, $3, $4) }

END {
	for (i = 1; i <= keys; i++) {
		c = order[i]
		printf "\n%d connections, server CPU us/request, median of %d:" \
			" native %.2f, fiberize %.2f, fiberize on epoll %.2f, io_uring %.2f," \
			" io_uring multishot %.2f\n",
			c, rounds, of(c, "native"), of(c, "fiberize"), of(c, "epoll"),
			of(c, "uring"), of(c, "multishot")
		show(c, "fiberize", "native", c == 128 ? 0.60 : c == 1000 ? 0.50 : 0)
		show(c, "epoll", "native", 0)
		show(c, "fiberize", "uring", c == 128 || c == 1000 ? 1.15 : 0)
		show(c, "fiberize", "multishot", 0)
	}
}
A
