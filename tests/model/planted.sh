#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/planted.sh [--write] [NAME...] - is each planted fault found?  Builds the explorer with one patch
# of tests/model/planted/ after the other, in a copy of the sources, and lets it explore the scenario
# that the patch names.  For each: found or not, how, after how many runs and how much CPU time, seed.
# --write: makes a page of it, tests/model/PLANTED.md, if all of them were found; takes no NAME.  Commit first, for the
# page names the commit.  Each change of the sources, a new scenario too, changes all seeds.
# Exit status 0 if all were found, 1 if not or if a patch cannot be tried, 2 if a NAME is no patch there.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
copy=$root/build/tests/planted
page=$root/tests/model/PLANTED.md
write=
build=build/tests/model
missed=0 found=0
commit=$(git -C "$root" describe --always --dirty 2>/dev/null) || commit='an unknown commit'

if [ "${1-}" = --write ]; then
	write=yes
	shift
	[ $# -eq 0 ] || { echo "planted.sh: --write takes no name: the page has all planted faults" >&2; exit 2; }
fi
unknown=
for name; do
	case $name in
	*[!a-z0-9-]* | '')	;;
	*)	[ ! -e "$root/tests/model/planted/$name.patch" ] || continue ;;
	esac
	unknown="$unknown${unknown:+, }'$name'"
done
if [ -n "$unknown" ]; then
	echo "planted.sh: no such patch in tests/model/planted: $unknown" >&2
	exit 2
fi

make -s -C "$root" "$root/$build/explore" 2>/dev/null || make -s -C "$root" "$build/explore"
rm -rf "$copy"
mkdir -p "$copy/build/tests"
cd "$root"
cp -a Makefile arch runtime "$copy"
mkdir "$copy/tests" "$copy/tests/fuzz"
cp -a tests/fuzz/build.mk "$copy/tests/fuzz"
cp -a tests/model "$copy/tests"
cp -a "$build" "$copy/build/tests"
cd "$copy"

# explore RUNS SCENARIO [OPTION...]: the first that finds it, of: every run with one deviation, RUNS by PCT, RUNS at random, the
# same with plain accesses, every run with two.
explore()
{
	runs=$1
	shift
	for how in "--exhaustive --bound 1" "--pct $runs" "--random $runs" "--plain --pct $runs" \
		"--plain --random $runs" "--exhaustive --bound 2 --seconds 60"; do
		# shellcheck disable=SC2086 # words
		$build/explore $how "$@" >out 2>&1 || return 0
	done
	return 1
}

for patch in tests/model/planted/*.patch; do
	name=$(basename "$patch" .patch)
	case " ${*:-$name} " in
	*" $name "*) ;;
	*) continue ;;
	esac
	finder=$(sed -n 's/^Found-by: //p' "$patch")
	most=20000
	case $finder in
	*' --runs '*)
		most=${finder##*--runs }
		finder=${finder%% --runs*}
		case $most in
		*[!0-9]* | '')	echo "planted.sh: $patch: --runs '$most': must be a number" >&2; exit 1 ;;
		esac ;;
	esac
	if ! patch -s -N -p1 -F 0 <"$patch" >out 2>&1; then
		cat out >&2
		echo "planted.sh: $patch does not apply: make it again from these sources" >&2
		exit 1
	fi
	# What reaches around the model has been looked for in the sources without the fault.
	if ! make -s WARN= REACH=: "$build/explore"; then
		echo "planted.sh: with $patch the explorer cannot be built" >&2
		exit 1
	fi
	# shellcheck disable=SC2086 # words
	if explore "$most" $finder && grep -q '^FAILED' out; then
		found=$((found + 1))
		what=$(sed -n 's/^What: //p' "$patch" | sed 's/|/\&#124;/g')
		awk -v name="$name" -v what="$what" -v finder="$finder" '
			/ runs / { runs = $3; took = $5 }
			/^FAILED/ { how = $0; sub(/^FAILED [^:]*: /, "", how) }
			/^   seed:/ {
				if (runs == "") {
					runs = "<300"
					took = "0.0"
				}
				printf "%-24s %7s runs %6s s  %s; %s\n", name, runs, took, how, $2
				printf "| `%s` | %s | %s | %s | %s | `%s` |\n", name, what, finder, runs, took, $2 >"row"
				exit
			}' out
		cat row >>page
	else
		missed=$((missed + 1))
		echo "$name: NOT FOUND by $finder"
		cp out "out.$name"
	fi
	patch -s -R -p1 <"$patch"
done
echo "$found found, $missed not"
[ "$missed" -eq 0 ]
[ -z "$write" ] || {
	cat <<-END
	# The planted faults

	\`tests/model/planted.sh --write\` makes this page: each fault of \`planted/\`, the scenario that finds it, after how many runs
	and how much CPU time of the way that found it, and the seed of the run. A seed holds for the sources with the fault; these are
	those of $commit.
	To run one again: check that out, apply the patch (\`patch -p1\`), \`make model\`, and \`tests/model/replay SEED\`.
	Tried in this order, until one finds it: all runs with one deviation, 20,000 by PCT, 20,000 at random (or as many of each as
	the patch says), the same two with plain accesses as points, all runs with two deviations for 60 s. All $found are found.

	| fault | what | found by | runs | CPU s | seed |
	| --- | --- | --- | --- | --- | --- |
	END
	cat page
} >"$page"
