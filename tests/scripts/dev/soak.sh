#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/soak.sh - tests/soak.sh: what a seed stands for, and which options it refuses.  Runs no program.
. "$(dirname "$0")/../../lib/judge.inc"

soak=$root/tests/soak.sh

# refuses TEXT ARGUMENT...: exit status 2, nothing on standard output, and a message with TEXT
refuses() {
	local text=$1
	shift
	run "$soak" "$@"
	if [ "$code" -eq 2 ] && [ -z "$out" ] && [[ $err == "soak.sh: "*"$text"* ]]; then
		pass "soak.sh $*"
	else
		fail "soak.sh $*" "exit status $code, standard output <$out>, and not $text: $err"
	fi
}

for hours in x 0 -1 0.0 . 1e3 1.2.3 '' 12345678; do
	refuses "number of hours: '$hours'" --hours "$hours"
done
for number in x -1 1.5 '' 1000000000000000000; do
	refuses "not a number of at most 18 digits: '$number'" --seed "$number"
	refuses "not a number of at most 18 digits: '$number'" --hours 1 --first "$number"
	refuses "not a number of at most 18 digits: '$number'" --seed 1 --times "$number"
done
refuses "not a positive number: '0'" --seed 1 --times 0
refuses "unknown option --sed" --sed 1
refuses "--seed needs a value" --seed
refuses "one of --hours, --seed and --show is needed"
refuses "one of --hours, --seed and --show is needed" --hours 1 --seed 1
refuses "matches --filter 'nothing_*'" --show 1 --filter 'nothing_*'

# What a seed stands for is the same each time, in each locale, and other seeds stand for something else.
choice() {
	"$soak" --show "$@" 2>&1
}

first=$(choice 7)
like "a seed" "seed 7*: * in mode *, number *, load *${newline}env *LD_PRELOAD=*/tests/programs/*" "$first"
same "a seed again" "$first" "$(choice 7)"
same "a seed with zeros before it" "$first" "$(choice 007)"
same "a seed in another locale" "$first" "$(LC_ALL=C.UTF-8 choice 7)"
yes "a seed 32,768 further" [ "${first#*: }" != "$(choice 32775 | sed 's/^seed [^:]*: //')" ]
seen=$(for seed in {1..20} {100000000000000001..100000000000000020}; do choice "$seed" | sed -n 's/^seed [^:]*: //p'; done)
same "40 seeds are 40 choices" 40 "$(sort -u <<<"$seen" | grep -c .)"
like "a seed with a filter" "seed 7*: mutex_* in mode *" "$(choice 7 --filter 'mutex_*')"

if head=$(git -C "$root" rev-parse HEAD 2>/dev/null); then
	same "a seed of this commit" "$first" "$(choice "7@${head:0:8}")"
	refuses "a seed of another commit than this one, ${head:0:12}" --show 7@0123456789
	refuses "not a commit: 'x'" --seed 7@x
else
	refuses "has no git" --seed 7@0123456789
fi
finish
