#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/bench/bench_report.sh - "fiberize bench": what loads print, as figures; the verdict; the
# reports, which are there whole or not at all; servers that leak.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"
# shellcheck source=tests/scripts/bench/bench.inc
. "$(dirname "$0")/bench.inc"
need jq python3 gnuplot
libexec=$build/libexec

# ---- what loads print

# figures REGEX: of the standard input, on one line
figures()
{
	fz_regex=$1 awk -f "$libexec/figures.awk" | sort | tr '\n' ' '
}
same 'hey' 'errors 3 latency_p50_us 400 latency_p99_us 8000 requests 6835 requests_per_second 6806.9115 seconds 1.0038 ' \
	"$(figures '' <<-END
	Summary:
	  Total:	1.0038 secs
	  Requests/sec:	6806.9115
	  Total data:	40998 bytes

	Response time histogram:
	  0.012 [3]	|

	Latency distribution:
	  50% in 0.0004 secs
	  99% in 0.0080 secs

	Status code distribution:
	  [200]	6833 responses
	  [404]	2 responses

	Error distribution:
	  [1]	Get "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused
	END
	)"
same 'redis-benchmark, two tests' 'latency_p50_us 1127 latency_p99_us 13935 requests 40000 seconds 3.41 ' \
	"$(figures '' <<-END
	  20000 requests completed in 1.21 seconds
	Summary:
	  latency summary (msec):
	          avg       min       p50       p95       p99       max
	        4.155     0.216     1.127     9.967    10.935   483.327
	  20000 requests completed in 2.20 seconds
	          avg       min       p50       p95       p99       max
	        4.155     0.216     0.975     9.967    13.935   483.327
	END
	)"
same 'redis-benchmark --csv' 'latency_p50_us 3207 latency_p99_us 14671 requests_per_second 4000 ' \
	"$(figures '' <<-END
	"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
	"SET","3000.00","4.113","0.184","3.207","9.463","14.671","211.967"
	"GET","6000.00","2.175","0.048","0.863","7.175","9.903","45.759"
	END
	)"
same 'redis-benchmark -q' 'latency_p50_us 2679 requests_per_second 9220.84 ' \
	"$(printf 'SET: rps=0.0 (overall: 0.0)\r     \rSET: 9220.84 requests per second, p50=2.679 msec\n' | figures '')"
same 'memtier_benchmark' \
	'latency_p50_us 503 latency_p999_us 2511 latency_p99_us 1215 requests 20000 requests_per_second 9800.00 ' \
	"$(figures '' <<-END
	[RUN #1 100%,   2 secs]  0 threads:       20000 ops,    9876 (avg:    9800) ops/sec, 380.00KB/sec
	Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
	Sets          890.91          ---          ---         0.51000         0.50300         1.20000         2.50000        68.00
	Totals       9800.00         9.09      8900.00         0.51000         0.50300         1.21500         2.51100       415.00
	END
	)"
same 'sysbench' 'errors 2 latency_p99_us 5770 requests 952 seconds 1.0381 ' \
	"$(figures '' <<-END
	    ignored errors:                      2      (1.92 per sec.)
	    reconnects:                          0      (0.00 per sec.)
	    total time:                          1.0381s
	    total number of events:              952
	         99th percentile:                        5.77
	END
	)"
same 'another load, by a regular expression' 'requests 42 ' \
	"$(printf 'did 40 jobs\nrequests 9\nand did 2 jobs in 3 s\n' | figures 'did [0-9]+ jobs')"
same 'another load: nothing matches' '' "$(echo 'did some jobs' | figures 'did [0-9]+ jobs')"

# ---- the bundled client as a client of HTTP, by the clock

# Answers in pieces, the second request 0.5 s late.
cat >"$work/pieces.py" <<'SERVER'
import socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    c, requests, data = s.accept()[0], 0, b""
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while more := c.recv(4096):
        data += more
        while b"\r\n\r\n" in data:
            data = data.split(b"\r\n\r\n", 1)[1]
            requests += 1
            time.sleep(0.5 if requests == 2 else 0)
            for piece in (b"HTTP/1.1 100 Continue\r\n\r", b"\nHTTP/1.1 200 OK\r\nTransfer-", b"Encoding: chunked\r\n\r\n5;x=y\r",
                          b"\nhel", b"lo\r\nA\r\n0123456789\r\n0\r\n", b"X: y\r\n\r", b"\n"):
                c.sendall(piece)
