#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/soak.sh - tests/soak.sh: what a seed stands for, and which options it refuses, and
# which builds; what it runs are programs of three lines.
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

if ! git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
	refuses "has no git" --seed 7@0123456789
fi
refuses "not a commit: 'x'" --seed 7@x

# In a repository of its own, with a Makefile and programs that are quick.
other=$work/other
made=$other/build
soak=$other/tests/soak.sh
unset FZ_BUILD
mkdir -p "$other/tests/lib" "$other/runtime/base" "$made/libexec" "$made/checked" "$made/tests/programs" \
	"$made/tests/helpers"
cp "$root/tests/soak.sh" "$other/tests"
cp "$root/tests/lib/modes.inc" "$other/tests/lib"
cp "$root/runtime/base/options.def" "$other/runtime/base"
cp "$watch" "$made/tests/helpers"
: >"$other/library.c"
printf '/build\n' >"$other/.gitignore"
printf '$(B)/libfiberize.so: library.c\n\tfalse\n' >"$other/Makefile"
for name in quick_one quick_two; do
	printf '#!/bin/sh\necho EXIT-SUCCESS\n' >"$made/tests/programs/$name"
done
chmod +x "$made/tests/programs"/*
must "$CC" -shared -o "$made/libfiberize.so" -x c "$other/library.c"
must cp "$made/libfiberize.so" "$made/checked"

# at_commit ARGUMENT...: git there
at_commit() {
	git -C "$other" -c user.name=fz -c user.email=fz -c commit.gpgsign=false "$@" >/dev/null 2>&1
}

# says_built WORDS: what the build says of itself
says_built() {
	echo "$*" >"$made/libexec/commit"
}

need git make
must at_commit init
must at_commit add -A
must at_commit commit -m one
first=$(git -C "$other" rev-parse HEAD)
says_built "${first:0:8}"
prints "a seed of this commit" "$("$soak" --show 7)" "$soak" --show "7@${first:0:8}"
refuses "a seed of another commit than this one, ${first:0:12}" --show 7@0123456789
run "$soak" --seed "7@$first"
like "a seed of this commit is run" "1 passed, 0 failed, next seed 8" "$out$err"
says_built "${first:0:8}, modified"
refuses "says that it is of ${first:0:8}, modified" --seed "7@$first"
says_built unknown
refuses "says that it is of unknown" --seed "7@$first"
rm "$made/libexec/commit"
refuses "says that it is of no commit" --seed "7@$first"
must at_commit commit --allow-empty -m two
second=$(git -C "$other" rev-parse HEAD)
says_built "${first:0:8}"
refuses "says that it is of ${first:0:8}" --seed "7@$second"
says_built "${second:0:8}"
refuses "a seed of another commit than this one, ${second:0:12}" --seed "7@$first"
echo '# changed' >>"$other/Makefile"
refuses "a file has been changed since" --seed "7@$second"
must at_commit checkout Makefile
touch -d '1 hour ago' "$made/checked/libfiberize.so" "$other/library.c"
touch -d '2 hours ago' "$made/libfiberize.so"
refuses "$made/libfiberize.so is older than its sources" --seed "7@$second"
touch "$made/libfiberize.so"
touch -d '2 hours ago' "$made/checked/libfiberize.so"
refuses "$made/checked/libfiberize.so is older than its sources" --seed "7@$second"

# --show writes nothing.
mkdir "$work/temporary"
rm -rf "$made/tests/failures"
TMPDIR=$work/temporary "$soak" --show 7 >/dev/null
same "--show writes nothing" "" "$(ls "$work/temporary" "$made/tests" | grep -E 'soak|failures')"
TMPDIR=$work/nowhere prints "--show needs no place to write" "$("$soak" --show 7)" "$soak" --show 7

# After the largest seed comes the least.
run "$soak" --hours 0.0001 --first 999999999999999999
if [[ $out =~ ^([0-9]+)\ passed,\ 0\ failed,\ next\ seed\ ([0-9]+)$ ]]; then
	same "the seeds after the largest" "$((BASH_REMATCH[1] - 1))" "${BASH_REMATCH[2]}"
else
	fail "the seeds after the largest" "$out$err"
fi
finish
