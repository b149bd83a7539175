# SPDX-License-Identifier: MIT
#
# scripts/bench/figures.awk - turns the output of wrk, ab or echo_client into lines NAME VALUE.

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
/^(requests|requests_total|seconds|requests_per_second|latency_p50_us|latency_p99_us|latency_p999_us|errors) [0-9.]+$/ {
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
/^Complete requests: / { print "requests", $3 }
/^Time taken for tests: / { print "seconds", $5 }
/^Requests per second: / { print "requests_per_second", $4 }
/^ +50% +[0-9]+$/ { print "latency_p50_us", $2 * 1000 }
/^ +99% +[0-9]+$/ { print "latency_p99_us", $2 * 1000 }
# ab also calls answers failed that are not all of one length.
/^ *\(Connect: / {
	gsub(/,/, "")
	errors += $2 + $4 + $8
	wrk = 1
}
/^Non-2xx responses: / { errors += $3; wrk = 1 }
END { if (wrk) print "errors", errors }
