#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/bench/launcher_bench.sh - "fiberize bench": rounds and figures.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"
# shellcheck source=tests/scripts/bench/bench.inc
. "$(dirname "$0")/bench.inc"
need jq
# samples FILE FILTER: what jq prints for it
samples()
{
	jq -r "$2" "$1" 2>&1
}

# good_bench NAME JSON COMMAND...: ends well, and writes valid JSON.
good_bench()
{
	name=$1 json=$2
	shift 2
	run "$@"
	if [ "$code" -ne 0 ]; then
		fail "$name" "exit status $code: $err"
	else
		pass "$name"
	fi
	yes "$name: JSON" jq -e . "$json" >/dev/null
	tidy "$name"
}

# One that the kernel gives to nobody who does not ask for it.
port=$((10000 + $$ % 20000))
while listening "$port"; do
	port=$((port + 1))
done

# A load that ends at once; that of --echo and wrk lasts a second at least.
short="$build/libexec/echo_client -h {host} -c 8 -d 0.1 -s 100 {port}"

json=$work/samples.json
good_bench 'bench: three rounds' "$json" "$fiberize" bench --rounds 3 --load "$short" \
	--json "$json" -- "$work/server" plain 0
same 'bench: sides alternate' \
	'1 native,1 fiberize,2 native,2 fiberize,3 native,3 fiberize' \
	"$(samples "$json" '[.rounds[] | "\(.round) \(.side)"] | join(",")')"
same 'bench: every round has every figure' 'true' "$(samples "$json" '[.rounds[] |
	.requests, .requests_per_second, .latency_p50_us, .latency_p99_us, .cpu_us,
	.cpu_us_per_request, .switches, .peak_kb | . > 0] | all')"
same 'bench: median, min and max' 'true' "$(samples "$json" '. as $all |
	([.rounds[] | select(.side == "native") | .cpu_us_per_request] | sort) as $v |
	.summary[0].native.cpu_us_per_request |
	.min == $v[0] and .median == $v[1] and .max == $v[2]')"
same 'bench: ratio' 'true' "$(samples "$json" '
	([.rounds[] | select(.round == 2) | .requests_per_second] | .[1] / .[0]) as $second |
	.summary[0].ratio.requests_per_second | .min <= $second * 1.001 and .max >= $second * 0.999')"
case $out in
*requests/s*'latency p50'*'latency p99'*'CPU us/request'*'context switches'*'peak memory'*)
	pass 'bench: the table has it all' ;;
*) fail 'bench: the table has it all' "$out" ;;
esac
same 'bench: no progress unless on a terminal' '' "$err"

# What is kept of it for "fiberize status".
kept=$XDG_STATE_HOME/fiberize/measured
same 'bench: kept: the program and its arguments' "$PWD	$work/server	$work/server plain 0" "$(cut -f 9- "$kept")"
same 'bench: kept: the ratio of CPU time' "$(samples "$json" '.summary[0].ratio.cpu_us_per_request |
	"\(.median * 1000 | round) \(.low * 1000 | round) \(.high * 1000 | round) undecided"')" \
	"$(awk -F '\t' '{ printf "%.0f %.0f %.0f %s", $5 * 1000, $6 * 1000, $7 * 1000, $8 }' "$kept")"
same 'bench: kept: the version, no connections of a load' "$("$fiberize" --version | sed 's/^fiberize //') 0 0" \
	"$(cut -f 2-4 "$kept" | tr '\t' ' ')"
