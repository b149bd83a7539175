#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/soak.sh - tests/soak.sh: what a seed stands for, and which options it refuses, and
# which builds; what it runs are programs of three lines.
. "$(dirname "$0")/../../lib/judge.inc"

soak=$root/tests/soak.sh

# refuses_options TEXT ARGUMENT...: soak.sh refuses them, and says TEXT
refuses_options() {
	local text=$1
	shift
	refuses soak.sh "soak.sh $*" "$text" "$soak" "$@"
}

for hours in x 0 -1 0.0 . 1e3 1.2.3 '' 12345678; do
	refuses_options "number of hours: '$hours'" --hours "$hours"
done
for number in x -1 1.5 '' 1000000000000000000; do
	refuses_options "not a number of at most 18 digits: '$number'" --seed "$number"
	refuses_options "not a number of at most 18 digits: '$number'" --hours 1 --first "$number"
	refuses_options "not a number of at most 18 digits: '$number'" --seed 1 --times "$number"
done
refuses_options "not a positive number: '0'" --seed 1 --times 0
refuses_options "unknown option --sed" --sed 1
refuses_options "--seed needs a value" --seed
refuses_options "one of --hours, --seed and --show is needed"
refuses_options "one of --hours, --seed and --show is needed" --hours 1 --seed 1
refuses_options "matches --filter 'nothing_*'" --show 1 --filter 'nothing_*'

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
	refuses_options "has no git" --seed 7@0123456789
fi
refuses_options "not a commit: 'x'" --seed 7@x

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
printf '%s: library.c\n\tfalse\n' "\$(B)/libfiberize.so" >"$other/Makefile"
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
refuses_options "a seed of another commit than this one, ${first:0:12}" --show 7@0123456789
run "$soak" --seed "7@$first"
like "a seed of this commit is run" "1 passed, 0 failed, next seed 8" "$out$err"
says_built "${first:0:8}, modified"
refuses_options "says that it is of ${first:0:8}, modified" --seed "7@$first"
says_built unknown
refuses_options "says that it is of unknown" --seed "7@$first"
rm "$made/libexec/commit"
refuses_options "says that it is of no commit" --seed "7@$first"
must at_commit commit --allow-empty -m two
second=$(git -C "$other" rev-parse HEAD)
says_built "${first:0:8}"
refuses_options "says that it is of ${first:0:8}" --seed "7@$second"
says_built "${second:0:8}"
refuses_options "a seed of another commit than this one, ${second:0:12}" --seed "7@$first"
echo '# changed' >>"$other/Makefile"
refuses_options "a file has been changed since" --seed "7@$second"
must at_commit checkout Makefile
touch -d '1 hour ago' "$made/checked/libfiberize.so" "$other/library.c"
touch -d '2 hours ago' "$made/libfiberize.so"
refuses_options "$made/libfiberize.so is older than its sources" --seed "7@$second"
touch "$made/libfiberize.so"
touch -d '2 hours ago' "$made/checked/libfiberize.so"
refuses_options "$made/checked/libfiberize.so is older than its sources" --seed "7@$second"

# --show writes nothing.
mkdir "$work/temporary"
rm -rf "$made/tests/failures"
TMPDIR=$work/temporary "$soak" --show 7 >/dev/null
same "--show writes nothing" "" "$(find "$work/temporary" "$made/tests" -mindepth 1 \( -name 'fz-*' -o -name failures \))"
TMPDIR=$work/nowhere prints "--show needs no place to write" "$("$soak" --show 7)" "$soak" --show 7

# A program that looks how soon an answer comes bears no fault that makes it late.
cp "$made/tests/programs/quick_one" "$made/tests/programs/accept_there"
# seed_with FAULT: the first seed that has it
seed_with() {
	local number
	for number in {1..400}; do
		case $("$soak" --show "$number" --filter accept_there) in
		*"FZ_FAULTS=$1:"*)	echo "$number"; return ;;
		esac
	done
}
late=$(seed_with late_submit)
run "$soak" --seed "$late" --filter accept_there
like "a fault that a program does not bear" "seed $late cannot be run here: accept_there in *" "$out"
borne=$(seed_with deny_kick)
run "$soak" --seed "$borne" --filter accept_there
same "another fault" "1 passed, 0 failed, next seed $((borne + 1))" "$out$err"
must rm "$made/tests/programs/accept_there"

