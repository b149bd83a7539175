#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/package/deb.sh VERSION BUILD - builds BUILD/fiberize_VERSION_ARCH.deb from the files that
# "make install" puts below /usr, and BUILD/fiberize-dbgsym_VERSION_ARCH.deb with their debug
# symbols, without which no backtrace of the library can be read.  Needs dpkg-dev.  DEBFULLNAME and DEBEMAIL name the
# maintainer.
set -eu
umask 022
version=$1
build=$(readlink -f -- "$2")
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
arch=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME-fiberize developers} <${DEBEMAIL-fiberize@fiberize.invalid}>"
stage=$build/deb
tree=$stage/fiberize
symbols=$stage/fiberize-dbgsym
doc=$tree/usr/share/doc/fiberize

rm -rf "$stage"
mkdir -p "$tree/DEBIAN" "$doc" "$stage/debian"
cd "$root"
env -u MAKEFLAGS -u MAKELEVEL make -s install B="$build" DESTDIR="$tree" PREFIX=/usr

# Debuggers find the symbols by the build id, which stripping leaves.
ids=
for file in lib/fiberize/libfiberize.so lib/fiberize/libfiberize-preload.so bin/fiberize libexec/fiberize/measure \
	libexec/fiberize/echo_client libexec/fiberize/inspect; do
	id=$(readelf -n "$tree/usr/$file" | sed -n 's/^ *Build ID: //p')
	[ -n "$id" ] || { echo "deb.sh: $file has no build id" >&2; exit 1; }
	ids="$ids${ids:+ }$id"
	place=$symbols/usr/lib/debug/.build-id/$(printf '%.2s' "$id")
	mkdir -p "$place"
	objcopy --only-keep-debug --compress-debug-sections "$tree/usr/$file" \
		"$place/${id#??}.debug"
	chmod 644 "$place/${id#??}.debug"
done

strip --strip-unneeded --remove-section=.comment --remove-section=.note \
	"$tree/usr/lib/fiberize/libfiberize.so" "$tree/usr/lib/fiberize/libfiberize-preload.so"
strip --remove-section=.comment --remove-section=.note "$tree/usr/bin/fiberize" \
	"$tree/usr/libexec/fiberize/measure" "$tree/usr/libexec/fiberize/echo_client" \
	"$tree/usr/libexec/fiberize/inspect"
gzip -9n "$tree"/usr/share/man/man*/*

# The date in the changelog: the time of the last commit, or now.
when=$(git log -1 --format=%cd --date=rfc2822 2>/dev/null) || when=
[ -n "$when" ] || when=$(LC_ALL=C date -R)
gzip -9n >"$doc/changelog.gz" <<CHANGELOG
fiberize ($version) unstable; urgency=medium

  * Built from the source of fiberize $version.

 -- $maintainer  $when
CHANGELOG
{
	printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
	printf 'Upstream-Name: fiberize\n\nFiles: *\n'
	sed -n 's/^Copyright (c) /Copyright: /p' LICENSE
	printf 'License: Expat\n'
	sed '1,/^Copyright/d' LICENSE | sed '/./,$!d; s/^$/./; s/^/ /'
} >"$doc/copyright"

printf 'Source: fiberize\n\nPackage: fiberize\nArchitecture: any\n' >"$stage/debian/control"
depends=$(cd "$stage" && dpkg-shlibdeps -O --ignore-missing-info \
	fiberize/usr/lib/fiberize/libfiberize.so fiberize/usr/bin/fiberize \
	fiberize/usr/libexec/fiberize/measure fiberize/usr/libexec/fiberize/echo_client \
	fiberize/usr/libexec/fiberize/inspect 2>/dev/null |
	sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo 'deb.sh: dpkg-shlibdeps found nothing' >&2; exit 1; }
cat >"$tree/DEBIAN/control" <<CONTROL
Package: fiberize
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $depends
Suggests: curl, gnuplot-nox | gnuplot, procps, wrk
Section: utils
Priority: optional
Description: run the threads of unmodified programs as fibers
 fiberize preloads a library into a dynamically linked program, so that each
 of its threads is a fiber: many of them share few kernel threads, calls that
 would block become io_uring requests, and changing from one to the next takes
 no system call. It is for servers with one thread for each connection.
 .
 It also tells of a program whether that will work and what it will be good
 for, and measures it.
CONTROL
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$build" >/dev/null

mkdir -p "$symbols/DEBIAN" "$symbols/usr/share/doc"
ln -s fiberize "$symbols/usr/share/doc/fiberize-dbgsym"
cat >"$symbols/DEBIAN/control" <<CONTROL
Package: fiberize-dbgsym
Source: fiberize
Version: $version
Auto-Built-Package: debug-symbols
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$symbols" | cut -f1)
Depends: fiberize (= $version)
Section: debug
Priority: optional
Description: debug symbols for fiberize
Build-Ids: $ids
CONTROL
(cd "$symbols" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) \
	>"$symbols/DEBIAN/md5sums"
dpkg-deb --root-owner-group -Zxz --build "$symbols" "$build" >/dev/null
rm -rf "$stage"
