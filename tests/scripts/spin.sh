#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/spin.sh - the Promela models in tests/model/spin/: Spin verifies each property in all
# states, and each transition of a model names a line of C that exists.
# "a && b || c" means what it says here, and words are split on purpose:
# shellcheck disable=SC2013,SC2015
. "$(dirname "$0")/../lib/judge.inc"

models=$root/tests/model/spin
cd "$work" || exit 1

for model in "$models"/*.pml; do
	name=$(basename "$model" .pml)
	if ! spin -a "$model" >spin.log 2>&1 || ! "$CC" -O2 -DNFAIR=3 -o pan pan.c 2>>spin.log; then
		fail "$name" "spin or the compiler refuses it"
		cat spin.log
		continue
	fi
	sed -n 's/^ltl \([a-z_]*\) .*/\1/p' "$model" >properties
	while read -r property; do
		./pan -a -f -m1000000 -N "$property" >log 2>&1
		if grep -q 'errors: 0$' log && ! grep -q 'max search depth too small' log; then
			pass "$name: $property"
		else
			fail "$name: $property" "$(grep -m 1 -E 'errors:|pan:' log)"
			cat log
		fi
	done <properties
	# Each label of a transition is in the table.
	sed -nE 's/^([a-z_]+):.*/\1/p' "$model" | grep -v '^end$' >labels
	while read -r label; do
		if grep -q "^$name $label " "$models/transitions"; then
			pass "$name: $label has a line of C"
		else
			fail "$name: $label has a line of C" "it is not in the table"
		fi
	done <labels
done

grep -v '^#' "$models/transitions" >table
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