SERVER
python3 "$work/pieces.py" >"$work/port" &
at_exit kill -KILL $!
yes 'by the clock: the server listens' eventually test -s "$work/port"
# paced NAME DURATION: what the client has measured, with one connection
paced()
{
	run "$libexec/echo_client" -c 1 -d "$2" -r 100 --get / "$(cat "$work/port")"
	same "by the clock, $1: exit status" 0 "$code$err"
	p50=$(sed -n 's/^latency_p50_us \([0-9]*\).*/\1/p' "$work/out")
	p99=$(sed -n 's/^latency_p99_us \([0-9]*\).*/\1/p' "$work/out")
}
# About 50 of the 80 requests are due while the server stalls, and are answered after it.
paced 'a server that stalls' 0.8
yes "by the clock, a server that stalls: its requests wait ($p50 us)" test "$p50" -ge 50000
# It stalls to the end: one request is sent and waits 0.5 s, 29 are never sent and wait 0.2 s to 0.5 s.
paced 'a server that does not come back' 0.3
yes "by the clock, a server that does not come back: its requests wait ($p50 us)" test "$p50" -ge 200000
yes "by the clock, a server that does not come back: each for itself (to $p99 us)" test "$p50" -lt "$p99"

# ---- the verdict

# say NATIVE FIBERIZE ROUNDS PROGRAM...: what the reports say of these requests/s and this CPU time
say()
{
	for ((round = 1; round <= $3; round++)); do
		for side in "native $1" "fiberize $2"; do
			read -r which requests <<<"$side"
			echo "1 $round $which requests $requests"
			echo "1 $round $which requests_per_second $requests"
			echo "1 $round $which cpu_us $((requests > 0 ? 1000000 : 0))"
			echo "1 $round $which descriptors_left ${left-0}"
		done
	done >"$work/samples"
	rounds=$3
	shift 3
	words=()
	for file in median verdict summary "$@"; do
		words+=(-f "$libexec/$file.awk")
	done
	fz_connections=16 fz_rates=0 fz_cpus=2 fz_load_average=0.1 fz_server_cpus=0 fz_load_cpus=1 \
		fz_mode=echo fz_duration=1 awk -v rounds="$rounds" "${words[@]}" "$work/samples"
}
verdict()
{
	say "$@" words json | jq -r '"\(.verdict): \(.notes | length)"'
}
same 'verdict: faster' 'faster: 0' "$(verdict 1000 1500 5)"
same 'verdict: slower' 'slower: 0' "$(verdict 1500 1000 5)"
same 'verdict: no difference' 'no difference: 0' "$(verdict 1000 1010 5)"
same 'verdict: too few rounds' 'undecided: 1' "$(verdict 1000 1500 4)"
like 'verdict: in words' '*gains by fiberize*50 % more throughput (ratio 1.50, faster); 33 % less CPU time per request (ratio 0.67, faster).' \
	"$(say 1000 1500 5 words table)"
like 'verdict: nothing to compare' '*does not tell*there is nothing to compare.' "$(say 0 0 5 words table)"
say 1000 1500 5 leaks >"$work/leaks"
same 'no leak' '0' "$?$(cat "$work/leaks")"
left=7 say 1000 1500 5 leaks >"$work/leaks"
same 'a few files may stay open' '0' "$?$(cat "$work/leaks")"
left=8 say 1000 1500 5 leaks >"$work/leaks"
like 'a leak' '1native, 16 connections: *8 descriptors more *' "$?$(cat "$work/leaks")"

# ---- the reports

page=$work/page.html markdown=$work/page.md json=$work/page.json
load='echo requests {connections}00; echo requests_per_second {connections}00; echo latency_p50_us 7;
	echo latency_p99_us 81{connections}'
run "$fiberize" --stack-size 64k bench --rounds 1 --connections 4,16 --report "$page" --markdown "$markdown" \
	--json "$json" --load "$load" -- sh -c 'exec "$0" plain 0' "$work/server" '<b>&"x"' 'a\1&'
same 'reports: exit status' 0 "$code$err"
same 'reports: two cases' '4 undecided, 16 undecided' \
	"$(jq -r '[.summary[] | "\(.connections) \(.verdict)"] | join(", ")' "$json")"
same 'reports: the connections reach the load' '400 1600' \
	"$(jq -r '[.summary[].native.requests.median] | join(" ")' "$json")"
same 'reports: the page has the figures of the JSON' '' "$(python3 "$root/tests/lib/page.py" "$page" "$json" 2>&1)"
yes 'reports: the program in the page' grep -qF "'&lt;b&gt;&amp;&quot;x&quot;' 'a\\1&amp;'</code></h1>" "$page"
yes 'reports: the program in Markdown' grep -qF "'<b>&\"x\"' 'a\\1&'" "$markdown"
yes 'reports: figures in Markdown' grep -qF '| latency p99, us | 8116 (8116..8116) | 8116 (8116..8116) | 1.00 (1.00..1.00) |' "$markdown"
for what in "$(uname -r)" 'bench --rounds 1 --connections 4,16' "$(cat "$libexec/commit")"; do
	yes "reports: the page has $what" grep -qF -e "$what" "$page"
done
same 'reports: the command can be repeated' true "$(jq --arg f "$fiberize" \
	'.command | startswith($f + " --stack-size 64k bench --rounds 1 ")' "$json")"