same 'bench: kept: for the user alone' '700 600' "$(stat -c %a "${kept%/*}" "$kept" | xargs)"
good_bench 'bench: two cases, of a program that a shell starts' "$json" "$fiberize" bench --rounds 1 --json "$json" \
	--connections 2,3 --load "$short #{connections}" -- sh -c '"$0" plain 0; :' "$work/server"
same 'bench: kept: a line for each case, behind the others' "0 2 3" "$(cut -f 3 "$kept" | xargs)"
same 'bench: kept: the process that listens' "$work/server plain 0" "$(tail -n 1 "$kept" | cut -f 11)"
good_bench 'bench: nowhere to keep it' "$json" env XDG_STATE_HOME=/proc/none "$fiberize" bench --rounds 1 --json "$json" \
	--load "$short" -- "$work/server" plain 0
same 'bench: nowhere to keep it: says so' \
	"fiberize bench: /proc/none/fiberize/measured: not written: No such file or directory; so fiberize status will not have this" "$err"
good_bench 'bench: no home' "$json" env -u HOME XDG_STATE_HOME=here "$fiberize" bench --rounds 1 --json "$json" \
	--load "$short" -- "$work/server" plain 0
same 'bench: no home: keeps nothing, quietly' '' "$err"
good_bench 'bench: a home that is not there' "$json" env -u XDG_STATE_HOME HOME="$work/nobody" "$fiberize" bench --rounds 1 \
	--json "$json" --load "$short" -- "$work/server" plain 0
same 'bench: a home that is not there: is not made' ': ' "$err: $(ls -d "$work/nobody" 2>/dev/null)"
mkdir "$work/home"
good_bench 'bench: by HOME' "$json" env -u XDG_STATE_HOME HOME="$work/home" "$fiberize" bench --rounds 1 --json "$json" \
	--load "$short" -- "$work/server" plain 0
same 'bench: by HOME: kept' 1 "$(wc -l <"$work/home/.local/state/fiberize/measured")"

# keeps NAME STATE: one bench with this XDG_STATE_HOME
keeps()
{
	good_bench "bench: $1" "$json" env XDG_STATE_HOME="$2" timeout 60 "$fiberize" bench --rounds 1 --json "$json" \
		--load "$short" -- "$work/server" plain 0
}
# not_kept NAME STATE WHY
not_kept()
{
	keeps "$1" "$2"
	same "bench: $1: says so" \
		"fiberize bench: $2/fiberize/measured: not written: $3; so fiberize status will not have this" "$err"
}
others='it, or a directory above it, belongs to another user'
alone="it is not a regular file that is this user's alone"
mkdir -p "$work/fifo/fiberize" "$work/link/fiberize" "$work/links" "$work/hard/fiberize" "$work/elsewhere"
mkfifo "$work/fifo/fiberize/measured"
not_kept 'a FIFO' "$work/fifo" "$alone"
# A FIFO with a reader, too: it could be written to.
exec 3<>"$work/fifo/fiberize/measured"
not_kept 'a FIFO that is read' "$work/fifo" "$alone"
exec 3>&-
echo mine >"$work/victim"
ln -s "$work/victim" "$work/link/fiberize/measured"
not_kept 'a link for a file' "$work/link" 'Too many levels of symbolic links'
ln "$work/victim" "$work/hard/fiberize/measured"
not_kept 'a file of two names' "$work/hard" "$alone"
same 'bench: a link for a file: unchanged' mine "$(cat "$work/victim")"
ln -s "$work/elsewhere" "$work/links/fiberize"
not_kept 'a link for the directory' "$work/links" 'Not a directory'
same 'bench: a link for the directory: nothing is made' '' "$(ls "$work/elsewhere")"
if [ "$(id -u)" = 0 ]; then
	mkdir "$work/other" "$work/other-state"
	chown 65534 "$work/other" "$work/other-state"
	not_kept 'a state directory of another user' "$work/other-state" "$others"
	not_kept 'below a directory of another user' "$work/other-state/a" "$others"
	good_bench 'bench: a home of another user' "$json" env -u XDG_STATE_HOME HOME="$work/other" "$fiberize" bench \
		--rounds 1 --json "$json" --load "$short" -- "$work/server" plain 0
	like 'bench: a home of another user: says so' '*/other/.local/state/fiberize/measured: not written: it, or *' "$err"
	same 'bench: of another user: nothing is made' '' "$(find "$work/other" "$work/other-state" -mindepth 1)"
else
	skip 'bench: a home of another user' 'needs root'
fi
# Half of what is in the way of a new line goes, and what stays are whole lines.
mkdir -p "$work/full/fiberize"
full=$work/full/fiberize/measured
seq -f 'line %09g that fills a record which is older than the others' 1 20000 | head -c 1048500 >"$full"
echo >>"$full"
keeps 'a full file' "$work/full"
same 'bench: a full file: no complaint' '' "$err"
yes 'bench: a full file: it is shorter' [ "$(stat -c %s "$full")" -lt 600000 ]
yes 'bench: a full file: the last half is there' [ "$(stat -c %s "$full")" -gt 500000 ]
like 'bench: a full file: whole lines' 'line ????????? that *' "$(head -n 1 "$full")"
same 'bench: a full file: the new line' "$work/server plain 0" "$(tail -n 1 "$full" | cut -f 11)"
same 'bench: a full file: nothing else, of this mode' '600 measured' \
	"$(stat -c '%a %n' "$work/full/fiberize"/* | sed 's, .*/, ,')"

run script -qec "'$fiberize' bench --load true --rounds 2 -- '$work/server' plain 0" /dev/null
case $out in
*'round 1 of 2: native'*'round 2 of 2: fiberize, about '*' s left'*)
	pass 'bench: progress on a terminal, with the time left' ;;
