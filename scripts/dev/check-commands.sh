#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-commands.sh - checks that fiberize(1) describes each option of
# scripts/inspect/commands.def: in the synopsis of its command, and in a section with the command's
# name; and that the synopsis has no other options.
#
# Prints nothing if all is well; otherwise one line for each finding, and exits with 1.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2

awk '
	function told(place, name) { return index(place, "--" name " ") }
	FILENAME ~ /commands\.def$/ {
		if (!/^FZ_(COMMAND|OPTION)\(/)
			next
		split($0, f, /[(,] */)
		if (f[1] == "FZ_COMMAND") {
			commands[f[2]] = FNR
		} else {
			options[f[2], f[3]] = FNR
			where = FILENAME
		}
		next
	}
	# Collect the text of the page, with one blank after each word.
	/^\.SH / {
		section = substr($0, 5)
		command = ""
		next
	}
	{
		line = $0
		gsub(/\\f[A-Z]/, "", line)
		gsub(/\\-/, "-", line)
	}
	section == "SYNOPSIS" && /^\.B fiberize [a-z]/ { command = $3 }
	section == "SYNOPSIS" && /^\.PP/ { command = "" }
	section == "SYNOPSIS" && command {
		while (match(line, /--[a-z-]+/)) {
			synopsis[command] = synopsis[command] substr(line, RSTART, RLENGTH) " "
			if ((command in commands) && !((command, substr(line, RSTART + 2, RLENGTH - 2)) in options)) {
				print "check-commands: " FILENAME ":" FNR ": fiberize " command " has no " \
					substr(line, RSTART, RLENGTH) "; delete it, or add its line to " where
				bad = 1
			}
			line = substr(line, RSTART + RLENGTH)
		}
		next
	}
	{
		gsub(/[^A-Za-z0-9-]/, " ", line)
		text[section] = text[section] line " "
	}
	END {
		for (key in options) {
			split(key, part, SUBSEP)
			option = part[2]
			gsub(/_/, "-", option)
			missing = told(synopsis[part[1]], option) ? "" : "the synopsis"
			found = 0
			for (name in text)
				if ((" " name " ") ~ (" " toupper(part[1]) " "))
					found += told(text[name], option) > 0
			if (!found)
				missing = missing (missing ? " and " : "") "the section " toupper(part[1])
			if (missing) {
				print "check-commands: " where ":" options[key] ": " FILENAME " does not have --" \
					option " of fiberize " part[1] " in " missing "; describe it there"
				bad = 1
			}
		}
		exit bad
	}' scripts/inspect/commands.def scripts/package/fiberize.1
