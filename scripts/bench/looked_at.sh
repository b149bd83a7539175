#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/bench/looked_at.sh - measures what it costs a program to be looked at.  An echo server over TCP runs
# alone, then while `fiberize stat PID 1`, `fiberize top PID 1` or `fiberize trace PID` looks at it, and with
# --stats.  The cases of threads.sh run plainly, with --stats, and traced.
#
#	looked_at.sh [--rounds N] [--duration SECONDS] [--connections N] [--cpus SERVER:LOAD]
#		[--build DIRECTORY] [CASE...]
#
# The server has one CPU; the load and the tool that looks have another.  The three tools look at one
# process, which is also measured alone: two processes could differ by where their memory lies.  Only --stats
# needs a process of its own, which is compared with a process without options.  Prints every sample, then the
# medians of the ratios within a round, with their spread.  Exit status 0 if all rounds could be run, whatever
# the result; 2 for a bad option.
cd "$(dirname "$0")/../.." || exit 1
name=looked_at.sh
. scripts/bench/common.inc

rounds=9 duration=3 connections=128 cpus=''
parse 'rounds duration connections cpus' "$@"
[ ${#operands[@]} -gt 0 ] || operands=(create_join cond_ping_pong sem_ping_pong barrier_16)
numbers "$rounds" "$duration" "$connections"
two_cpus
server=$build/tests/programs/legacy_server
client=$build/libexec/echo_client
need "$server" "$client" "$build/bench/threads"
descriptors "$connections"
scratch
declare -A pid port
looker=''

stop()
{
	kill "${pid[@]}" $looker 2>/dev/null
	wait 2>/dev/null
	rm -rf "$work"
}
trap stop EXIT

# start SIDE COMMAND...: starts the server by COMMAND; sets pid[SIDE] and port[SIDE]
start()
{
	local side=$1 said=$work/$1 tries=0
	: >"$said"
	shift
	taskset -c "${cpus%:*}" "$@" "$server" -e -p 0 >"$said" 2>&1 &
	pid[$side]=$!
	until grep -q listening "$said"; do
		[ $((++tries)) -lt 500 ] || failed "$side: start" 1 "$said"
		sleep 0.02
	done
	port[$side]=$(sed -n 's/^listening on //p' "$said")
	# Load it for 1 s before measuring, so that it has made its threads and its memory is in use.
	taskset -c "${cpus#*:}" "$client" -c "$connections" -d 1 -w 0 "${port[$side]}" >/dev/null ||
		failed "$side: first load" $? "$said"
}

# cpu_time PID: prints the CPU time of the process's live threads, in ns
cpu_time()
{
	cat /proc/"$1"/task/*/schedstat | awk '{ ns += $1 } END { printf "%.0f\n", ns }'
}

# sample ROUND SIDE SERVER [ARGUMENT]...: measures a server once, while "fiberize ARGUMENT..." looks at it
sample()
{
	local round=$1 side=$2 which=$3 before after
	shift 3
	looker=''
	if [ $# -gt 0 ]; then
		taskset -c "${cpus#*:}" "$build/fiberize" "$@" >"$work/looker" 2>&1 &
		looker=$!
		sleep 0.3
	fi
	before=$(cpu_time "${pid[$which]}")
	taskset -c "${cpus#*:}" "$client" -c "$connections" -d "$duration" -w 0.2 "${port[$which]}" \
		>"$work/load" || failed "$side, round $round" $? "$work/load"
	after=$(cpu_time "${pid[$which]}")
	if [ -n "$looker" ]; then
		kill -TERM "$looker" 2>/dev/null || failed "$side, round $round: ended too soon" 1 "$work/looker"
		wait "$looker"
	fi
	awk -v head="echo $round $side" -v ns=$((after - before)) '
		{ v[$1] = $2 }
		END { printf "%s %.3f %.0f\n", head, ns / 1000 / v["requests_total"], v["requests_per_second"] }' \
		"$work/load" | tee -a "$work/samples"
}

# threads ROUND SIDE [ARGUMENT]...: measures the cases of threads.c once, run by "fiberize ARGUMENT..."
threads()
{
	local round=$1 side=$2
	shift 2
	timeout 300 "$build/fiberize" "$@" "$build/bench/threads" -s 0.3 "${operands[@]}" \
		>"$work/out" 2>"$work/looker" || failed "$side, round $round" $? "$work/looker"
	awk -v round="$round" -v side="$side" 'NF == 2 && $2 > 0 { print $1, round, side, $2 }' "$work/out" |
		tee -a "$work/cases"
}

scripts/bench/machine.sh
echo "# echo on $connections connections, $rounds rounds of $duration s; server on CPU ${cpus%:*}, the rest on CPU ${cpus#*:}"
echo "# what round side cpu_us/request requests/s"
start alone "$build/fiberize"
start plain "$build/fiberize"
start counted "$build/fiberize" --stats="$work/stats"
for ((round = 1; round <= rounds; round++)); do
	# Rotate the order, so that no side is always first.
	for ((i = 0; i < 6; i++)); do
		case $(((round + i) % 6)) in
		0)	sample $round alone alone ;;
		1)	sample $round stat alone stat "${pid[alone]}" 1 ;;
		2)	sample $round top alone top --batch "${pid[alone]}" 1 ;;
		3)	sample $round trace alone trace --summary --seconds 3600 "${pid[alone]}" ;;
		4)	sample $round plain plain ;;
		5)	sample $round counted counted ;;
		esac
	done
done

echo "# case round side ns/operation"
for ((round = 1; round <= rounds; round++)); do
	for ((i = 0; i < 3; i++)); do
		case $(((round + i) % 3)) in
		0)	threads $round plain ;;
		1)	threads $round counted --stats="$work/threads.stats" ;;
		2)	threads $round traced trace --summary -- ;;
		esac
	done
done

awk -f scripts/bench/median.awk -f scripts/bench/samples.awk -f /dev/stdin "$work/samples" "$work/cases" <<'A'
# Prints the ratio of a side to a base, and whether it is at most `most`, the target (0: no target).
function show(key, side, base, most,    m)
{
	m = ratio(key, side, base)
	printf "  %s, %s/%s: %s%s\n", key, side, base, spread(m), most ? verdict(most, m <= most) : ""
}

function show_echo(side, base, most)
{
	show("cpu_us/request", side, base, most)
	show("requests/s", side, base, 0)
}

$1 == "echo" {
	note("cpu_us/request", $2, $3, $4)
	note("requests/s", $2, $3, $5)
	next
}

{ note($1, $2, $3, $4) }

END {
	show_echo("stat", "alone", 1.02)
	show_echo("top", "alone", 1.02)
	show_echo("trace", "alone", 1.10)
	show_echo("counted", "plain", 1.02)
	for (i = 3; i <= keys; i++) {
		show(order[i], "counted", "plain", 1.02)
		show(order[i], "traced", "plain", 1.10)
	}
}
A
