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
	load_figures <"$tmp/load.log" >>"$tmp/figures"
	if [ "$mode" != load ] && ! grep -q '^requests [1-9]' "$tmp/figures"; then
		show_log "$tmp/load.log" 'load says'
		printf 'fiberize bench: %s, round %s: the load gave no figures\n' \
			"$side" "$round" >&2
		exit $EX_BENCH_FIGURES
	fi
	sed "s/^/$round $side /" "$tmp/figures" >>"$tmp/samples"
}

# What a load printed, as "name value" lines.
load_figures()
{
	awk '
	function us(text)
	{
		if (text ~ /us$/)
			return text + 0
		if (text ~ /ms$/)
			return text * 1000
		if (text ~ /s$/)
			return text * 1000000
		if (text ~ /m$/)
			return text * 60000000
		return text * 3600000000
	}
	/^(requests|requests_total|seconds|requests_per_second|latency_p50_us|latency_p99_us|errors) [0-9.]+$/ {
		print
	}
	/^ +50(\.0+)?% +[0-9.]+[a-z]+$/ { print "latency_p50_us", us($2) }
	/^ +99(\.0+)?% +[0-9.]+[a-z]+$/ { print "latency_p99_us", us($2) }
	/^ *[0-9]+ requests in [0-9.]+[a-z]+,/ {
		print "requests", $1
		print "seconds", us(substr($4, 1, length($4) - 1)) / 1000000
	}
	/^Requests\/sec: / { print "requests_per_second", $2 }
	/^ *Socket errors: / {
		gsub(/,/, "")
		errors += $4 + $6 + $8 + $10
		wrk = 1
	}
	/^ *Non-2xx or 3xx responses: / { errors += $NF; wrk = 1 }
	END { if (wrk) print "errors", errors }'
}

