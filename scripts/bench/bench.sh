# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# scripts/bench/bench.sh NAME=VALUE... -- PROGRAM [ARGS] - "fiberize bench".
#
# In one run, libexec/measure (scripts/bench/measure.c) starts the server, loads it and stops it.
# A side is native or fiberize; a case is a number of connections with a rate.  In a round, each
# case is run once on each side.  This file chooses the loads and does the runs; then the programs
# in scripts/bench/report turn the figures into a table and the reports.
#
# The launcher (scripts/launch/bench.c) has read the options and judged PROGRAM.  NAMEs are
# those of scripts/launch/bench.def, and
#
#	self, libexec, version	the launcher's file, the directory of its parts, what it is
#	mode			what the load is: http, echo or load
#	force, no_profiles	1: for the fiberized side, too
#	word			the next word of the whole command line; given once for each word
#
# This shell may drop variables whose names it does not allow; "measure -e" gives them to PROGRAM.
#
# $tmp/samples has one line per figure: CASE ROUND SIDE NAME VALUE.
# "take" sets these variables by eval:
# shellcheck disable=SC2154
set -u

EX_USAGE=2
EX_BENCH_LEAK=103
EX_BENCH_LOAD=112
EX_BENCH_FIGURES=113
EX_BENCH=114

# say WORDS...: prints one line, with control characters replaced.
say()
{
	printf '%s\n' "$(printf '%s' "$*" | tr '\000-\037\177' '?')" >&2
}

# die CODE WORDS...: prints a message, and exits with CODE.
die()
{
	code=$1
	shift
	say "fiberize: $*"
	exit "$code"
}

# numbers OPTION LIST MAX: checks whole numbers from 1 to MAX with commas between them.
numbers()
{
	awk -v list="$2" -v most="$3" 'BEGIN {
		n = split(list, v, ",")
		for (i = 1; i <= n; i++)
			if (v[i] !~ /^[1-9][0-9]*$/ || v[i] > most + 0)
				exit 1
		exit n == 0
	}' || die $EX_USAGE "$1 $2: must be whole numbers from 1 to $3, with commas between them"
}