*) fail 'bench: progress on a terminal, with the time left' "$out" ;;
esac
good_bench 'bench: with odd arguments' "$json" "$fiberize" bench --rounds 1 --json "$json" \
	--load 'echo "requests 10"; echo {host} {port} >&2' -- \
	sh -c 'exec "$0" "$1" 0' "$work/server" plain 'a "b" \c' '' "x${newline}y" "tab	é"
same 'bench: arguments in JSON' "a \"b\" \\c||x${newline}y|tab?é" \
	"$(samples "$json" '.program[5:] | join("|")' | tr '\t' '?')"
same 'bench: figures of a load of one'"'"'s own' '10' "$(samples "$json" '.rounds[0].requests')"
good_bench 'bench: a load without figures' "$json" "$fiberize" bench --rounds 1 --json "$json" \
	--load "$build/libexec/echo_client -d 0.5 -h {host} {port} >/dev/null" -- "$work/server" plain 0
same 'bench: a load without figures: requests' 'null' \
	"$(samples "$json" '.rounds[0].requests, .rounds[0].cpu_us_per_request' | uniq)"
case $out in
*'CPU ms'*'context switches'*) pass 'bench: a load without figures: the rest' ;;
*) fail 'bench: a load without figures: the rest' "$out" ;;
esac
good_bench 'bench: figures of wrk' "$json" "$fiberize" bench --rounds 1 --json "$json" --load "
	echo '  Thread Stats   Avg      Stdev     Max   +/- Stdev'
	echo '    Latency     1.99ms  300.00us   5.00ms   90.00%'
	echo '     50%  950.00us'
	echo '     75%    1.95ms'
	echo '     99%    1.25s'
	echo '  12345 requests in 2.50s, 1.41MB read'
	echo '  Socket errors: connect 1, read 2, write 3, timeout 4'
	echo '  Non-2xx or 3xx responses: 5'
	echo 'Requests/sec:   4938.00'" -- "$work/server" plain 0
same 'bench: figures of wrk: all of them' '950 1250000 12345 2.5 4938 15' "$(samples "$json" \
	'.rounds[0] | "\(.latency_p50_us) \(.latency_p99_us) \(.requests) \(.seconds) \(.requests_per_second) \(.errors)"')"