# After the largest seed comes the least.
run "$soak" --hours 0.0001 --first 999999999999999999
if [[ $out =~ ^([0-9]+)\ passed,\ 0\ failed,\ next\ seed\ ([0-9]+)$ ]]; then
	same "the seeds after the largest" "$((BASH_REMATCH[1] - 1))" "${BASH_REMATCH[2]}"
else
	fail "the seeds after the largest" "$out$err"
fi

# ---- by rr, for which something stands in that notes its arguments, and runs the program
mkdir "$work/bin"
cat >"$work/bin/rr" <<-'END'
	#!/bin/bash
	echo "$*" >>"$NOTED"
	[ "$1 $2" = "record --chaos" ] || exit 99
	shift 2
	while [[ $1 == --* ]]; do
		case $1 in
		--env=*)	export "${1#--env=}" ;;
		--output-trace-dir=*)	mkdir "${1#*=}" && : >"${1#*=}/version" || exit 98 ;;
		*)		exit 97 ;;
		esac
		shift
	done
	[ -z "${RR_LOG_FILE-}" ] || echo "a warning" >"$RR_LOG_FILE"
	exec "$@"
END
cat >"$made/tests/programs/chaotic" <<-'END'
	#!/bin/sh
	[ -z "${LD_PRELOAD-}" ] || exit 5
END
chmod +x "$work/bin/rr" "$made/tests/programs/chaotic"
export NOTED=$work/noted
failures=$made/tests/failures

run "$soak" --show 7 --chaos
shown=$out
like "--show of a chaotic seed" \
	"seed 7+chaos@*: * in mode *[1-8], number *${newline}rr record --chaos --env=* $made/tests/programs/*" "$shown"
prints "a seed says that it is chaotic" "$shown" "$soak" --show 7+chaos
modes=$(for seed in {1..40}; do "$soak" --show "$seed" --chaos | sed -nE 's/.* in mode ([a-z]*).*/\1/p'; done | sort -u)
same "the modes of chaotic seeds" "epoll old" "${modes//$newline/ }"
yes "--show needs no rr" [ ! -e "$NOTED" ]

PATH=$work/bin:$PATH
run "$soak" --seed 7 --times 2 --chaos --filter 'quick_*'
same "two runs by rr" "2 passed, 0 failed, next seed 8+chaos" "$out$err"
same "rr is tried once, and records each run with fibers" "1 true 2 quick" \
	"$(sed -E 's/.*[ /](true|quick)[^ ]*$/\1/' "$NOTED" | uniq -c | xargs)"
same "what rr gets" "$("$soak" --show 7+chaos --filter 'quick_*' | tail -n 1)" \
	"$(tail -n 1 "$NOTED" | sed -E 's/^/rr /; s/ --output-trace-dir=[^ ]*//')"
yes "a run that passes leaves no trace" [ -z "$(find "$failures" -name '*.rr')" ]
run "$soak" --first 7+chaos --hours 0.0001 --filter chaotic
like "a run by rr that fails" \
	"FAIL seed 7+chaos: chaotic *: exit status 5; see build/*/soak.7+chaos.log and build/*/soak.7+chaos.rr*" \
	"$out"
yes "it leaves rr's trace" [ -e "$failures/soak.7+chaos.rr/version" ]
has "the log says where the trace is" "$failures/soak.7+chaos.log" "^rr's trace: build/tests/failures/soak.7+chaos.rr$"
has "the log has rr's log" "$failures/soak.7+chaos.log" '^a warning$'
has "the log says how to run it again" "$failures/soak.7+chaos.log" '^again: .* --seed 7+chaos@'

printf '#!/bin/sh\necho "%s" >&2\necho more >&2\nexit 1\n' \
	"[FATAL ./src/PerfCounters.cc:224:start_counter() errno: ENOENT] Unable to open performance counter" >"$work/bin/rr"
refuses_options "--chaos: rr cannot record here: Unable to open performance counter" --seed 7+chaos
same "one line" 1 "$(wc -l <"$work/err")"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/rr"
refuses_options "--chaos: rr cannot record here: it does not say why" --hours 1 --chaos
rm "$work/bin/rr"
if command -v rr >/dev/null; then
	skip "without rr" "there is one"
else
	refuses_options "--chaos: rr is missing" --seed 7 --chaos
fi
refuses_options "not a number of at most 18 digits: ''" --seed +chaos
finish