# take NAME VALUE: sets an option; the launcher has checked the numbers.
take()
{
	case $1 in
	load) [ -n "$2" ] || die $EX_USAGE '--load: the command is empty' ;;
	path)
		case $2 in
		*[!!-~]*) die $EX_USAGE "--path $2: write blanks and the like as %20" ;;
		/*) ;;
		*) die $EX_USAGE "--path $2: must begin with /" ;;
		esac
		;;
	cpus)
		case $2 in
		?*:?*) ;;
		*) die $EX_USAGE "--cpus $2: must be SERVER:LOAD, as in 0:1" ;;
		esac
		;;
	connections) numbers --connections "$2" 1000000 ;;
	rate) numbers --rate "$2" 100000000 ;;
	requests_regex)
		fz_regex=$2 awk 'BEGIN { re = ENVIRON["fz_regex"]; exit "" == re || ("" ~ re) < 0 }' \
			2>/dev/null ||
			die $EX_USAGE "--requests-regex $2: not a regular expression"
		;;
	json | markdown | report)
		[ -n "$2" ] || die $EX_USAGE "--$1: the name of the file is empty"
		;;
	word)
		command="$command${command:+ }$(quoted "$2")"
		return
		;;
	esac
	eval "$1=\$2"
}

# quoted TEXT: prints TEXT so that sh reads it as one word
quoted()
{
	case $1 in
	'' | *[!A-Za-z0-9_./:=,+-]*) ;;
	*)
		printf '%s' "$1"
		return
		;;
	esac
	printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"
}

# choose_load CONNECTIONS RATE: sets load, the command.  RATE 0: each connection sends its next request
# when the answer to the last one is there.
choose_load()
{
	case $mode,$2 in
	http,0)
		load="wrk --latency -t1 -c$1 -d${duration}s -s $(quoted "$libexec/wrk.lua")"
		load="$load http://{host}:{port}$(quoted "$path")"
		;;
	http,*)
		load="$(quoted "$libexec/echo_client") -h {host} -c $1 -d $duration -r $2"
		load="$load --get $(quoted "$path") {port}"
		;;
	echo,*)
		load="$(quoted "$libexec/echo_client") -h {host} -c $1 -d $duration -s $size"
		[ "$2" = 0 ] || load="$load -r $2"
		load="$load {port}"
		;;
	*)
		load=$(printf '%s\n' "$own_load" | sed "s/{connections}/$1/g; s/{rate}/$2/g")
		;;
	esac
}

# load_has NAME: does the user's own load contain the placeholder {NAME}?
load_has()
{
	case $own_load in
	*"{$1}"*) return 0 ;;
	esac
	return 1
}

# Sets cases (how many there are), and for each case a word in cases_connections and in cases_rates, and a
# line in loads.  Ends with a message if the options do not fit the load.
choose_cases()
{
	rates="0 $(printf '%s' "$rate" | tr ',' ' ')"
	if [ "$mode" = load ]; then
		load_has connections || case $connections in
		*,*) die $EX_USAGE "--connections $connections: the load has no {connections}" ;;
		*) connections=0 ;;
		esac
		if load_has rate; then
			[ -n "$rate" ] || die $EX_USAGE '--load has a {rate}: it needs a --rate'
			rates=${rates#0 }
		elif [ -n "$rate" ]; then
			die $EX_USAGE "--rate $rate: the load has no {rate}"
		fi
	fi
	for c in $(printf '%s' "$connections" | tr ',' ' '); do
		for r in $rates; do
			cases_connections="$cases_connections $c" cases_rates="$cases_rates $r"
			choose_load "$c" "$r"
			loads="$loads${loads:+$newline}$(printf '%s' "$load" | tr '\n' ' ')"
			cases=$((cases + 1))
		done
	done
}

check_tools()
{
	[ -x "$libexec/measure" ] ||
		die $EX_BENCH "$libexec/measure: not installed or not built"
	[ -x "$libexec/echo_client" ] || [ "$mode" = load ] ||
		die $EX_BENCH "$libexec/echo_client: not installed or not built"
	[ "$mode" != http ] || command -v wrk >/dev/null || die $EX_BENCH \
		'wrk is not installed (Debian: apt-get install wrk); or give a --load'
	[ -z "$report" ] || command -v gnuplot >/dev/null || die $EX_BENCH \
		'--report: gnuplot is not installed (Debian: apt-get install gnuplot-nox)'
}

check_cpus()
{
	[ -n "$server_cpus" ] || return 0
	command -v taskset >/dev/null || die $EX_BENCH 'taskset is not installed (util-linux)'
	for cpus in "$server_cpus" "$load_cpus"; do
		taskset -c "$cpus" true 2>/dev/null ||
			die "$EX_USAGE" "--cpus: $cpus: not among the CPUs that may be used here:" \
				"$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)"
	done
}

# minutes SECONDS: prints for example "1 min 20 s" for 80
minutes()
{
	if [ "$1" -ge 60 ]; then
		printf '%d min %d s' $(($1 / 60)) $(($1 % 60))
	else
		printf '%d s' "$1"
	fi
}

# Prints how long the other runs will take, from the mean time of the runs so far; before the first
# run, from --duration, and with --load nothing.
time_left()
{
	left=$((rounds * cases * 2 - runs))
	if [ "$runs" -gt 0 ]; then
		left=$((($(date +%s) - begun) * left / runs))
	elif [ "$mode" != load ]; then
		left=$((duration * left))
	else
		return
	fi
	printf ', about %s left' "$(minutes "$left")"
}

progress()
{
	[ -t 2 ] || return 0
	printf '\r\033[K%s' "$*" >&2
}

bench_cleanup()
{
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		kill "$child" 2>/dev/null
		wait "$child" 2>/dev/null
	fi
	[ -z "$half" ] || rm -f -- "$half"
	[ -z "$tmp" ] || rm -rf -- "$tmp"
}

# bench_interrupted SIGNAL: cleans up, and ends this shell by the signal, so that the parent sees why.
bench_interrupted()
{
	progress
	bench_cleanup
	trap - EXIT "$1"
	kill -s "$1" $$
}

# show_log LOG WHO: prints the last lines of LOG, each after "fiberize bench: WHO: "
show_log()
{
	[ -s "$1" ] || return 0
	tail -n 10 -- "$1" | sed "s/^/fiberize bench: $2: /" >&2
}

# fail CODE WORDS...: ends the benchmark, because the figures of a run cannot be trusted
fail()
{
	code=$1
	shift
	show_log "$tmp/load.log" 'load says'
	say "fiberize bench: $side, round $round: $*"
	exit "$code"
}

# Prints the name of the load program if the format of its output is known; else nothing.
known_load()
{
	for name in wrk ab hey redis-benchmark memtier_benchmark sysbench; do
		case " $load " in
		*[\ /\']"$name "*) printf '%s' "$name" ;;
		esac
	done
}

# Fails if too many requests have failed, or if figures are missing that the load should have printed.
judge_figures()
{
	eval "$(awk '{ got[$1] += $2 }
		END {
			if (!got["requests"])
				got["requests"] = got["requests_per_second"] * got["load_seconds"]
			printf "requests=%.0f errors=%.0f\n", got["requests"], got["errors"]
		}' "$tmp/figures")"
	if [ "$errors" -gt 0 ] && [ "$errors" -ge "$requests" ]; then
		fail $EX_BENCH_LOAD 'every request failed; is there such a page (--path)?'
	elif [ "$errors" -gt $((requests / 100)) ]; then
		fail $EX_BENCH_LOAD "$errors of $requests requests failed"
	elif [ "$requests" -gt 0 ]; then
		gave_requests=1
	elif [ -n "$requests_regex" ]; then
		fail $EX_BENCH_FIGURES "the load gave no figures: no number matches $requests_regex"
	elif [ "$mode" != load ]; then
		fail $EX_BENCH_FIGURES 'the load gave no figures'
	elif [ -n "$(known_load)" ]; then
		fail $EX_BENCH_FIGURES "the load gave no figures: this is not what $(known_load)" \
			'prints (--requests-regex?)'
	elif [ -n "$gave_requests" ]; then
		fail $EX_BENCH_FIGURES 'the load gave no figures, as it did before'
	fi
}

# run CASE ROUND SIDE PROGRAM [ARGS]: one run with $load
run()
{
	case=$1 round=$2 side=$3
	shift 3
	progress "round $round of $rounds: $side$(time_left)"
	: >"$tmp/server.log"
	: >"$tmp/load.log"
	[ "$side" = native ] ||
		set -- "$self" ${force:+--force} ${no_profiles:+--no-profiles} -- "$@"
	[ -z "$server_cpus" ] || set -- taskset -c "$server_cpus" "$@"
	[ -z "$load_cpus" ] || load="taskset -c $load_cpus sh -c $(quoted "$load")"
	"$libexec/measure" -n "$side, round $round" -r "$tmp/measured" -e "/proc/$$/environ" ${port:+-p "$port"} \
		-w "$wait" -s "$tmp/server.log" -l "$tmp/load.log" "$load" -- "$@" \
		>"$tmp/figures" 2>"$tmp/messages" &
	child=$!
	wait "$child"
	code=$?
	child=
	progress
	cat -- "$tmp/messages" >&2
	if [ $code -ne 0 ]; then
		[ $code -eq 112 ] || show_log "$tmp/server.log" 'program says'
		[ $code -ne 112 ] || show_log "$tmp/load.log" 'load says'
		exit $code
	fi
	fz_regex=$requests_regex awk -f "$libexec/figures.awk" "$tmp/load.log" >>"$tmp/figures"
	judge_figures
	sed "s/^/$case $round $side /" "$tmp/figures" >>"$tmp/samples"
	runs=$((runs + 1))
}

# all_runs PROGRAM [ARGS]: does the runs of all rounds
all_runs()
{
	begun=$(date +%s)
	number=1
	while [ "$number" -le "$rounds" ]; do
		index=0
		for c in $cases_connections; do
			index=$((index + 1))
			r=$(printf '%s' "$cases_rates" | cut -d ' ' -f $((index + 1)))
			choose_load "$c" "$r"
			run "$index" "$number" native "$@"
			choose_load "$c" "$r"
			run "$index" "$number" fiberize "$@"
		done
		number=$((number + 1))
	done
}

newline='
'
load='' path=/ port='' cpus='' json='' markdown='' report='' rate='' requests_regex='' command=''
tmp='' child='' half='' gave_requests='' cases_connections='' cases_rates='' loads='' cases=0 runs=0
charts=0
while [ "$1" != -- ]; do
	take "${1%%=*}" "${1#*=}"
	shift
done
shift
[ -r "$libexec/reports.inc" ] || die $EX_BENCH "$libexec/reports.inc: not installed or not built"
# shellcheck source=scripts/bench/report/reports.inc
. "$libexec/reports.inc"
own_load=$load
server_cpus=${cpus%%:*} load_cpus=${cpus#*:}
choose_cases
check_tools
check_cpus
check_file "$json"
check_file "$markdown"
check_file "$report"

trap bench_cleanup EXIT
trap 'bench_interrupted INT' INT
trap 'bench_interrupted TERM' TERM
trap 'bench_interrupted HUP' HUP
tmp=$(mktemp -d 2>/dev/null) ||
	die $EX_BENCH "${TMPDIR:-/tmp}: no temporary directory can be made there (TMPDIR)"
describe "$@"
all_runs "$@"
report_by words.awk table.awk >"$tmp/table" 2>"$tmp/messages"
code=$?
cat -- "$tmp/table" 2>/dev/null
case $? in
0) ;;
# cat has ended by SIGPIPE: the reader has closed the pipe.
141) exit 141 ;;
*) die $EX_BENCH 'standard output: cannot be written' ;;
esac
[ $code -eq 0 ] || die $EX_BENCH "$tmp/table: cannot be written"
write_reports
record
report_by leaks.awk >"$tmp/leaks" || {
	sed 's/^/fiberize bench: /' "$tmp/leaks" >&2
	exit $EX_BENCH_LEAK
}