good_bench 'bench: figures of ab' "$json" "$fiberize" bench --rounds 1 --json "$json" --load "
	echo 'Time taken for tests:   2.500 seconds'
	echo 'Complete requests:      12345'
	echo 'Failed requests:        9'
	echo '   (Connect: 1, Receive: 2, Length: 5, Exceptions: 1)'
	echo 'Non-2xx responses:      5'
	echo 'Requests per second:    4938.00 [#/sec] (mean)'
	echo 'Time per request:       5.805 [ms] (mean)'
	echo '  50%      2'
	echo '  75%      4'
	echo '  99%     34'
	echo ' 100%     34 (longest request)'" -- "$work/server" plain 0
same 'bench: figures of ab: all of them' '2000 34000 12345 2.5 4938 9' "$(samples "$json" \
	'.rounds[0] | "\(.latency_p50_us) \(.latency_p99_us) \(.requests) \(.seconds) \(.requests_per_second) \(.errors)"')"
run "$fiberize" bench --rounds 1 --load "
	echo '  12345 requests in 2.50s, 1.41MB read'
	echo '  Non-2xx or 3xx responses: 12345'
	echo 'Requests/sec:   4938.00'" -- "$work/server" plain 0
same 'bench: every request fails: exit status' 112 "$code"
like 'bench: every request fails: message' '*native, round 1: every request failed; *' "$err"
cat >"$work/both.py" <<'SERVER'
import socket, sys, time
while True:
    six = socket.socket(socket.AF_INET6)
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    six.bind(("::1", 0))
    four = socket.socket()
    try:
        four.bind(("127.0.0.1", six.getsockname()[1]))
        break
    except OSError:
        pass  # somebody else has it for IPv4
four.listen()
six.listen()
more = socket.socket()
if len(sys.argv) > 1:
    more.listen()
time.sleep(1000)
SERVER
run "$fiberize" bench --rounds 1 --load true -- python3 "$work/both.py"
same 'bench: one port for IPv4 and IPv6' '0' "$code$err"
run "$fiberize" bench --rounds 1 --load true -- python3 "$work/both.py" more
same 'bench: two ports: exit status' 111 "$code"
like 'bench: two ports' '*native, round 1: listens on several ports (*' "$err"

# Two connections, each burning 200 ms in a thread that is gone at the end.
good_bench 'bench: CPU time of threads that have ended' "$json" "$fiberize" bench \
	--rounds 1 --json "$json" --load "$build/libexec/echo_client -c 2 -d 1 -t 90 -h {host} {port}" \
	-- "$work/server" burns 0
same 'bench: CPU time of threads that have ended: counted' 'true' \
	"$(samples "$json" '[.rounds[].cpu_us | . > 380000 and . < 10000000] | all')"
# Options of the launcher's own are for the fiberized side: a profile, and what it refuses.
mkdir -p "$work/config/fiberize"
printf '[server]\nlibrary = /no/such.so\n' >"$conf"
failed_bench 'bench: a bad profile' 110 '*fiberize, round 1*/no/such.so: no such library*' \
	"$fiberize" bench --load true --rounds 1 -- "$work/server" plain 0
good_bench 'bench: no profiles' "$json" "$fiberize" bench --no-profiles --load true --rounds 1 \
	--json "$json" -- "$work/server" plain 0
rm "$conf"
cp "$work/server" "$work/server-setgid"
if chgrp 65534 "$work/server-setgid" 2>/dev/null && chmod g+s "$work/server-setgid"; then
	refused 'bench: a set-group-ID program' 120 '*set-group-ID*' \
		"$fiberize" bench --load true --rounds 1 -- "$work/server-setgid" plain 0
	good_bench 'bench: --force' "$json" "$fiberize" --force bench --load true --rounds 1 \
		--json "$json" -- "$work/server-setgid" plain 0
else
	skip 'bench: a set-group-ID program' 'only root can make one'
fi
for mode in late forks daemon; do
	good_bench "bench: a server that $mode" "$json" "$fiberize" bench --rounds 1 \
		--load "$short" --json "$json" -- "$work/server" $mode 0
