#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/gen-options.sh - the tables of options in README.md and in the man page, which
# gen-options.c makes from runtime/base/options.def.
#
#	--check		the list is right, and both tables are up to date; else exit 1
#	--update	make the tables so
#
# README.md holds its table between the lines
#	<!-- options begin --> and <!-- options end -->
# and the man page between
#	.\" options begin and .\" options end
set -u

root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
readme=$root/README.md
manual=$root/scripts/package/fiberize.1
tool=$(mktemp) || exit 1
trap 'rm -f -- "$tool"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die()
{
	printf 'gen-options.sh: %s\n' "$*" >&2
	exit 1
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

# What FILE should be.  "exit" leaves the command substitution only, hence ||.
fresh()
{
	case $1 in
	"$readme")
		text=$("$tool" markdown) || exit 1
		replace "$readme" '<!-- options begin -->' '<!-- options end -->' "
$text
"
		;;
	"$manual")
		text=$("$tool" man) || exit 1
		replace "$manual" '.\" options begin' '.\" options end' "$text"
		;;
	esac
}

case ${1-} in
--check | --update) ;;
*) die "usage: gen-options.sh --check | --update" ;;
esac
# CC may be several words.
# shellcheck disable=SC2086
${CC-gcc} -std=gnu11 -I"$root" -o "$tool" "$root/scripts/dev/gen-options.c" \
	"$root/runtime/base/options.c" || die "runtime/base/options.def: does not compile"
code=0
for file in "$readme" "$manual"; do
	[ -r "$file" ] || die "$file: cannot be read"
	text=$(fresh "$file") || exit 1
	[ "$text" != "$(cat "$file")" ] || continue
	if [ "$1" = --update ]; then
		printf '%s\n' "$text" >"$file"
	else
		printf 'gen-options.sh: %s: not up to date; run %s\n' \
			"$file" 'scripts/dev/gen-options.sh --update' >&2
		code=1
	fi
done
exit $code
