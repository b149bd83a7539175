#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/bench/programs.sh - well-known programs, and the worst cases for fibers,
# natively and under fiberize.
#
#	programs.sh [--rounds N] [--cpus SERVER:LOAD] [--directory DIR]
#		[--build DIRECTORY] [CASE...]
#
# DIR (default: the build directory) is where fio's file of 1 GB comes and goes; it
# should be on a disk.  Prints every sample, then for each case the medians, and
# the median of the ratios fiberize/native within a round: CPU time or elapsed time per
# operation, so fiberize is better below 1.  A case whose program is not
# installed is left out with a message.  FIGURES.md next to this file says what is
# measured.  Exit status 0 if all rounds could be run, whatever came out; 2 for a
# bad option.
cd "$(dirname "$0")/../.." || exit 2
name=programs.sh
. scripts/bench/common.inc

rounds=5 cpus='' directory=''
known=(latency memcached redis python fio_direct fio_cached)
parse 'rounds cpus directory' "$@"
for case in "${operands[@]}"; do
	[[ " ${known[*]} " == *" $case "* ]] || die "no case $case; there are ${known[*]}"
done
wanted=("${operands[@]}")
[ ${#wanted[@]} -gt 0 ] || wanted=("${known[@]}")
numbers "$rounds"
two_cpus
directory=${directory:-$build}
[ -d "$directory" ] || die "--directory $directory: no such directory"
need "$build/libexec/measure" "$build/libexec/echo_client"
file=$directory/fio.$$
scratch_file=$file
scratch

# record CASE ROUND SIDE VALUE: lower is better
record()
{
	echo "$1 $2 $3 $4" | tee -a "$work/samples"
}

# serve CASE ROUND SIDE REQUESTS PORT LOAD SERVER...: CPU us of the server per request;
# REQUESTS is a number, or how to take it from what LOAD prints, in awk
serve()
{
	local case=$1 round=$2 side=$3 requests=$4 port=$5 load=$6
	shift 6
	[ "$side" = native ] || set -- "$build/fiberize" "$@"
	# measure appends to this file.
	: >"$work/load"
	"$build/libexec/measure" -n "$case, $side" ${port:+-p "$port"} -s "$work/server" \
		-l "$work/load" "taskset -c ${cpus#*:} $load" \
		-- taskset -c "${cpus%:*}" "$@" >"$work/figures" ||
		failed "$case, $side, round $round" $? "$work/server" "$work/load"
	[[ $requests =~ ^[0-9]+$ ]] || requests=$(awk "$requests" "$work/load")
	record "$case" "$round" "$side" \
		"$(awk -v n="$requests" '$1 == "cpu_us" { printf "%.3f", $2 / n }' "$work/figures")"
}

# A port number that is probably free.
port()
{
	echo $((20000 + (RANDOM + $$) % 10000))
}

latency()
{
	# $1 is for awk, not for this shell.
	# shellcheck disable=SC2016
	serve "$@" '$1 == "requests_total" { print $2 }' '' \
		"$build/libexec/echo_client -c 1 -d 3 -s 64 {port}" \
		"$build/tests/programs/legacy_server" -e -p 0
	record latency_p50 "$2" "$3" "$(awk '$1 == "latency_p50_us" { print $2 }' "$work/load")"
}

memcached()
{
	local p
	p=$(port)
	serve "$@" 38400 "$p" \
		"memcslap --servers=127.0.0.1:$p --concurrency=64 --execute-number=600 --test=get" \
		memcached -u nobody -U 0 -l 127.0.0.1 -p "$p" -t 4
}

redis()
{
	local p
	p=$(port)
	serve "$@" 100000 "$p" "redis-benchmark -p $p --csv -n 100000 -t get -c 50" \
		redis-server --port "$p" --bind 127.0.0.1 --save '' --dir "$work"
}

python()
{
	local p
	p=$(port)
	# shellcheck disable=SC2016
	serve "$@" '/requests in/ { print $1 }' "$p" "wrk -t1 -c64 -d3 http://127.0.0.1:$p/" \
		python3 -u -c "
import http.server as h
class H(h.BaseHTTPRequestHandler):
    protocol_version, wbufsize = 'HTTP/1.1', -1
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '6')
        self.end_headers()
        self.wfile.write(b'hello\n')
    def log_message(self, *args):
        pass
class S(h.ThreadingHTTPServer):
    request_queue_size = 256
S(('127.0.0.1', $p), H).serve_forever()"
}

# fio_one CASE ROUND SIDE ARGS...: us of elapsed time per operation
fio_one()
{
	local case=$1 round=$2 side=$3 iops
	shift 3
	[ "$side" = fiberize ] && set -- "$build/fiberize" fio "$@"
	[ "$side" = fiberize ] || set -- fio "$@"
	"$@" --name=x --filename="$file" --size=1g --rw=randread --bs=4k --time_based --runtime=3 \
		--group_reporting --output-format=terse --terse-version=3 >"$work/fio" 2>&1 || {
		echo "programs.sh: $case, $side, round $round: exit status $?" >&2
		tail -n 5 "$work/fio" >&2
		exit 1
	}
	iops=$(awk -F';' '/^3;/ { print $8 }' "$work/fio")
	record "$case" "$round" "$side" "$(awk -v n="$iops" 'BEGIN { printf "%.3f", 1e6 / n }')"
}

fio_file()
{
	[ -e "$file" ] || fio --name=x --filename="$file" --size=1g --rw=write --bs=1m \
		--end_fsync=1 >"$work/fio" 2>&1 || die "fio cannot write $file"
}

fio_direct()
{
	fio_file
	if [ "$3" = uring ]; then
		fio_one "$@" --ioengine=io_uring --iodepth=64 --direct=1
	else
		fio_one "$@" --thread --ioengine=psync --numjobs=64 --direct=1
	fi
}

fio_cached()
{
	fio_file
	[ -n "${cached-}" ] || cat "$file" >/dev/null
	cached=yes
	fio_one "$@" --thread --ioengine=psync --numjobs=64 --invalidate=0
}

missing()
{
	local tool
	local -A needs=([memcached]='memcached memcslap' [redis]='redis-server redis-benchmark'
		[python]='python3 wrk' [fio_direct]=fio [fio_cached]=fio)
	for tool in ${needs[$1]-}; do
		command -v "$tool" >/dev/null || { echo "$tool"; return; }
	done
}

scripts/bench/machine.sh
echo "# programs, $rounds rounds; server on CPU ${cpus%:*}, load on CPU ${cpus#*:}; fio on all, in $directory"
echo "# case round side microseconds"

for case in "${wanted[@]}"; do
	tool=$(missing "$case")
	if [ -n "$tool" ]; then
		echo "# $case: $tool is not installed"
		continue
	fi
	sides=(native fiberize)
	[ "$case" != fio_direct ] || sides+=(uring)
	for ((round = 1; round <= rounds; round++)); do
		# Each side is first in some rounds.
		for ((i = 0; i < ${#sides[@]}; i++)); do
			"$case" "$case" "$round" "${sides[(round + i) % ${#sides[@]}]}"
		done
	done
done

[ -s "$work/samples" ] || exit 0
awk -f scripts/bench/median.awk -f scripts/bench/samples.awk -f /dev/stdin "$work/samples" <<'A'
{ note($1, $2, $3, $4) }

END {
	printf "\n%-12s %12s %12s   fiberize/native\n", "case", "native us", "fiberize us"
	for (i = 1; i <= keys; i++) {
		c = order[i]
		printf "%-12s %12.2f %12.2f   %s\n", c, of(c, "native"), of(c, "fiberize"),
			spread(ratio(c, "fiberize", "native"))
		if ((c, 1, "uring") in sample)
			printf "%-12s %12.2f %12s   %s of fio's io_uring engine\n", "", of(c, "uring"),
				"", spread(ratio(c, "fiberize", "uring"))
	}
}
A