# As a browser would see a page whose numbers are wrong.
sed 's/>1600 (/>1601 (/' "$page" >"$work/wrong.html"
like 'reports: a wrong figure is found' '*requests_per_second*1601*' \
	"$(python3 "$root/tests/lib/page.py" "$work/wrong.html" "$json" 2>&1)"
tidy reports

# ---- a report is there whole or not at all

mkdir "$work/bin2" "$work/reports"
printf '#!/bin/sh\necho no plot today >&2\nexit 1\n' >"$work/bin2/gnuplot"
chmod +x "$work/bin2/gnuplot"
# kept NAME CODE PATTERN COMMAND...: fails, and an older report stays as it was
kept()
{
	name=$1 want=$2 pattern=$3
	shift 3
	echo old >"$work/reports/page"
	run "$@" --rounds 1 --report "$work/reports/page" --json "$work/reports/json" \
		-- "$work/server" plain 0
	like "$name" "$want $pattern" "$code $err"
	same "$name: nothing was written" 'page old' "$(ls -A "$work/reports") $(cat "$work/reports/page")"
	tidy "$name"
}
kept 'gnuplot fails' 114 '*gnuplot failed: no plot today' \
	env PATH="$work/bin2:$PATH" "$fiberize" bench --load 'echo requests 5'
kept 'the load fails' 112 '*exit status 3*' "$fiberize" bench --load 'exit 3'
run "$fiberize" bench --load 'echo requests 5' --rounds 1 --report /dev/full -- "$work/server" plain 0
same 'a full disk' '114 fiberize: /dev/full: cannot be written' "$code $err"
run "$fiberize" bench --load 'echo requests 5' --rounds 1 --markdown /dev/stdout -- "$work/server" plain 0
like 'the standard output, which is a file' '*requests/s*# fiberize bench*' "$out"
ln -s "$work/reports/page" "$work/reports/link"
chmod 640 "$work/reports/page"
run "$fiberize" bench --load 'echo requests 5' --rounds 1 --markdown "$work/reports/link" -- "$work/server" plain 0
same 'a symbolic link stays one, and its file keeps its permissions' 'link page 640' \
	"$(cd "$work/reports" && find . -type l -printf '%f ' -o -type f -printf '%f %m\n' | sort | tr -d '\n')"
yes 'its file is new' grep -q '^# fiberize bench' "$work/reports/page"

# ---- loads that cannot be believed, servers that leak

# shellcheck disable=SC2086
{
failed_bench 'some requests fail' 112 '*native, round 1: 20 of 1000 requests failed' \
	"$fiberize" bench $short --load 'echo requests 1000; echo errors 20' -- "$work/server" plain 0
failed_bench 'connections are dropped' 112 '*native, round 1: 11 of 1000 requests failed' "$fiberize" bench $short \
	--load 'echo "  1000 requests in 1.00s, 1MB read"; echo "  Socket errors: connect 1, read 10, write 0, timeout 0"' \
	-- "$work/server" plain 0
failed_bench 'a known load prints something new' 113 '*this is not what hey prints*' \
	"$fiberize" bench $short --load 'PATH=$PATH:/; echo 5 answers; true hey -z 1s' -- "$work/server" plain 0
mkdir "$work/bin"
printf '#!/bin/sh\necho 5 answers\n' >"$work/bin/hey"
chmod +x "$work/bin/hey"
failed_bench 'the same, where the load has its own processors' 113 '*this is not what hey prints*' \
	env PATH="$work/bin:$PATH" "$fiberize" bench --rounds 1 --cpus 0:0 --load 'hey -z 1s' -- "$work/server" plain 0
failed_bench 'nothing matches' 113 '*no number matches \[0-9\]+ answers' "$fiberize" bench $short \
	--requests-regex '[0-9]+ answers' --load 'echo 5 answer' -- "$work/server" plain 0
failed_bench 'figures come and go' 113 '*fiberize, round 1: the load gave no figures, as it did before' \
	"$fiberize" bench $short --load "[ -e $work/been ] || echo requests 5; touch $work/been" -- "$work/server" plain 0
}
run "$fiberize" bench --rounds 1 --requests-regex '[0-9]+ answers' --load 'echo 50 answers; echo 70 answers' \
	--json "$json" -- "$work/server" plain 0
same '--requests-regex' '0 120' "$code $(jq '.rounds[0].requests' "$json")"
for mode in opens keeps; do
	run "$fiberize" bench --rounds 1 --load "$libexec/echo_client -c 20 -d 0.2 {port}" \
		--report "$page" -- "$work/server" $mode 0
	same "a server that $mode descriptors: exit status" 103 "$code"
	like "a server that $mode descriptors" \
		'fiberize bench: native, the load: *2? descriptors more *fiberize bench: fiberize, *' \
		"$(tr '\n' ' ' <"$work/err")"
	like "a server that $mode descriptors: the table" '*descriptors left*2?*leaks them*' "$out"
	yes "a server that $mode descriptors: the page says so" grep -q 'it leaks them' "$page"
done
finish
