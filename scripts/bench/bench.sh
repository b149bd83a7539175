# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: MIT
#
# scripts/bench/bench.sh - "fiberize bench"; read by scripts/fiberize.
#
# One round is one run of libexec/measure (scripts/bench/measure.c): server up,
# load, server down.  This file chooses the load, alternates the rounds, and
# turns their figures into a table and into JSON.
#
# here, libexec, version, EX_* and the functions not defined here are the
# launcher's; o_* are what its option table last gave.
#
# $tmp/samples has one line per figure: ROUND SIDE NAME VALUE.

EX_BENCH_FIGURES=113
EX_BENCH=114

bench_usage()
{
	cat <<'USAGE'
usage: fiberize [options] bench [options] -- PROGRAM [ARGS]

Starts PROGRAM natively and under fiberize, alternately, drives it with a load
over TCP, and prints what each did and what it cost.

  --http             the load is wrk, GET over HTTP/1.1 keep-alive (default)
  --echo             the load is the bundled client for raw TCP echo
  --load CMD         the load is CMD, run by sh -c; {port} and {host} are
                     replaced.  Figures are read from it if they look like
                     wrk's or the bundled client's
  --path PATH        what to GET with --http (default /)
  --size BYTES       length of a message with --echo (default 64)
  --connections N    connections of the load (default 64)
  --duration SECONDS of the load in each round (default 5)
  --rounds N         rounds on each side (default 5)
  --port PORT        wait for this port; by default, the one PROGRAM opens
  --wait SECONDS     how long to wait for it (default 10)
  --cpus S:C         run PROGRAM on CPUs S, the load on CPUs C, as in 0:1 or
                     0-3:4,5 (by taskset)
  --json FILE        write the samples of every round there, too

The options of fiberize itself but --dry-run may stand here as well, and are
for the fiberized side.

Exit codes: as for fiberize, and 110 PROGRAM ended too early, 111 it never
listened, 112 the load failed, 113 the load gave no figures, 114 bench cannot
do its work (a tool is missing, the port is taken, a file cannot be written).
USAGE
}

# whole NAME TEXT MIN MAX: TEXT is such a number, or exit.
whole()
{
	o_min=$3 o_max=$4
	in_range "$2" 1 || die "$EX_USAGE" "$1 $2: must be an integer from $3 to $4"
}

bench_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--)
			shift
			break
			;;
		--help)
			bench_usage | put
			exit
			;;
		--http | --echo)
			mode=${1#--}
			shift
			continue
			;;
		--load | --path | --size | --connections | --duration | --rounds | \
			--port | --wait | --cpus | --json)
			[ $# -ge 2 ] || die "$EX_USAGE" "$1 needs a value; see fiberize bench --help"
			name=$1 value=$2
			shift 2
			;;
		--load=* | --path=* | --size=* | --connections=* | --duration=* | \
			--rounds=* | --port=* | --wait=* | --cpus=* | --json=*)
			name=${1%%=*} value=${1#*=}
			shift
			;;
		*)
			take_option "$@"
			if [ "$taken" -gt 0 ]; then
				shift "$taken"
				continue
			fi
			case $1 in
			--force) force=1 ;;
			--no-profiles) no_profiles=1 ;;
			-*) die "$EX_USAGE" "$1: no such option; see fiberize bench --help" ;;
			*) break ;;
			esac
			shift
			continue
			;;
		esac
		case $name in
		--load)
			[ -n "$value" ] || die "$EX_USAGE" '--load: the command is empty'
			mode=load load=$value
			;;
		--path)
			case $value in
			*[!!-~]*) die "$EX_USAGE" "--path $value: write blanks and the like as %20" ;;
			/*) ;;
			*) die "$EX_USAGE" "--path $value: must begin with /" ;;
			esac
			url_path=$value
			;;
		--size) whole "$name" "$value" 1 67108864 && size=$value ;;
		--connections) whole "$name" "$value" 1 1000000 && connections=$value ;;
		--duration) whole "$name" "$value" 1 86400 && duration=$value ;;
		--rounds) whole "$name" "$value" 1 1000 && rounds=$value ;;
		--port) whole "$name" "$value" 1 65535 && port=$value ;;
		--wait) whole "$name" "$value" 1 86400 && patience=$value ;;
		--cpus)
			case $value in
			?*:?*) ;;
			*) die "$EX_USAGE" "--cpus $value: must be SERVER:LOAD, as in 0:1" ;;
			esac
			server_cpus=${value%%:*} load_cpus=${value#*:}
			;;
		--json)
			[ -n "$value" ] || die "$EX_USAGE" '--json: the name of the file is empty'
			json=$value
			;;
		esac
	done
	[ $# -gt 0 ] || die "$EX_USAGE" 'bench what? fiberize bench [options] -- PROGRAM [ARGS]'
	words=$#
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
		load="wrk --latency -t1 -c$connections -d${duration}s http://{host}:{port}$(quoted "$url_path")"
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
			die "$EX_USAGE" "--cpus: $cpus: no list of CPUs that may be used here"
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
		if [ ! -d "$directory" ] || [ ! -w "$directory" ]; then
			die $EX_BENCH "$json: cannot be written"
		fi
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

# By the signal itself, so that who waits for us sees what happened.
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
	file=$program
	[ "$side" = native ] || {
		file=$self
		set -- "$self" ${force:+--force} ${no_profiles:+--no-profiles} -- "$@"
	}
	[ -z "$restore" ] || set -- "$libexec/check" --exec "$file" "$@"
	[ -z "$server_cpus" ] || set -- taskset -c "$server_cpus" "$@"
	{
		# What this shell has not kept of the environment.
		[ -z "$restore" ] || eval "export$restore"
		exec "$libexec/measure" -n "$side, round $round" ${port:+-p "$port"} \
			-w "$patience" -s "$tmp/server.log" -l "$tmp/load.log" "$load" -- "$@"
	} >"$tmp/figures" 2>"$tmp/messages" &
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
	sed "s/^/$round $side /" "$tmp/figures" >>"$tmp/samples"
}

# The text and the JSON come from one reading of the samples.
report()
{
	fz_program=$program_json fz_load=$load fz_version=${version:-unknown} \
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

bench_main()
{
	mode=http load='' url_path=/ size=64 connections=64 duration=5 rounds=5
	port='' patience=10 server_cpus='' load_cpus='' json=''
	tmp='' child='' self=$here/fiberize

	total=$#
	bench_options "$@"
	shift $((total - words))
	check_environment
	[ -x "$libexec/measure" ] || die $EX_BENCH "$libexec/measure: not installed or not built"

	# What a run would refuse is refused before the first round.
	find_library
	look_at "$1"
	[ -z "$native" ] || die $EX_BENCH "$native"
	[ -z "$dormant" ] || printf 'fiberize bench: %s\n' "$dormant" >&2
	check_cpus
	choose_load
	check_json

	# The native side shall be native, also where everything is preloaded.
	LD_PRELOAD=$(without_ours "${LD_PRELOAD-}")
	export LD_PRELOAD
	[ -n "$LD_PRELOAD" ] || unset LD_PRELOAD

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
	put $EX_BENCH <"$tmp/table"
	[ $code -eq 0 ] || die $EX_BENCH "${json:-$tmp/table}: cannot be written"
}
