#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/bench/obstructed.sh - echo over TCP while one thread of the server spins,
# one sits in an inline system call and one in flock.
#
#	obstructed.sh [--rounds N] [--duration SECONDS] [--connections LIST]
#		[--cpus LIST] [--build DIRECTORY]
#
# Runs tests/programs/legacy_server -e without and with -x (the three threads), natively and
# under fiberize, in turn; server and load share the CPUs.  The spinning thread takes one CPU,
# so rate(-x) / (CPUs - 1) is compared with rate / CPUs.  In these runs each connection sends
# its next request when it has the answer, so the mean latency is connections / rate, whatever
# the server does.  To compare latencies, both sides run with -x again, at half of the lowest
# rate (echo_client -r): then an answer is late only because it waited for a CPU.
# Prints every sample, then medians.  Exit status 0 if all rounds could be run, whatever the
# result; 2 for a bad option.
cd "$(dirname "$0")/../.." || exit 2
name=obstructed.sh
. scripts/bench/common.inc

rounds=5 duration=3 connections=128,1000 cpus=''
parse 'rounds duration connections cpus' "$@"
no_operands
numbers "$rounds" "$duration" "$connections"
if [ -z "$cpus" ]; then
	two_cpus
	cpus=${cpus/:/,}
fi
[[ $cpus =~ ^[0-9]+(,[0-9]+)+$ ]] || die "--cpus $cpus: must be two or more CPUs, as in 0,1"
count=$(tr ',' '\n' <<<"$cpus" | wc -l)
server=$build/tests/programs/legacy_server
need "$server" "$build/libexec/measure" "$build/libexec/echo_client"
descriptors "${connections##*,}"
scratch

# sample CONNECTIONS ROUND SIDE LOAD-OPTIONS COMMAND...: measures COMMAND, a server, once
sample()
{
	local n=$1 round=$2 side=$3 options=$4
	shift 4
	"$build/libexec/measure" -n "$side, round $round" -s "$work/server" -l "$work/load" \
		"taskset -c $cpus $build/libexec/echo_client -c $n -d $duration $options {port}" \
		-- taskset -c "$cpus" "$@" >"$work/figures" ||
		failed "$side, $n connections, round $round" $? "$work/server" "$work/load"
	awk -v head="$n $round $side" '
		{ v[$1] = $2 }
		END {
			printf "%s %.0f %.0f %.0f\n", head, v["requests_per_second"],
				v["latency_p50_us"], v["latency_p99_us"]
		}' "$work/load" | tee -a "$work/samples"
}

scripts/bench/machine.sh
echo "# echo of 64 bytes, $rounds rounds of $duration s; server and load on CPUs $cpus"
echo "# connections round side requests/s p50_us p99_us"
for n in ${connections//,/ }; do
	for ((round = 1; round <= rounds; round++)); do
		# Rotate the order, so that no side is always first.
		for ((i = 0; i < 4; i++)); do
			case $(((round + i) % 4)) in
			0)	sample "$n" $round native '' "$server" -e -p 0 ;;
			1)	sample "$n" $round native-x '' "$server" -x -e -p 0 ;;
			2)	sample "$n" $round fiberize '' "$build/fiberize" "$server" -e -p 0 ;;
			3)	sample "$n" $round fiberize-x '' "$build/fiberize" "$server" -x -e -p 0 ;;
			esac
		done
	done
	half=$(awk -v n="$n" '$1 == n && $3 ~ /-x$/ && (!low || $4 < low) { low = $4 }
		END { print int(low / 2) }' "$work/samples")
	for ((round = 1; round <= rounds; round++)); do
		for ((i = 0; i < 2; i++)); do
			case $(((round + i) % 2)) in
			0)	sample "$n" $round native-paced "-r $half" "$server" -x -e -p 0 ;;
			1)	sample "$n" $round fiberize-paced "-r $half" "$build/fiberize" \
					"$server" -x -e -p 0 ;;
			esac
		done
	done
done

awk -v cpus="$count" -f scripts/bench/median.awk -f scripts/bench/samples.awk -f /dev/stdin \
	"$work/samples" <<'A'
function latency(c, side, target,    m)
{
	m = of(c, side " p99")
	return sprintf("%.1f ms (%.1f..%.1f)%s", m, low, high, target ? verdict(target, m <= target) : "")
}

function kept(c, side, target,    m)
{
	m = ratio(c, side " per free CPU", side " per CPU")
	printf "  %s: kept per free CPU %s%s", side, spread(m),
		target ? verdict(target, m >= target) : ""
	m = of(c, side "-x")
	printf "\n    p99 at %.0f requests/s, all it can: %s; connections / rate is %.1f ms\n", m,
		latency(c, side "-x", target ? 10 : 0), c / m * 1000
	printf "    p99 at %.0f requests/s: %s\n", of(c, side "-paced"),
		latency(c, side "-paced", target ? 10 : 0)
}

{
	note($1, $2, $3, $4)
	note($1, $2, $3 " p99", $6 / 1000)
	if (sub(/-x$/, "", $3))
		note($1, $2, $3 " per free CPU", $4 / (cpus - 1))
	else
		note($1, $2, $3 " per CPU", $4 / cpus)
}

END {
	for (i = 1; i <= keys; i++) {
		print "\n" order[i] " connections"
		kept(order[i], "native", 0)
		kept(order[i], "fiberize", 0.80)
	}
}
A
