#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-lists.sh - checks that lists in documentation agree with the source:
#
#  1 libfiberize(7), PROBES: the numbers of enum fz_waits_for, with the words of FZ_WAIT
#    (runtime/inspect/fields.def), and of enum fz_why and enum fz_left, with the constants' names
#  2 runtime/DESIGN.md, Locks: the ranks of FZ_RANKS (runtime/base/lock.h), in their order
#
# Prints nothing if all is well; otherwise one line for each finding, and exits with 1.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
found=0

awk '
	function fail(where, what)
	{
		print "check-lists: " where ": " what
		bad = 1
	}
	function list_of(kind,	i, count, constant, word, text)
	{
		count = split(constants[kind], constant, " ")
		for (i = 1; i <= count; i++) {
			word = constant[i]
			sub(/^FZ_[A-Z]+_/, "", word)
			word = tolower(word)
			gsub(/_/, " ", word)
			if (constant[i] in words)
				word = words[constant[i]]
			else if (kind == "fz_waits_for" && word != "request")
				fail(fields, "has no FZ_WAIT with " constant[i] "; add it")
			text = text (i > 1 ? ", " : "") i - 1 " " word
		}
		return text "."
	}
	FNR == 1 { kind = label = "" }
	/^FZ_WAIT\(/ {
		fields = FILENAME
		split($0, column, /[(,] */)
		split($0, part, "\"")
		words[column[3]] = part[2]
	}
	/^enum fz_(waits_for|why|left) \{/ { kind = $2 }
	/^}/ { kind = "" }
	kind != "" && /^\tFZ_[A-Z_]+,/ {
		sub(/,.*/, "")
		constants[kind] = constants[kind] " " $1
	}
	FILENAME ~ /\.7$/ && /^(what|why|how the first was left): [0-9]/ {
		label = $0
		sub(/:.*/, "", label)
		line = FNR
		text = ""
	}
	label != "" {
		text = text (text == "" ? "" : " ") $0
		if (!/\.$/)
			next
		wanted = label ": " list_of(label == "what" ? "fz_waits_for" : label == "why" ? "fz_why" : "fz_left")
		if (text != wanted)
			fail(FILENAME ":" line, "is not what the source has; write: " wanted)
		label = ""
		lists++
	}
	END {
		if (!bad && lists != 3)
			fail(FILENAME, "PROBES must have three lists, \"what: 0 ...\", \"why: 0 ...\" and " \
				"\"how the first was left: 0 ...\", each with a full stop at its end; restore them")
		exit bad
	}' runtime/sched/park.h runtime/sched/carrier.h runtime/inspect/fields.def scripts/package/libfiberize.7 || found=1

awk '
	function fail(what)
	{
		print "check-lists: " FILENAME ":" FNR ": " what ", as FZ_RANKS of runtime/base/lock.h"
		bad = 1
		exit 1
	}
	/^\tRANK\(/ {
		rank = tolower($1)
		gsub(/^rank\(|\).*/, "", rank)
		gsub(/_/, " ", rank)
		ranks[++count] = rank
	}
	/^\| rank \|/ { in_table = 1; next }
	!in_table || /^\| ---/ { next }
	!/^\|/ {
		in_table = 0
		if (at < count)
			fail("the table ends without the rank \"" ranks[at + 1] "\"; add it")
		next
	}
	{
		split(tolower($0), cell, / *\| */)
		# Several locks may have one rank.
		if (at && cell[2] == ranks[at])
			next
		if (cell[2] != ranks[++at])
			fail("the table has the rank \"" cell[2] "\" where \"" ranks[at] "\" must be; correct it")
	}
	END {
		if (!bad && !at) {
			print "check-lists: " FILENAME ": has no table of ranks; restore it"
			exit 1
		}
		exit bad
	}' runtime/base/lock.h runtime/DESIGN.md || found=1

exit $found
