#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/texts.sh - names of threads, programs and files that have control characters or are no UTF-8: no tool
# prints them as they are, and what is for programs stays readable.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need gdb jq promtool python3

cat >"$work/judge.py" <<'PYTHON'
import json, sys, unicodedata
form, path = sys.argv[1:]
text = open(path, 'rb').read().decode()
bad = [c for c in text if c != '\n' and unicodedata.category(c) in ('Cc', 'Zl', 'Zp')]
assert text and not bad, bad
if form == 'json':
    json.loads(text)
print('good')
PYTHON

# judge NAME FORM FILE
judge()
{
	same "$1" good "$(python3 "$work/judge.py" "$2" "$3" 2>&1 | tail -n 1)"
}

# clean FORM COMMAND...
clean()
{
	local form=$1
	shift
	run "$fiberize" "$@"
	same "$*: exit status" 0 "$code"
	judge "$*" "$form" "$work/out"
}

odd=$'odd\033[7m\xff'
must cp "$helpers/names" "$work/$odd"
must mkfifo "$work/$odd.fifo"
start "$fiberize" --stats="$work/counters" "$work/$odd" "$work/$odd.fifo"
settled()
{
	run "$fiberize" ps --json "$pid"
	[ "$(jq '[.threads[] | select(.name != "")] | length' <<<"$out")" -ge 4 ] && grep -q fifo <<<"$out"
}
must eventually settled
clean json ps --json "$pid"
same 'the names of threads' '?? ???|?? ??m|?[2J??|grün' \
	"$(jq -r '[.threads[] | select(.main | not).name] | sort | join("|")' <<<"$out")"
like 'the name of a file' "*$work/odd?\[7m?.fifo*" "$(jq -r '.threads[].detail // empty' <<<"$out")"
clean text ps "$pid"

# Does what follows the names begin in one column?
aligned()
{
	run "$fiberize" ps "$pid"
	python3 - "$work/out" <<'PYTHON'
import sys
lines = [line for line in open(sys.argv[1]).read().splitlines() if "  sleep" in line]
sys.exit(len(lines) < 2 or not any("grün" in line for line in lines) or
         len({line.index("  sleep") for line in lines}) > 1)
PYTHON
}
yes 'ps: columns' eventually aligned
clean text ps --tree "$pid"
clean text bt --each "$pid"
like 'bt: a name, and a file' "*\"?? ??m\", waits: poll(*: $work/odd?\[7m?.fifo)*" "$out"
run gdb -nx -batch -x "$build/gdb.py" -p "$pid" -ex 'info fibers'
grep -a '^[* ] [0-9]* ' "$work/out" >"$work/fibers"
judge 'gdb' text "$work/fibers"
like 'gdb: a name' '*"?? ??m" *' "$(cat "$work/fibers")"
clean text top --batch --count 1 "$pid" 0.2
clean text stat "$pid"
like 'stat: the program' 'odd?\[7m?: process *' "$out"
clean json stat --json "$pid"
clean text stat --prometheus "$pid"
yes 'what Prometheus reads' promtool check metrics <"$work/out"
clean text status
like 'status: the program' "* $pid odd?\[7m? *" "$out"
clean json status --json

# ---- trace

traced()
{
	run "$fiberize" trace --seconds 0.5 --json "$work/trace.json" "$pid" &&
		run "$fiberize" trace --seconds 0.5 "$pid" && grep -q 'usleep' "$work/out" &&
		grep -q 'grün' "$work/trace.json" && grep -q '2J' "$work/trace.json"
}
must eventually traced
judge 'trace' text "$work/out"
judge 'trace --json' json "$work/trace.json"
same 'trace --json: the name of the program' 'odd?[7m?' "$(jq -r --argjson pid "$pid" \
	'.traceEvents[] | select(.name == "process_name" and .pid == $pid).args.name' "$work/trace.json")"
stop

# ---- a file of counters that is damaged

must python3 - "$work/counters" "$work/damaged" <<'PYTHON'
import sys
data = open(sys.argv[1], 'rb').read()
# A name of 32 bytes and a rung of 16, neither of which ends.
at = data.index(b'usleep\0')
row = b'"\\\n\x1b\xff'.ljust(32, b'\x80') + b'"\xe2\x82'.ljust(16, b'x')
open(sys.argv[2], 'wb').write(data[:at] + row + data[at + len(row):])
PYTHON
clean text stat "$work/damaged"
clean json stat --json "$work/damaged"
clean text stat --prometheus "$work/damaged"
yes 'what Prometheus reads of it' promtool check metrics <"$work/out"
has 'the call' "$work/out" '^fiberize_calls_total{function="\\"\\\\?????*",rung="\\"??x*",outcome="parked"} '
finish
