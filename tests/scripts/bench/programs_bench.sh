#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/bench/programs_bench.sh - scripts/bench/programs/run.py: what the ratios say, a run from its
# options to JSON, programs that are missing, loads that fail.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need python3 jq gnuplot
driver=$root/scripts/bench/programs
export PYTHONDONTWRITEBYTECODE=1

# ---- verdicts: ratios, is more better?, the word

judge()
{
	PYTHONPATH=$driver python3 -c "from driver.verdict import judge; print(judge([$1], $2)[3])"
}

same 'all above: more is faster' faster "$(judge '1.1, 1.2, 1.3, 1.2, 1.15' True)"
same 'all above: less is better' slower "$(judge '1.1, 1.2, 1.3, 1.2, 1.15' False)"
same 'all below: less is better' faster "$(judge '.5, .6, .7, .6, .8' False)"
same 'all near 1' 'no difference' "$(judge '1.0, 1.01, .99, 1.0, 1.0' True)"
same 'on both sides' undecided "$(judge '.5, 2, .7, 1.5, 1' True)"
same 'three rounds decide nothing' undecided "$(judge '.5, .5, .5' True)"
same 'figures that are 0' undecided "$(judge '0, 0, 0, 1, 2' True)"
same 'an outlier among many' faster "$(judge '1.2, 1.2, 1.3, 1.2, 1.2, 1.3, 1.2, 1.2, .2' True)"

# ---- a run

"$driver/run.py" --build "${build#"$root"/}" --rounds 2 --most 2 --seconds 0.2 --json "$work/out.json" \
	--chart "$work/out.svg" echo_1 echo_128_paced \
	>"$work/out" 2>&1
same 'a run: exit status' 0 $?
same 'a run: sides of each round' 'native,fiberize native,fiberize' \
	"$(jq -r '[.samples.echo_1[] | keys_unsorted | join(",")] | join(" ")' "$work/out.json")"
same 'a run: figures' true "$(jq '[.samples.echo_1[][] |
	.per_s > 0 and .cpu_us > 0 and .p50_us > 0 and .p999_us >= .p99_us and .peak_kb > 0] | all' "$work/out.json")"
same 'a run: the machine' true "$(jq '.about | length >= 3' "$work/out.json")"
yes 'a run: the table' grep -q '^echo_1 .*fiberize .*CPU' "$work/out"
same 'a run: by the clock, no more than was due' true "$(jq '[.samples.echo_128_paced[][] |
	.per_s > 0 and .per_s <= 5010 and .p999_us >= .p99_us] | all' "$work/out.json")"
for row in 'echo_1: operations/s' 'echo_1: CPU/operation' 'echo_1: p99' 'echo_128_paced: p99'; do
	has "a run: the chart has $row" "$work/out.svg" "$row"
done
yes 'no half of a report' test ! -e "$work/out.json.new" -a ! -e "$work/out.svg.new"

"$driver/run.py" --build "${build#"$root"/}" --rounds 1 --most 9 --seconds 0.1 --minutes 0 \
	--json "$work/out.json" echo_1 >"$work/out" 2>&1
same 'no minutes are left: no round more than it must' '0 1' \
	"$? $(jq '.samples.echo_1 | length' "$work/out.json")"
"$driver/run.py" --minutes -1 echo_1 >"$work/out" 2>&1
same 'minutes below 0' 2 $?
yes 'minutes below 0: said' grep -q -e '--minutes -1' "$work/out"

"$driver/run.py" --list >"$work/list"
while read -r name; do
	grep -q "^$name\$" "$work/list" || fail 'the list' "$name is not in it"
done < <(find "$driver" -name workload.py -printf '%h\n' | sed 's#.*/##')
pass 'the list'

"$driver/run.py" no_such_workload >"$work/out" 2>&1
same 'an unknown workload' 2 $?

# ---- what goes wrong

# workload NEEDS COMMAND [FIGURES]: one that is made for this; with FIGURES, whose load has to print some
workload()
{
	PYTHONPATH=$driver python3 - "$1" "$2" "$build" "${3-}" <<-'END'
	import sys, types
	import run
	_, needs, command, folder, figures = sys.argv
	read = (lambda text: {"operations": float(text)}) if figures else lambda text: {"operations": 1}
	module = types.SimpleNamespace(NEEDS=needs, figures=read,
	                               command=lambda place, side: ["sh", "-c", command])
	run.find = lambda: {"made": folder}
	run.load_workload = lambda folder: module
	sys.argv = ["run.py", "--rounds", "1", "--most", "1", "made"]
	sys.exit(run.main())
	END
}

workload true true >"$work/out" 2>&1
same 'a command: exit status' 0 $?
workload no-such-program true >"$work/out" 2>&1
same 'a program is missing: exit status' 0 $?
yes 'a program is missing: it is named' grep -q 'made .*no-such-program not installed' "$work/out"
workload true 'echo broken; exit 3' >"$work/out" 2>&1
same 'a command fails: exit status' 1 $?
yes 'a command fails: why' grep -q 'made .*failed: .*exit status 3: broken' "$work/out"
workload 'true' 'echo nothing' figures >"$work/out" 2>&1
same 'no figures: exit status' 1 $?
yes 'no figures: why' grep -q 'made .*failed: no figures .*: nothing' "$work/out"
finish
