#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/bench/bench_chromium.sh - the page of "fiberize bench --report" as Chromium shows it, without
# a network: its numbers are those of the JSON, its charts have a size, nothing is missing.

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"
need jq python3 gnuplot chromium

page=$work/page.html json=$work/page.json
run "$fiberize" bench --echo --rounds 2 --duration 1 --connections 4,16 --rate 500 --report "$page" --json "$json" \
	-- "$programs/legacy_server" -e -p 0
same 'a report: exit status' 0 "$code$err"

# chromium_on ARGS...: its output, and what it complains of in $work/complaints
chromium_on()
{
	limited chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
		--user-data-dir="$work/chromium" --host-resolver-rules='MAP * ~NOTFOUND' "$@" \
		2>"$work/complaints"
}

chromium_on --dump-dom "file://$page" >"$work/seen.html"
yes 'Chromium shows the page' grep -q 'id="headline"' "$work/seen.html"
same 'as shown: the figures of the JSON' '' \
	"$(python3 "$root/tests/lib/page.py" "$work/seen.html" "$json" 2>&1)"
same 'as shown: a table for each case' 4 "$(grep -o '<table' "$work/seen.html" | wc -l)"

# The report has no script, so one that measures it is added.
{
	cat "$page"
	cat <<-'END'
	<script>addEventListener("load", () => { document.body.dataset.seen = JSON.stringify({
		charts: [...document.querySelectorAll("svg")].map(s => s.getBoundingClientRect()).map(r => [r.width, r.height]),
		bars: document.querySelectorAll("svg path, svg rect, svg polygon").length,
		outside: performance.getEntriesByType("resource").length,
		wide: document.documentElement.scrollWidth > innerWidth }) })</script>
	END
} >"$work/measured.html"
chromium_on --window-size=1000,800 --dump-dom "file://$work/measured.html" |
	sed -n 's/.*data-seen="\([^"]*\)".*/\1/p' | sed 's/&quot;/"/g' >"$work/seen.json"
same 'as shown: each chart has a size' true \
	"$(jq '(.charts | length) >= 7 and all(.charts[]; .[0] > 300 and .[1] > 100) and .bars > 20' "$work/seen.json")"
same 'as shown: nothing was fetched' 0 "$(jq .outside "$work/seen.json")"
same 'as shown: it is no wider than the window' false "$(jq .wide "$work/seen.json")"
finish
