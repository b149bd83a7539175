-- SPDX-License-Identifier: MIT
-- scripts/bench/wrk.lua - prints the percentile 99.9, which wrk does not print, for figures.awk.
done = function(summary, latency, requests)
	io.write(string.format("latency_p999_us %.1f\n", latency:percentile(99.9)))
end
