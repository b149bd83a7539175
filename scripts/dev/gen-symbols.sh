#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/gen-symbols.sh - generates files from preload/symbols.def, topics.def and rungs.def.
#
#	--exports	the version script of libfiberize.so.  It has no named version node,
#			because that would silently disable interposition.
#	--rungs		the manual's explanation of the rungs
#	--calls		the manual's table of the functions that may wait
#	--fresh		the whole manual, with both parts up to date
#	--update	writes the output of --fresh to the manual
#
# The manual has the output of --rungs between the lines .\" rungs begin and .\" rungs end, and the
# output of --calls between .\" calls begin and .\" calls end.
set -eu -o pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."
manual=scripts/package/libfiberize.7

rows()
{
	awk -v tool=gen-symbols -f scripts/dev/symbols.awk preload/topics.def preload/rungs.def preload/symbols.def
}

exports()
{
	rows | awk -F'|' '
		BEGIN { print "{\nglobal:" }
		$1 == "symbol" || $1 == "alias" { print "\t" $3 ";" }
		# libfiberize-preload.so (preload/stub) calls this function.
		END { print "\tfiberize_start;\nlocal: *;\n};" }'
}

rungs()
{
	rows | awk -F'|' '
		$1 == "rung" {
			gsub(/-/, "\\-")
			print ".TP\n.I " $4 "\n" $5 "."
		}'
}

# Prints the manual's table: for each topic, and each rung in it, the names of the functions.
calls()
{
	rows | awk -F'|' '
		$1 == "topic" { topics[++topic_count] = $3; title[$3] = $4; tests[$3] = $5 }
		$1 == "rung" { rungs[++rung_count] = $3; word[$3] = $4 }
		$1 == "symbol" { names[$7, $4] = names[$7, $4] "\n" $3 }
		$1 == "libc" { names[$5, $4] = names[$5, $4] "\n" $3 }
		END {
			for (i = 1; i <= topic_count; i++)
				for (k = 1; k <= rung_count; k++) {
					topic = topics[i]
					if (!((topic, rungs[k]) in names))
						continue
					text = title[topic] "\" \" (" word[rungs[k]]
					if (tests[topic] != "")
						text = text "; tests: " tests[topic]
					gsub(/-/, "\\-", text)
					print ".TP\n.IR \"" text ")\"" names[topic, rungs[k]]
				}
		}'
}

# replace MARK TEXT: prints standard input, with TEXT between the lines of MARK (manual.awk)
replace()
{
	text=$2 awk -v mark="$1" -f scripts/dev/manual.awk ||
		{ echo "gen-symbols: $manual: the marks of the $1 are missing; restore them" >&2; return 1; }
}

fresh()
{
	local rungs calls
	rungs=$(rungs)
	calls=$(calls)
	replace rungs "$rungs" <$manual | replace calls "$calls"
}

case ${1-} in
--exports | --rungs | --calls | --fresh)
	"${1#--}"
	;;
--update)
	text=$(fresh)
	[ "$text" = "$(cat $manual)" ] || printf '%s\n' "$text" >$manual
	;;
*)
	echo "usage: gen-symbols.sh --exports | --rungs | --calls | --fresh | --update" >&2
	exit 2
	;;
esac
