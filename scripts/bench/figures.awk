# SPDX-License-Identifier: MIT
#
# scripts/bench/figures.awk - turns the output of a load program into lines NAME VALUE.  It reads
# the output of wrk, ab, hey, redis-benchmark, memtier_benchmark, sysbench and echo_client.  For
# other programs, fz_regex in the environment is a regular expression: the first number in each
# match is a number of requests, and these are added up.

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

# Note the figures of one test, if a load runs several tests one after the other. Requests and times
# are added up; the largest latency counts.
function test(requests, seconds, p50, p99)
{
	tests++
	test_requests += requests
	test_seconds += seconds
	test_p50 = p50 > test_p50 ? p50 : test_p50
	test_p99 = p99 > test_p99 ? p99 : test_p99
}

# Note a test that prints only its rate. It has as many requests as each other test of the run.
function quick(rate)
{
	quick_tests++
	if (rate > 0)
		quick_seconds += 1 / rate
}

# If a load prints over its own line (as progress on a terminal), only the last text counts.
{
	sub(/\r+$/, "")
	sub(/.*\r/, "")
}

# With fz_regex, none of the formats below is read.
BEGIN { regex = ENVIRON["fz_regex"] }
regex != "" {
	if (match($0, regex)) {
		text = substr($0, RSTART, RLENGTH)
		if (match(text, /[0-9]+(\.[0-9]+)?/)) {
			matched = 1
			regex_requests += substr(text, RSTART, RLENGTH)
		}
	}
	next
}

# echo_client, wrk.lua, and any load that prints lines NAME VALUE
/^(requests|requests_total|seconds|requests_per_second|latency_p50_us|latency_p99_us|latency_p999_us|errors) [0-9.]+$/ {
	print
}

# wrk
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
	failed = 1
}
/^ *Non-2xx or 3xx responses: / { errors += $NF; failed = 1 }

# ab
/^Complete requests: / { print "requests", $3 }
/^Time taken for tests: / { print "seconds", $5 }
/^Requests per second: / { print "requests_per_second", $4 }
/^ +50% +[0-9]+$/ { print "latency_p50_us", $2 * 1000 }
/^ +99% +[0-9]+$/ { print "latency_p99_us", $2 * 1000 }
# ab counts an answer as failed, too, if its length differs from the first one; leave those out.
/^ *\(Connect: / {
	gsub(/,/, "")
	errors += $2 + $4 + $8
	failed = 1
}
/^Non-2xx responses: / { errors += $3; failed = 1 }

# hey prints "[200] 123 responses"; after "Error distribution:" it prints errors as "[5] Get ..."
/^ +Requests\/sec:[ \t]/ { print "requests_per_second", $2 }
/^ +Total:[ \t]+[0-9.]+ secs$/ { print "seconds", $2 }
/^ +50% in [0-9.]+ secs$/ { print "latency_p50_us", $3 * 1000000 }
/^ +99% in [0-9.]+ secs$/ { print "latency_p99_us", $3 * 1000000 }
/^ +\[[0-9]+\][ \t]+[0-9]+ responses$/ {
	hey_requests += $2
	if ($1 !~ /^\[[23]/) {
		errors += $2
		failed = 1
	}
}
/^Error distribution:/ { hey_errors = 1 }
hey_errors && /^ +\[[0-9]+\][ \t]/ {
	errors += substr($1, 2)
	failed = 1
}

# redis-benchmark has three forms of output
/^ *[0-9]+ requests completed in [0-9.]+ seconds$/ { redis_requests = $1; redis_seconds = $5 }
/^ +avg +min +p50 +p95 +p99 +max *$/ { redis_latencies = 1; next }
redis_latencies && NF == 6 {
	test(redis_requests, redis_seconds, $3 * 1000, $5 * 1000)
	redis_latencies = 0
}
/: [0-9.]+ requests per second, p50=[0-9.]+ msec/ {
	quick($(NF - 5))
	sub(/.*p50=/, "")
	test(0, 0, $1 * 1000, 0)
}
/^"[^"]+","[0-9.]+","[0-9.]+","[0-9.]+","[0-9.]+","[0-9.]+","[0-9.]+","[0-9.]+"$/ {
	gsub(/"/, "")
	split($0, csv, ",")
	quick(csv[2])
	test(0, 0, csv[5] * 1000, csv[7] * 1000)
}

# memtier_benchmark: the heading tells which column is which; latencies are in milliseconds
/^Type +Ops\/sec / {
	gsub(/Avg\. Latency/, "Avg")
	memtier_columns = split($0, column)
	for (i = k = 1; i <= memtier_columns; i++)
		if (column[i] != "Latency")
			memtier[k++] = column[i]
}
/^Totals +[0-9.]+ / && memtier_columns {
	for (i = 2; i <= NF; i++) {
		if (memtier[i] == "Ops/sec")
			print "requests_per_second", $i
		else if (memtier[i] ~ /^p(50|99|99\.9)(\.0*)?$/) {
			name = substr(memtier[i], 2)
			sub(/\.0+$/, "", name)
			sub(/\./, "", name)
			print "latency_p" name "_us", $i * 1000
		}
	}
}
/^\[RUN #[0-9]+ 100%, / {
	for (i = 2; i <= NF; i++)
		if ($i == "ops,")
			memtier_requests = $(i - 1)
}

# sysbench
/^ +total number of events: +[0-9]+$/ { print "requests", $NF }
/^ +total time: +[0-9.]+s$/ { print "seconds", $NF + 0 }
/^ +99th percentile: +[0-9.]+$/ { print "latency_p99_us", $NF * 1000 }
/^ +ignored errors: +[0-9]+ / { errors += $3; failed = 1 }
/^ +reconnects: +[0-9]+ / { errors += $2; failed = 1 }

END {
	if (regex != "") {
		if (matched)
			print "requests", regex_requests
		exit
	}
	if (hey_requests)
		print "requests", hey_requests
	if (memtier_requests)
		print "requests", memtier_requests
	if (test_requests) {
		print "requests", test_requests
		print "seconds", test_seconds
	} else if (quick_seconds)
		print "requests_per_second", quick_tests / quick_seconds
	if (test_p50)
		print "latency_p50_us", test_p50
	if (test_p99)
		print "latency_p99_us", test_p99
	if (failed)
		print "errors", errors
}
