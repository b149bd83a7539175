#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/spin.sh [--all] - the Promela models in tests/model/spin/: Spin verifies each property in all
# states, and finds each planted fault; each step of a model on memory that threads share has a label,
# and each label names a line of C that exists.  --all: runs of millions of states, too (the file `runs`).
# "a && b || c" means what it says here, and words are split on purpose:
# shellcheck disable=SC2013,SC2015,SC2086
. "$(dirname "$0")/../../lib/judge.inc"

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
	fi
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
	elif grep -qF -- "$line" "$root/${file%:}"; then
		pass "$name $label: its line is in ${file%:}"
	else
		fail "$name $label" "${file%:} does not have the line: $line"
	fi
done <table
finish
