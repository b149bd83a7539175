#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-sizes.sh - checks sizes in arch, runtime, preload and scripts.  A file has at most 450
# lines, not counting the rows of a table (FZ_SYMBOL(...)).  A function in C, Python or shell has at most 60
# lines; a switch counts as its longest case, and a here-document in a shell script does not count.  The
# README.md of a room has at most 12 lines.
#
# Prints nothing if all is well; otherwise one line for each finding, and exits with 1.
set -u
export LC_ALL=C
shopt -s globstar nullglob
cd "$(dirname "$0")/../.." || exit 2

found=0
finding()
{
	echo "check-sizes: $*"
	found=1
}

code=() python=()
for file in {arch,runtime,preload,scripts}/**/*; do
	case $file in
	*.[ch]|*.sh|*.inc|scripts/fiberize)	code+=("$file") ;;
	*.py)	python+=("$file") ;;
	*.S|*.def|*.awk)	;;
	*)	continue ;;
	esac
	# Count all lines but the rows of a table.
	lines=$(grep -cvE '^FZ_[A-Z]+\(.*\)$' "$file")
	[ "$lines" -le 450 ] || finding "$file: has $lines lines, 450 are enough: divide it"
done

for file in {arch,runtime,preload,scripts,tests}/**/README.md; do
	lines=$(wc -l <"$file")
	[ "$lines" -le 12 ] || finding "$file: has $lines lines, 12 are enough for the head of a room: move the rest to a page of its own"
done

# A switch that is not nested in another block counts as its longest case.
awk '
	FNR == 1 { open = 0; until = "" }
	until != "" {
		skipped++
		if ($1 == until)
			until = ""
		next
	}
	/^\{/ || /^[^ \t#*\/].*\)[ \t]*\{$/ {
		open = FNR
		skipped = in_switch = 0
		next
	}
	!open { next }
	/<<-?[ ]*.?[A-Z]+/ && FILENAME !~ /\.[ch]$/ {
		match($0, /<<-?[ ]*.?[A-Z]+/)
		until = substr($0, RSTART, RLENGTH)
		gsub(/[^A-Z]/, "", until)
		next
	}
	/^}/ {
		lines = FNR - open - 1 - skipped
		if (lines > 60) {
			print "check-sizes: " FILENAME ":" open ": a function of " lines \
				" lines, 60 are enough: divide it"
			bad = 1
		}
		open = 0
		next
	}
	/^\tswitch \(/ {
		in_switch = FNR
		label = FNR
		longest = 0
		next
	}
	in_switch && /^\t(case |default:|})/ {
		if (FNR - label > longest)
			longest = FNR - label
		label = FNR
		if (/^\t}/) {
			skipped += FNR - in_switch - longest
			in_switch = 0
		}
	}
	END { exit bad }' "${code[@]}" || found=1

# In Python a function ends before the next line that is not indented more than its "def".
awk '
	function end_of_function()
	{
		if (open && last - open > 60) {
			print "check-sizes: " file ":" open ": a function of " last - open " lines, 60 are enough: divide it"
			bad = 1
		}
		open = 0
	}
	FNR == 1 {
		end_of_function()
		file = FILENAME
	}
	/^[ \t]*$/ { next }
	{ match($0, /^[ \t]*/) }
	open && RLENGTH <= depth { end_of_function() }
	/^[ \t]*(async )?def / && !open {
		open = FNR
		depth = RLENGTH
	}
	{ last = FNR }
	END {
		end_of_function()
		exit bad
	}' "${python[@]}" || found=1

exit $found
