#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/spin.sh [--all] - the Promela models in tests/model/spin/: Spin verifies each property in all
# states, whose number and depth it says, and finds each planted fault; each step of a model on memory that threads
# share has a label, and each label names a line of C that exists, and is the only one with this text.
# --all: runs of millions of states, too (the file `runs`).
# "a && b || c" means what it says here, and words are split on purpose:
# shellcheck disable=SC2013,SC2015,SC2086
. "$(dirname "$0")/../../lib/judge.inc"

case $#${1+$1} in
0|1--all)	;;
*)		echo "spin.sh: unknown option $*" >&2; exit 2 ;;
esac

models=$root/tests/model/spin
cd "$work" || exit 1
grep -v '^#' "$models/transitions" >table
grep -v '^#' "$models/runs" | sed 's/^+//' >all
[ "${1-}" = --all ] && cp all runs || grep -v '^[#+]' "$models/runs" >runs

# Lines of the model $1 that change a variable of C outside of a labelled step.  Read twice: first for the
# variables, which are declared before the comment "Not in C", and for inlines without a label, which are
# part of their caller's step.  Lines with PLANTED are faults.
unlabelled() {
	awk '
	{ code = $0; gsub(/\/\*.*\*\/|\/\*.*/, "", code) }
	FNR == 1 { pass++; inlined = "" }
	pass == 1 && /Not in C/ { own = 1 }
	pass == 1 && !own && /^(bool|byte|short|mtype) / {
		sub(/^[a-z]+ /, "", code)
		n = split(code, names, /[,;]/)
		for (i = 1; i <= n; i++)
			if (match(names[i], /[a-z_]+/))
				shared[substr(names[i], RSTART, RLENGTH)] = 1
	}
	/^(inline|proctype) / { name = $2; sub(/\(.*/, "", name); kind = $1 }
	/^init|^c_decl/ || name == "checker" { kind = "" }
	/^}/ { kind = "" }
	pass == 1 && kind == "inline" && !(name in labelled) { helper[name] = 1 }
	pass == 1 && /^[a-z_]+:/ && kind == "inline" { labelled[name] = 1; delete helper[name] }
	pass == 2 && kind != "" && !(kind == "inline" && name in helper) {
		has = code ~ /^[a-z_]+:/
		changes = 0
		for (v in shared)
			if ((" " code) ~ "[^a-z_.]" v "(\\[[^]]*\\])?( = |\\+\\+|--)")
				changes = 1
		for (v in helper)
			if ((" " code) ~ "[^a-z_]" v "\\(" && code !~ /^inline/)
				changes = 1
		if (changes && !has && !depth && code !~ /PLANTED/)
			print FNR ": " $0
		opens = gsub(/{/, "{", code)
		closes = gsub(/}/, "}", code)
		if (has || depth)
			depth += opens - closes
	}' "$1" "$1"
}

# build MODEL: makes MODEL.pan
build() {
	spin -a "$models/$1.pml" >spin.log 2>&1 && "$CC" -Og -DNFAIR=3 -o "$1.pan" pan.c 2>>spin.log
}

# verify MODEL PROPERTY FAULT VARIABLE=VALUE...
verify() {
	local model=$1 property=$2 fault=$3 number=0 name
	shift 3
	name="$model: $property"
	[ $# -eq 0 ] || name+=", $*"
	if [ "$fault" != - ]; then
		name+=", finds $fault"
		number=$(sed -n "s/^#define FAULT_$fault //p" "$models/$model.pml")
		[ -n "$number" ] || { fail "$name" "the model has no such fault"; return; }
	fi
	env "$@" PLANTED="$number" "./$model.pan" -a -f -m20000 -w20 -N "$property" >log 2>&1
	if grep -q 'max search depth too small\|out of memory\|unknown' log ||
		! grep -q "errors: $([ "$fault" = - ] && echo 0 || echo 1)$" log; then
		fail "$name" "$(grep -m 1 -E 'errors:|pan:' log)"
		cat log
	else
		pass "$name"
		[ "$fault" != - ] || counts "$name" log
	fi
}

# counts NAME LOG: an exhaustive run has seen states, and has been somewhere
counts() {
	local states depth
	states=$(sed -nE 's/^ *([0-9]+) states, stored.*/\1/p' "$2")
	depth=$(sed -nE 's/.*depth reached ([0-9]+), .*/\1/p' "$2")
	if [ "${states:-0}" -gt 0 ] && [ "${depth:-0}" -gt 0 ]; then
		pass "$1: $states states, depth $depth"
	else
		fail "$1: states and depth" "the verifier says of them: $(grep -E 'stored|depth' "$2" | tr -s ' \n' ' ')"
	fi
}

# occurs FILE[:FUNCTION] TEXT: how often the text is in the file, or in the function's definition
occurs() {
	awk -v function_="${1#"${1%%:*}"}" -v text="$2" '
	BEGIN { sub(/^:/, "", function_) }
	/^[a-z_].*\(/ && $0 !~ /;$/ { inside = $0 ~ "[ *]" function_ "\\(" }
	function_ == "" || inside {
		for (rest = $0; at = index(rest, text); rest = substr(rest, at + length(text)))
			n++
	}
	/^}/ { inside = 0 }
	END { print n + 0 }' "$root/${1%%:*}"
}

for model in "$models"/*.pml; do
	name=$(basename "$model" .pml)
	if ! build "$name"; then
		fail "$name" "spin or the compiler refuses it"
		cat spin.log
		continue
	fi
	sed -n "s/^$name //p" runs >mine
	while read -r line; do
		verify "$name" $line
	done <mine
	# Each property is verified, and each fault is planted.
	for property in $(sed -n 's/^ltl \([a-z_]*\) .*/\1/p' "$model"); do
		grep -q "^$name $property -" all || fail "$name: $property" "no line of runs verifies it"
	done
	for fault in $(sed -n 's/^#define FAULT_\([a-z_]*\) .*/\1/p' "$model"); do
		grep -q "^$name [a-z_]* $fault\( \|$\)" all || fail "$name: $fault" "no line of runs plants it"
	done
	unlabelled "$model" >steps
	same "$name: each step has a label" "" "$(cat steps)"
	# Each label of a transition is in the table.
	for label in $(sed -nE 's/^([a-z_]+):.*/\1/p' "$model" | grep -v '^end$' | sort -u); do
		grep -q "^$name $label " table && pass "$name: $label has a line of C" ||
			fail "$name: $label has a line of C" "it is not in the table"
	done
done

while read -r name label file line; do
	if ! grep -qE "^$label:" "$models/$name.pml"; then
		fail "$name $label" "the model has no such label"
		continue
	fi
	file=${file%:}
	times=$(occurs "$file" "$line")
	if [ "$times" = 1 ]; then
		pass "$name $label: its line is in $file"
	else
		fail "$name $label" "$file has it $times times, not once: $line"
	fi
done <table

# What counts lines is right, and what is refused.
printf 'int f(int a)\n{\n\treturn a + a;\n}\nstatic int *g(void)\n{\n\treturn a;\n}\n' >"$work/counted.c"
root_of_models=$root root=$work
same "texts in a file" "5 0" "$(occurs counted.c a) $(occurs counted.c z)"
same "texts in functions" "3 1 0" "$(occurs counted.c:f a) $(occurs counted.c:g 'return a') $(occurs counted.c:h a)"
root=$root_of_models
for option in --al '' '--all --all'; do
	# shellcheck disable=SC2086
	run "$root/tests/scripts/dev/spin.sh" ${option:-''}
	same "spin.sh ${option:-with an empty option}" "2 spin.sh: unknown option $option" "$code $out$err"
done
finish
