#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-lists.sh - checks that lists in documentation agree with the source:
#
#  1 libfiberize(7), PROBES: the numbers of enum fz_waits_for, with the words of FZ_WAIT
#    (runtime/inspect/fields.def), and of enum fz_why and enum fz_left, with the constants' names
#  2 runtime/DESIGN.md, Locks: the ranks of FZ_RANKS (runtime/base/lock.h), in their order
#  3 the profiles that are shipped: their figures are those of scripts/bench/FIGURES.md, for every workload of the
#    program, and a program is on only if it gains in one and is slower in none; if it is on, a line names the
#    workloads in which its p99 was longer
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

# A section has the lines of comment above it; sections without a comment between them share these.
awk '
	function fail(what, where)
	{
		print "check-lists: " (where == "" ? FILENAME ":" FNR : where) ": " what
		bad = 1
	}
	# The verdict on a cell such as "1.53 (1.44..1.64)", as in scripts/bench/verdict.awk.
	function verdict(cell, more_is_better,	number)
	{
		gsub(/[()]|\.\./, " ", cell)
		split(cell, number, " ")
		if ((number[2] > 1 || number[3] < 1) && (number[1] < 0.98 || number[1] > 1.02))
			return (number[2] > 1) == more_is_better ? "faster" : "slower"
		return "-"
	}
	function stem(workload)
	{
		sub(/_.*/, "", workload)
		return workload
	}
	# Is the line there that warns of a longer p99, exactly if one was longer?
	function check_latency(	longer, i)
	{
		for (i = 1; i <= workloads; i++)
			if (order[i] in named && p99[order[i]] > 1.02)
				longer = longer (longer == "" ? "" : ", ") order[i]
		longer = longer == "" ? "" : "# p99 was longer in " longer ": measure that of yours."
		if (longer != warning)
			fail("[" section "] is on; " (longer == "" ? "remove the line on p99" : "write: " longer), place)
	}
	function section_ends(	workload, gains, loses, names)
	{
		if (section == "")
			return
		if (on == "")
			fail("[" section "] has no line everywhere = 0 or 1; add it", place)
		for (workload in named) {
			names = 1
			gains += is[workload] ~ /faster/
			loses += is[workload] ~ /slower/
			if (index(section, stem(workload)) != 1)
				fail("[" section "] has " workload ", and that is a workload of another program; remove its figures", place)
		}
		for (workload in text)
			if (index(section, stem(workload)) == 1 && !(workload in named))
				fail("[" section "] says nothing of " workload "; add # " workload ": " text[workload], place)
		if (!names && !none)
			fail("[" section "] has no figures; add them, or say # no figures: WHY", place)
		if (on == 1 && (!gains || loses))
			fail("[" section "] is on, although it " (loses ? "is slower" : "gains nothing"), place)
		else if (on == 1)
			check_latency()
		section = on = ""
		sections++
	}
	FILENAME ~ /FIGURES\.md$/ {
		if (/^\| workload \| operations\/s \|/)
			in_table = 1
		else if (!/^\|/)
			in_table = 0
		else if (in_table && !/^\| ---/) {
			split($0, cell, / *\| */)
			text[cell[2]] = "operations/s " cell[3] ", CPU/operation " cell[4] (cell[5] == "" ? "" : ", p99 " cell[5])
			is[cell[2]] = verdict(cell[3], 1) " " verdict(cell[4], 0)
			order[++workloads] = cell[2]
			p99[cell[2]] = cell[5]
		}
		next
	}
	FNR == 1 {
		section_ends()
		if (file && !sections)
			fail("the profiles before it have no section")
		file++
		split("", named)
		warning = ""
		none = sections = 0
	}
	{ sub(/^ +/, "") }
	/^#/ {
		if (section != "") {
			section_ends()
			split("", named)
			warning = ""
			none = 0
		}
		if (/^# p99 was longer in /)
			warning = $0
		none += /^# no figures: ./
		if (match($0, /^# [a-z_0-9]+: operations\/s /)) {
			workload = $2
			sub(/:$/, "", workload)
			wanted = workload in text ? "# " workload ": " text[workload] : ""
			if (wanted == "")
				fail("scripts/bench/FIGURES.md has no workload " workload)
			else if ($0 != wanted)
				fail("is not what scripts/bench/FIGURES.md has; write: " wanted)
			named[workload]
		} else if (/[0-9]\.\.[0-9]/)
			fail("is a figure in another form than # WORKLOAD: operations/s ...; correct it")
	}
	/^\[/ {
		section_ends()
		section = substr($0, 2, length($0) - 2)
		place = FILENAME ":" FNR
	}
	/^everywhere = [01]$/ { on = $3 }
	END {
		section_ends()
		if (!bad && (!workloads || !sections || file != 2))
			fail("there must be a table of workloads and two files of profiles; restore them")
		exit bad
	}' scripts/bench/FIGURES.md scripts/package/profiles.conf scripts/kubernetes/profiles.yaml || found=1

exit $found
