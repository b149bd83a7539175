#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/gen-options.sh - updates the man page's list of options; gen-options.c makes it from
# runtime/base/options.def.
#
#	--check		checks that options.def is right and the man page up to date; else exits 1
#	--update	updates the man page
#
# The man page holds the list between the lines
#	.\" options begin and .\" options end
set -u

root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
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

case ${1-} in
--check | --update) ;;
*) die "usage: gen-options.sh --check | --update" ;;
esac
twice=$(sed -n -E 's/^FZ_(OPTION|WORDS_OPTION|LAUNCHER_FLAG)\(([a-z0-9_]+),.*/\2/p' "$root/runtime/base/options.def" | sort | uniq -d | head -n 1)
[ -z "$twice" ] || die "runtime/base/options.def: $twice is there twice; delete one of the two"
# CC may be a command with arguments, so it is not quoted.
# shellcheck disable=SC2086
${CC-gcc} -std=gnu11 -I"$root" -o "$tool" "$root/scripts/dev/gen-options.c" \
	"$root/runtime/base/options.c" || die "runtime/base/options.def, options.c or gen-options.c: not compiled"
list=$("$tool") || exit 1
# The flags of the launcher alone are members of struct settings, and options are not.
unread=$(sed -n -E 's/^FZ_(OPTION|WORDS_OPTION|LAUNCHER_FLAG)\(([a-z0-9_]+),.*/\1 \2/p' "$root/runtime/base/options.def" |
	while read -r kind name; do
		case $kind in
		LAUNCHER_FLAG) grep -rqE "s->$name\b" "$root/scripts/launch/" ;;
		*) grep -rqE "fz_config\.$name\b|FZ_OPTION_ID_$name\b" "$root/preload/" "$root/scripts/launch/" ;;
		esac || printf ' %s' "$name"
	done)
[ "$1" = --update ] || [ -z "$unread" ] ||
	die "runtime/base/options.def:$unread: nothing reads it; see step 2 there"
[ -r "$manual" ] || die "$manual: cannot be read"
text=$(text=$list awk -v mark=options -f "$root/scripts/dev/manual.awk" "$manual") ||
	die "$manual: needs one line '.\\\" options begin' and one '.\\\" options end'"
[ "$text" != "$(cat "$manual")" ] || exit 0
[ "$1" = --update ] || die "$manual: not up to date; run scripts/dev/gen-options.sh --update"
printf '%s\n' "$text" >"$manual"
