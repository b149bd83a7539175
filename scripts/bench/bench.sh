# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# scripts/bench/bench.sh NAME=VALUE... -- PROGRAM [ARGS] - "fiberize bench".
#
# One round is one run of libexec/measure (scripts/bench/measure.c): start the server,
# load it, stop it.  This file chooses the load, alternates the rounds, and
# turns their figures into a table and into JSON.
#
# The launcher (scripts/launch/bench.c) has read the options and judged PROGRAM.  NAMEs are
# those of scripts/launch/bench.def, and
#
#	self, libexec, version	the launcher's file, the directory of its parts, what it is
#	mode			what the load is: http, echo or load
#	force, no_profiles	1: for the fiberized side, too
#
# Variables that a shell cannot hold reach PROGRAM by "measure -e", past this shell.
#
# $tmp/samples has one line per figure: ROUND SIDE NAME VALUE.
# The launcher sets them, by eval:
# shellcheck disable=SC2154
set -u

EX_USAGE=2
EX_BENCH_LOAD=112
EX_BENCH_FIGURES=113
EX_BENCH=114

# die CODE WORDS...: prints one line, with control characters replaced, and exits with CODE.
die()
{
	code=$1
	shift
	printf 'fiberize: %s\n' "$(printf '%s' "$*" | tr '\000-\037\177' '?')" >&2
	exit "$code"
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
	json) [ -n "$2" ] || die $EX_USAGE '--json: the name of the file is empty' ;;
	esac
	eval "$1=\$2"
}

# quoted TEXT: one word for sh
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

choose_load()
{
	case $mode in
	http)
		command -v wrk >/dev/null || die $EX_BENCH \
			'wrk is not installed (Debian: apt-get install wrk); or give a --load'
		load="wrk --latency -t1 -c$connections -d${duration}s http://{host}:{port}$(quoted "$path")"
		;;
	echo)
		[ -x "$libexec/echo_client" ] ||
			die $EX_BENCH "$libexec/echo_client: not installed or not built"
		load="$(quoted "$libexec/echo_client") -h {host} -c $connections -d $duration -s $size {port}"
		;;
	esac
	[ -z "$load_cpus" ] || load="taskset -c $load_cpus sh -c $(quoted "$load")"
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

check_json()
{
	[ -n "$json" ] || return 0
	[ ! -d "$json" ] || die $EX_BENCH "$json: is a directory"
	if [ -e "$json" ]; then
		[ -w "$json" ] || die $EX_BENCH "$json: cannot be written"
	else
		directory=$(dirname -- "$json")
		[ -d "$directory" ] ||
			die $EX_BENCH "$json: cannot be written: there is no directory $directory"
		[ -w "$directory" ] ||
			die $EX_BENCH "$json: cannot be written: no file may be made in $directory"
	fi
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
	[ -z "$tmp" ] || rm -rf -- "$tmp"
}

# Ends by the signal itself, so that the parent sees the reason.
bench_interrupted()
{
	progress
	bench_cleanup
	trap - EXIT "$1"
	kill -s "$1" $$
}

# The last lines of a log, each marked with whose it is.
show_log()
{
	[ -s "$1" ] || return 0
	tail -n 10 -- "$1" | sed "s/^/fiberize bench: $2: /" >&2
}

# run_round ROUND SIDE PROGRAM [ARGS]
run_round()
{
	round=$1 side=$2
	shift 2
	progress "round $round of $rounds: $side"
	: >"$tmp/server.log"
	: >"$tmp/load.log"
	[ "$side" = native ] ||
		set -- "$self" ${force:+--force} ${no_profiles:+--no-profiles} -- "$@"
	[ -z "$server_cpus" ] || set -- taskset -c "$server_cpus" "$@"
	"$libexec/measure" -n "$side, round $round" -e "/proc/$$/environ" ${port:+-p "$port"} \
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
	awk -f "$libexec/figures.awk" "$tmp/load.log" >>"$tmp/figures"
	if [ "$mode" != load ] && ! grep -q '^requests [1-9]' "$tmp/figures"; then
		show_log "$tmp/load.log" 'load says'
		printf 'fiberize bench: %s, round %s: the load gave no figures\n' \
			"$side" "$round" >&2
		exit $EX_BENCH_FIGURES
	fi
	if awk '{ is[$1] = $2 } END { exit !(is["requests"] && is["errors"] >= is["requests"]) }' \
		"$tmp/figures"; then
		show_log "$tmp/load.log" 'load says'
		printf 'fiberize bench: %s, round %s: every request failed; is there such a page (--path)?\n' \
			"$side" "$round" >&2
		exit $EX_BENCH_LOAD
	fi
	sed "s/^/$round $side /" "$tmp/figures" >>"$tmp/samples"
}

# Prints the text and the JSON from one reading of the samples.
report()
{
	fz_program=$program_json fz_load=$load fz_version=$version \
	fz_machine=$(uname -m) fz_kernel=$(uname -sr) fz_date=$(date -u +%Y-%m-%dT%H:%M:%SZ) \
	fz_cpus=$(getconf _NPROCESSORS_ONLN) fz_server_cpus=$server_cpus \
	fz_load_cpus=$load_cpus fz_mode=$mode fz_json=$json LC_ALL=C \
	awk -v rounds="$rounds" -v connections="$connections" -v duration="$duration" \
		-f "$libexec/median.awk" \
		-f "$libexec/report.awk" "$tmp/samples"
}

# json_words WORDS...: as the inside of an array
json_words()
{
	comma=
	for word; do
		printf '%s"%s"' "$comma" "$(printf '%s' "$word" | tr '\000-\011\013-\037\177' '?' |
			sed 's/[\\"]/\\&/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }')"
		comma=', '
	done
}

load='' path=/ port='' cpus='' json='' tmp='' child=''
while [ "$1" != -- ]; do
	take "${1%%=*}" "${1#*=}"
	shift
done
shift
server_cpus=${cpus%%:*} load_cpus=${cpus#*:}
[ -x "$libexec/measure" ] || die $EX_BENCH "$libexec/measure: not installed or not built"
check_cpus
choose_load
check_json

trap bench_cleanup EXIT
trap 'bench_interrupted INT' INT
trap 'bench_interrupted TERM' TERM
trap 'bench_interrupted HUP' HUP
tmp=$(mktemp -d 2>/dev/null) ||
	die $EX_BENCH "${TMPDIR:-/tmp}: no temporary directory can be made there (TMPDIR)"
program_json=$(json_words "$@")
number=1
while [ "$number" -le "$rounds" ]; do
	run_round "$number" native "$@"
	run_round "$number" fiberize "$@"
	number=$((number + 1))
done
report >"$tmp/table" 2>"$tmp/messages"
code=$?
cat -- "$tmp/table" 2>/dev/null
case $? in
0) ;;
# Ended by SIGPIPE: the reader has closed the pipe.
141) exit 141 ;;
*) die $EX_BENCH 'standard output: cannot be written' ;;
esac
[ $code -eq 0 ] || die $EX_BENCH "${json:-$tmp/table}: cannot be written"