# The text and the JSON come from one reading of the samples.
report()
{
	fz_program=$program_json fz_load=$load fz_version=${version:-unknown} \
	fz_machine=$(uname -m) fz_kernel=$(uname -sr) fz_date=$(date -u +%Y-%m-%dT%H:%M:%SZ) \
	fz_cpus=$(getconf _NPROCESSORS_ONLN) fz_server_cpus=$server_cpus \
	fz_load_cpus=$load_cpus fz_mode=$mode fz_json=$json LC_ALL=C \
	awk -v rounds="$rounds" -v connections="$connections" -v duration="$duration" '
	# sort v[1..n] and set median, low, high
	function spread(v, n,    i, k, x)
	{
		for (i = 2; i <= n; i++) {
			x = v[i]
			for (k = i - 1; k >= 1 && v[k] > x; k--)
				v[k + 1] = v[k]
			v[k + 1] = x
		}
		low = v[1]
		high = v[n]
		median = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}

	# the figures of one side (or ratios, side by side); how many there are
	function collect(side, name, v,    r, n, a, b)
	{
		n = 0
		for (r = 1; r <= rounds; r++) {
			if (side != "ratio") {
				if ((r, side, name) in sample)
					v[++n] = sample[r, side, name]
				continue
			}
			if (!((r, "native", name) in sample) ||
			    !((r, "fiberize", name) in sample))
				continue
			a = sample[r, "native", name]
			b = sample[r, "fiberize", name]
			if (a > 0)
				v[++n] = b / a
		}
		if (n)
			spread(v, n)
		return n
	}

	function short(x)
	{
		if (x == 0)
			return "0"
		if (x >= 100)
			return sprintf("%.0f", x)
		if (x >= 10)
			return sprintf("%.1f", x)
		return sprintf("%.2f", x)
	}

	function cell(side, name,    v, n)
	{
		n = collect(side, name, v)
		if (!n)
			return "-"
		if (side == "ratio")
			return sprintf("%.2f (%.2f..%.2f)", median, low, high)
		return sprintf("%s (%s..%s)", short(median), short(low), short(high))
	}

	function row(label, name)
	{
		if (!(name in seen))
			return
		printf "%-24s %-28s %-28s %s\n", label, cell("native", name),
			cell("fiberize", name), cell("ratio", name)
	}

	function string(text,    i, c, out)
	{
		out = ""
		for (i = 1; i <= length(text); i++) {
			c = substr(text, i, 1)
			if (c == "\\" || c == "\"")
				out = out "\\" c
			else if (c == "\n")
				out = out "\\n"
			else if (c == "\t")
				out = out "\\t"
			else if (c < " " || c == "\177")
				out = out "?"
			else
				out = out c
		}
		return "\"" out "\""
	}

	function number(x)
	{
		return sprintf("%.12g", x)
	}

	function json_round(r, side,    i, x)
	{
		printf "    {\"round\": %d, \"side\": \"%s\"", r, side >out
		for (i = 1; i <= names; i++) {
			if (!((r, side, order[i]) in sample))
				continue
			x = sample[r, side, order[i]]
			x = order[i] == "host" ? string(x) : number(x)
			printf ", \"%s\": %s", order[i], x >out
		}
		printf "}" >out
	}

	function json_summary(side,    i, v, comma)
	{
		printf "    \"%s\": {", side >out
		comma = ""
		for (i = 1; i <= names; i++) {
			if (order[i] == "host" || order[i] == "port")
				continue
			split("", v)
			if (!collect(side, order[i], v))
				continue
			printf "%s\n      \"%s\": {\"median\": %s, \"min\": %s, \"max\": %s}", \
				comma, order[i], number(median), number(low), number(high) >out
			comma = ","
		}
		printf "\n    }" >out
	}

	function derive(r, side,    n)
	{
		n = sample[r, side, (r, side, "requests_total") in sample ? \
			"requests_total" : "requests"]
		if (n > 0) {
			put(r, side, "cpu_us_per_request", sample[r, side, "cpu_us"] / n)
			put(r, side, "switches_per_request", \
				(sample[r, side, "switches_voluntary"] + \
				 sample[r, side, "switches_involuntary"]) / n)
		} else {
			delete sample[r, side, "requests"]
			delete sample[r, side, "requests_total"]
		}
		put(r, side, "switches", sample[r, side, "switches_voluntary"] + \
			sample[r, side, "switches_involuntary"])
		put(r, side, "cpu_ms", sample[r, side, "cpu_us"] / 1000)
		put(r, side, "peak_mb", sample[r, side, "peak_kb"] / 1024)
	}

	function put(r, side, name, value)
	{
		if (!(name in seen)) {
			seen[name] = 1
			order[++names] = name
		}
		sample[r, side, name] = value
	}

	{
		put($1, $2, $3, $3 == "host" ? $4 : $4 + 0)
		if ($3 == "errors")
			errors[$2] += $4
	}

	END {
		for (r = 1; r <= rounds; r++) {
			derive(r, "native")
			derive(r, "fiberize")
		}
		printf "%d round%s of %s", rounds, (rounds > 1 ? "s" : ""), \
			(ENVIRON["fz_mode"] == "load" ? "the load" : \
				duration " s, " connections " connections")
		if (ENVIRON["fz_server_cpus"] != "")
			printf "; program on CPU %s, load on CPU %s", \
				ENVIRON["fz_server_cpus"], ENVIRON["fz_load_cpus"]
		printf ": median (min..max)\n\n"
		printf "%-24s %-28s %-28s %s\n", "", "native", "fiberize", "ratio"
		row("requests/s", "requests_per_second")
		row("latency p50, us", "latency_p50_us")
		row("latency p99, us", "latency_p99_us")
		if ("cpu_us_per_request" in seen) {
			row("CPU us/request", "cpu_us_per_request")
			row("switches/request", "switches_per_request")
		} else
			row("CPU ms", "cpu_ms")
		row("context switches", "switches")
		row("  voluntary", "switches_voluntary")
		row("  involuntary", "switches_involuntary")
		row("peak memory, MB", "peak_mb")
		for (side in errors) {
			if (errors[side])
				printf "\n%s: %d errors reported by the load\n", side, errors[side]
		}

		out = ENVIRON["fz_json"]
		if (out == "")
			exit
		printf "{\n" >out
		printf "  \"fiberize\": %s,\n", string(ENVIRON["fz_version"]) >out
		printf "  \"date\": \"%s\",\n", ENVIRON["fz_date"] >out
		printf "  \"machine\": {\"architecture\": %s, \"kernel\": %s, \"cpus\": %d},\n", \
			string(ENVIRON["fz_machine"]), string(ENVIRON["fz_kernel"]), \
			ENVIRON["fz_cpus"] >out
		printf "  \"program\": [%s],\n", ENVIRON["fz_program"] >out
		printf "  \"load\": %s,\n", string(ENVIRON["fz_load"]) >out
		printf "  \"program_cpus\": %s,\n", string(ENVIRON["fz_server_cpus"]) >out
		printf "  \"load_cpus\": %s,\n", string(ENVIRON["fz_load_cpus"]) >out
		printf "  \"rounds\": [\n" >out
		for (r = 1; r <= rounds; r++) {
			json_round(r, "native")
			printf ",\n" >out
			json_round(r, "fiberize")
			printf "%s\n", (r < rounds ? "," : "") >out
		}
		printf "  ],\n  \"summary\": {\n" >out
		json_summary("native")
		printf ",\n" >out
		json_summary("fiberize")
		printf ",\n" >out
		json_summary("ratio")
		printf "\n  }\n}\n" >out
		exit(close(out) != 0)
	}' "$tmp/samples"
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
