#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/install.sh - what "make install" puts somewhere works there, and
# "make uninstall" takes all of it away again.
set -u
cd "$(dirname "$0")/.." || exit 1
# The directory has a blank in it, as a packager's may.
work=$(mktemp -d "${TMPDIR:-/tmp}/fz install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail()
{
	echo "install.sh: $*"
	exit 1
}

# Not a part of the make that runs us.
run_make()
{
	env -u MAKEFLAGS -u MAKELEVEL make -s "$@" >"$work/log" 2>&1 ||
		{ cat "$work/log"; fail "make $* failed"; }
	[ ! -s "$work/log" ] || { cat "$work/log"; fail "make -s $1 is not quiet"; }
}

run_make install DESTDIR="$work/dest" PREFIX=/usr
(cd "$work/dest" && find . -type f | sort) >"$work/have"
cat >"$work/want" <<END
./usr/bin/fiberize
./usr/lib/fiberize/libfiberize.so
./usr/libexec/fiberize/bench.sh
./usr/libexec/fiberize/check
./usr/libexec/fiberize/echo_client
./usr/libexec/fiberize/measure
./usr/share/man/man1/fiberize.1
END
diff "$work/want" "$work/have" || fail "other files than expected"

# LD_PRELOAD cannot name a file with a blank, so it is run from elsewhere.
plain=$(mktemp -d /tmp/fz-install.XXXXXX) || exit 1
trap 'rm -rf "$work" "$plain"' EXIT
cp -a "$work/dest/usr/." "$plain/"
(
	cd / || exit 1
	unset LD_PRELOAD
	"$plain/bin/fiberize" true || fail "fiberize true: exit status $?"
	maps=$("$plain/bin/fiberize" cat /proc/self/maps)
	case $maps in
	*"$plain/lib/fiberize/libfiberize.so"*)	;;
	*)	fail "the installed library is not loaded" ;;
	esac
	version=$("$plain/bin/fiberize" --version) || fail "--version: exit status $?"
	[ -n "$version" ] || fail "--version says nothing"
	"$plain/bin/fiberize" --help >/dev/null || fail "--help: exit status $?"
) || exit 1

run_make uninstall DESTDIR="$work/dest" PREFIX=/usr
left=$(cd "$work/dest" && find . ! -type d)
[ -z "$left" ] || fail "uninstall leaves $left"
[ ! -e "$work/dest/usr/lib/fiberize" ] || fail "uninstall leaves its directory"
# Twice does no harm.
run_make uninstall DESTDIR="$work/dest" PREFIX=/usr
