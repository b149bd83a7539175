#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/gen-options.sh - what is generated from runtime/base/options.def.
#
#	--man		the man page's list
#	--sh		the launcher's table: one option per line, fields separated
#			by |: flag env type min max argument allowed help;
#			min holds the words of an option that has some
#	--launcher VERSION	scripts/fiberize with that table and the version in it,
#			which is what gets built and installed
#	--check		the man page is up to date; else exit 1
#	--update	make it so
#
# The man page holds its list between the lines
#	.\" options begin and .\" options end
set -u

here=$(dirname -- "$(readlink -f -- "$0")")
root=$(dirname -- "$(dirname -- "$here")")
def=$root/runtime/base/options.def
launcher=$root/scripts/fiberize
manual=$root/scripts/package/fiberize.1

die()
{
	printf 'gen-options.sh: %s\n' "$*" >&2
	exit 1
}

[ -r "$def" ] || die "$def: cannot be read"

# generate FORMAT: one pass over the list, with everything that could make the
# outputs disagree with the C parser refused here.
generate()
{
	awk -v format="$1" '
	function fail(why)
	{
		print "gen-options.sh: options.def:" NR ": " why >"/dev/stderr"
		failed = 1
		exit 1
	}

	function human(bytes)
	{
		if (bytes % 1073741824 == 0)
			return bytes / 1073741824 "g"
		if (bytes % 1048576 == 0)
			return bytes / 1048576 "m"
		if (bytes % 1024 == 0)
			return bytes / 1024 "k"
		return bytes ""
	}

	function roff(text)
	{
		gsub(/-/, "\\-", text)
		return text
	}

	/^FZ_(LAUNCHER_|WORDS_)?OPTION\(/ {
		if (!match($0, /"[^"\\|]*"\)$/))
			fail("no help at the end of the line, or not a plain one")
		help = substr($0, RSTART + 1, RLENGTH - 3)
		rest = substr($0, 1, RSTART - 1)
		sub(/^[A-Z_]*\(/, "", rest)
		gsub(/[ \t]/, "", rest)
		words = ""
		if ($0 ~ /^FZ_WORDS_/) {
			if (!match(rest, /"[a-z0-9,-]+",$/))
				fail("no words")
			words = substr(rest, RSTART + 1, RLENGTH - 3)
			rest = substr(rest, 1, RSTART - 1) "0,0,0,"
		}
		if (split(rest, f, ",") != 7)
			fail("not all fields")
		name = f[1]; env = f[2]; type = f[3]
		def = f[4]; min = f[5]; max = f[6]
		if (name !~ /^[a-z][a-z0-9_]*$/)
			fail("bad name " name)
		if (env != "FIBERIZE_" toupper(name))
			fail(env " should be FIBERIZE_" toupper(name))
		if (name <= last)
			fail(name " is not in its sorted place")
		last = name
		if ((def min max) !~ /^[0-9]+$/)
			fail("default, min and max are plain decimal numbers")
		if (type == "int") {
			arg = "N"
			allowed = "an integer from " min " to " max
			shown = def + 0 < min + 0 ? "automatic" : def
		} else if (type == "bool") {
			arg = ""
			allowed = "0 or 1"
			shown = def
		} else if (type == "size") {
			arg = "SIZE"
			allowed = "a size from " human(min) " to " human(max) \
				", in bytes or with k, m or g"
			shown = def + 0 < min + 0 ? "automatic" : human(def)
		} else if (type == "path") {
			arg = "FILE"
			allowed = "the name of a file"
			shown = "automatic"
		} else if (type == "list") {
			arg = "LIST"
			allowed = "a list of " min " to " max " characters"
			shown = "none"
		} else if (type == "choice" && words) {
			arg = "WORD"
			min = words
			allowed = words
			sub(/,[^,]*$/, " or&", allowed)
			sub(/ or,/, " or ", allowed)
			gsub(/,/, ", ", allowed)
			shown = words
			sub(/,.*/, "", shown)
		} else if (type == "set" && words) {
			arg = "WORD,..."
			min = words
			allowed = words
			gsub(/,/, ", ", allowed)
			allowed = "any of " allowed
			shown = "none"
		} else
			fail("no such type: " type)
		flag = name
		gsub(/_/, "-", flag)
		# What people would want to say.
		wanted = type == "bool" && def == 1 ? "no-" flag : flag

		if (format == "sh")
			print flag "|" env "|" type "|" min "|" max "|" arg "|" \
				allowed "|" help
		if (format == "man") {
			print ".TP"
			print ".BR " env " \" (" roff(allowed) "; default: " shown ")\""
			print "The same as"
			print ".BR " roff("--" flag) (wanted == flag ? "" : \
				" \" and \" " roff("--" wanted)) " :"
			print roff(help) "."
		}
		count++
	}

	END {
		if (!failed && !count)
			fail("no option found")
		exit failed
	}' "$def"
}

# replace FILE BEGIN END TEXT: FILE with the lines between the two replaced.
replace()
{
	begin=$2 end=$3 text=$4 awk '
	$0 == ENVIRON["begin"] {
		print
		print ENVIRON["text"]
		inside = 1
		found++
	}
	$0 == ENVIRON["end"] { inside = 0; closed++ }
	!inside { print }
	END { exit !(found == 1 && closed == 1) }' "$1" ||
		die "$1: needs one \"$2\" and one \"$3\" line"
}

# What the man page should be.  "exit" leaves the command substitution only, hence ||.
fresh_manual()
{
	text=$(generate man) || exit 1
	replace "$manual" '.\" options begin' '.\" options end' "$text"
}

fresh_launcher()
{
	case $1 in
	'' | *[!0-9A-Za-z.+~-]*) die "bad version: $1" ;;
	esac
	text=$(generate sh) || exit 1
	replace "$launcher" '# options begin' '# options end' "cat <<'TABLE'
$text
TABLE" | sed "s/^version=.*/version='$1'/"
}

case ${1-} in
--man | --sh)
	generate "${1#--}"
	;;
--launcher)
	fresh=$(fresh_launcher "${2-}") || exit 1
	printf '%s\n' "$fresh"
	;;
--check)
	[ -r "$manual" ] || die "$manual: cannot be read"
	fresh=$(fresh_manual) || exit 1
	[ "$fresh" = "$(cat "$manual")" ] ||
		die "$manual: not up to date; run scripts/dev/gen-options.sh --update"
	;;
--update)
	fresh=$(fresh_manual) || exit 1
	[ "$fresh" = "$(cat "$manual")" ] || printf '%s\n' "$fresh" >"$manual"
	;;
*)
	die "usage: gen-options.sh --man | --sh | --launcher VERSION | --check | --update"
	;;
esac