done
good_bench 'bench: a stubborn server' "$json" "$fiberize" bench --load true --rounds 1 \
	--json "$json" -- "$work/server" stubborn 0
case $err in
*'native, round 1: still there 5 seconds after SIGTERM: killed'*) pass 'bench: says so' ;;
*) fail 'bench: says so' "$err" ;;
esac
good_bench 'bench: a given port, twice in a row' "$json" "$fiberize" bench --rounds 2 \
	--load "$short" --port "$port" --json "$json" -- "$work/server" plain "$port"
same 'bench: the given port was taken' "$port" "$(samples "$json" '.rounds[3].port')"
if [ "$(nproc)" -ge 2 ] && taskset -c 0,1 true 2>/dev/null; then
	good_bench 'bench: pinned' "$json" "$fiberize" bench --load "$short" --rounds 1 \
		--cpus 0:1 --json "$json" -- "$work/server" plain 0
else
	skip 'bench: pinned' 'there is one CPU only'
fi
LD_PRELOAD=$build/libfiberize-preload.so:$library
export LD_PRELOAD
good_bench 'bench: natively means without the library' "$json" "$fiberize" bench --rounds 1 \
	--load "for p in \$(pgrep -xf '$work/server plain $port'); do grep -q $library /proc/\$p/maps && exit; done
		echo latency_p50_us 7" --port "$port" --json "$json" -- "$work/server" plain "$port"
unset LD_PRELOAD
same 'bench: natively means without the library: looked at' '[7,null]' \
	"$(samples "$json" '[.rounds[].latency_p50_us] | tostring')"

good_bench 'bench: the environment' "$json" env a.b=c side=s "$fiberize" bench --rounds 1 \
	--load "for p in \$(pgrep -xf '$work/server plain $port'); do
			tr '\\000' '\\n' <\"/proc/\$p/environ\" | grep -cx -e a.b=c -e side=s |
				sed 's/^/latency_p50_us /'
		done" --port "$port" --json "$json" -- "$work/server" plain "$port"
same 'bench: the environment: looked at' '[2,2]' \
	"$(samples "$json" '[.rounds[].latency_p50_us] | tostring')"

# ---- with the bundled server

good_bench 'bench: bundled server, HTTP' "$json" "$fiberize" bench --rounds 1 --duration 1 \
	--json "$json" -- "$programs/legacy_server" -p 0
same 'bench: bundled server, HTTP: figures' 'true' "$(samples "$json" '[.rounds[] |
	.requests, .latency_p50_us, .latency_p99_us, .cpu_us_per_request | . > 0] | all')"
same 'bench: bundled server, HTTP: no errors' '0' \
	"$(samples "$json" '[.rounds[].errors // 0] | add')"
good_bench 'bench: by the clock beside the closed load' "$json" "$fiberize" bench --rounds 1 --duration 1 --connections 4 \
	--rate 200 --json "$json" -- "$programs/legacy_server" -p 0
same 'bench: by the clock: cases' '[[4,null],[4,200]]' "$(samples "$json" '[.summary[] | [.connections, .rate]] | tostring')"
same 'bench: by the clock: as many requests as were due' 'true' "$(samples "$json" '[.rounds[] | select(.rate == 200) |
	.requests_total <= 204 and .latency_p999_us >= .latency_p99_us and .latency_p99_us >= .latency_p50_us and
	.latency_p50_us > 0] | all')"
good_bench 'bench: bundled server, echo' "$json" "$fiberize" bench --echo --rounds 1 \
	--duration 1 --size 100 --connections 128 --json "$json" -- "$programs/legacy_server" -e -p 0
same 'bench: bundled server, echo: figures' 'true' "$(samples "$json" '[.rounds[] |
	.requests, .latency_p50_us, .latency_p99_us, .cpu_us_per_request | . > 0] | all')"
same 'bench: bundled server, echo: no errors' '0' \
	"$(samples "$json" '[.rounds[].errors] | add')"

finish
