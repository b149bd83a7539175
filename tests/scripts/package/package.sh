#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/package/package.sh - the Debian packages for amd64 and arm64: the same bytes when made in another directory,
# and lintian has nothing to say; upgrade, downgrade and removal under programs that run.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need dpkg dpkg-deb dpkg-shlibdeps git jq lintian "$CC" aarch64-linux-gnu-gcc
version=$("$fiberize" --version)
version=${version#fiberize }
newer=$version+next
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1)
export SOURCE_DATE_EPOCH
unset DEBEMAIL

# quiet_make DIR WORDS...: not a part of the make that runs us
quiet_make()
{
	local dir=$1
	shift
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$dir" "$@" >"$work/make.log" 2>&1 ||
		{ cat "$work/make.log"; die "make $* in $dir failed"; }
}

# The source, as it is here, in another place, with what fits of the parts of build that are named.
copy()
{
	local to=$1 part
	shift
	mkdir -p "$to/build"
	(cd "$root" && tar -c --exclude=./build .) | tar -x -C "$to"
	for part; do
		[ ! -e "$build/$part" ] || cp -a "$build/$part" "$to/build"
	done
}

one=$work/one
other=$work/another/place/with/a/longer/name
copy "$one" aarch64 aarch64-sysroot arch preload runtime stub lib32 libexec exports.map fiberize liburing.a \
	libfiberize.so libfiberize-preload.so libfz_runtime.a
copy "$other" aarch64-sysroot
quiet_make "$one" deb deb-arm64
quiet_make "$other" deb deb-arm64
same 'no address: one that receives nothing' 'fiberize developers <fiberize@fiberize.invalid>' \
	"$(dpkg-deb -f "$one/build/fiberize_${version}_$(dpkg --print-architecture).deb" Maintainer)"
run env DEBEMAIL=somebody@example.org env -u MAKEFLAGS -u MAKELEVEL make -s -C "$one" deb B="$one/build" VERSION="$version.1"
same 'an address that is set' '0:fiberize developers <somebody@example.org>' \
	"$code:$(dpkg-deb -f "$one/build/fiberize_$version.1_$(dpkg --print-architecture).deb" Maintainer)"
rm -f "$one"/build/*"_$version.1_"*.deb
for deb in fiberize_"$version"_amd64 fiberize-dbgsym_"$version"_amd64 aarch64/fiberize_"$version"_arm64 \
	aarch64/fiberize-dbgsym_"$version"_arm64; do
	[ "${deb##*_}" != amd64 ] || [ "$(dpkg --print-architecture)" = amd64 ] || continue
	yes "${deb##*/}: the same bytes when made again" cmp "$one/build/$deb.deb" "$other/build/$deb.deb"
	run lintian --fail-on error,warning --tag-display-limit 0 "$one/build/$deb.deb"
	same "${deb##*/}: lintian" 0 "$code${out:+: $out}"
done
same 'both need the same packages' \
	"$(dpkg-deb -f "$one"/build/fiberize_*.deb Depends | sed 's/ ([^)]*)//g')" \
	"$(dpkg-deb -f "$one"/build/aarch64/fiberize_*.deb Depends | sed 's/ ([^)]*)//g')"

# ---- the next version: only what says the version is made again

touch "$one/runtime/inspect/version.c" "$one/scripts/launch/main.c" "$one/scripts/inspect/commands.c"
quiet_make "$one" deb VERSION="$newer"
arch=$(dpkg --print-architecture)
old_deb=$one/build/fiberize_${version}_$arch.deb
new_deb=$one/build/fiberize_${newer}_$arch.deb

system=$work/system
installed=$system/usr/bin/fiberize
mkdir -p "$system"/var/lib/dpkg/{info,updates}
: >"$system/var/lib/dpkg/status"

# put DEB: unpacks and configures it
put()
{
	dpkg --root="$system" --log=/dev/null --force-depends --force-not-root --force-bad-path -i "$1" \
		>"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; die "dpkg -i $1 failed"; }
}

servers=()
end_all()
{
	kill -KILL "${servers[@]}"
	wait
}
at_exit end_all

# server: begins one; its process is in $pid, its port in $port
server()
{
	launch "$installed" "$programs/legacy_server" -e -p 0
	servers+=("$pid")
	must eventually grep -qs 'listening on' "$work/said"
	port=$(sed -n 's/^listening on //p' "$work/said")
}

# answers PORT: by a thread that is made now
answers()
{
	local answer
	exec 3<>"/dev/tcp/127.0.0.1/$1" || return
	printf 'hello\n' >&3
	read -r -t 60 answer <&3
	exec 3>&-
	[ "$answer" = hello ]
}

# seen PID: version, whether the library was replaced, and whether its threads are seen
seen()
{
	local ps
	ps=$("$installed" ps --count "$1" 2>&1)
	"$installed" status --json | jq -r --argjson pid "$1" \
		'.processes[] | select(.pid == $pid) | "\(.version) \(.replaced) \(.note)"' |
		sed "s/\$/ $([[ $ps =~ [0-9]+\ threads?\ on\  ]] && echo seen)/"
}

put "$old_deb"
server
first=$pid first_port=$port
yes 'before: answers' answers "$first_port"
same 'before' "$version false null seen" "$(seen "$first")"

put "$new_deb"
same 'upgraded' "fiberize $newer" "$("$installed" --version)"
yes 'upgraded: who runs goes on' answers "$first_port"
same 'upgraded: the new tools look at it' "$version true null seen" "$(seen "$first")"
server
second=$pid second_port=$port
yes 'upgraded: who starts answers' answers "$second_port"
same 'upgraded: who starts has the new one' "$newer false null seen" "$(seen "$second")"

put "$old_deb"
same 'downgraded' "fiberize $version" "$("$installed" --version)"
yes 'downgraded: who runs goes on' answers "$second_port"
same 'downgraded: the old tools look at it' "$newer true null seen" "$(seen "$second")"
server
yes 'downgraded: who starts answers' answers "$port"
same 'downgraded: who starts has the old one' "$version false null seen" "$(seen "$pid")"

dpkg --root="$system" --log=/dev/null --force-not-root --force-bad-path -r fiberize >"$work/dpkg.log" 2>&1
same 'removed: dpkg' 0 $?
same 'removed: no file is left' '' "$(cd "$system" && find usr ! -type d 2>/dev/null)"
for port in "$first_port" "$second_port" "$port"; do
	yes 'removed: who runs goes on' answers "$port"
done
finish
