#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/package/deb.sh VERSION BUILD [PACKAGES] - builds two Debian packages.  BUILD/fiberize_VERSION_ARCH.deb
# has the files that "make install" puts below /usr.  BUILD/fiberize-dbgsym_VERSION_ARCH.deb has their debug
# symbols, which backtraces of the library need.  Needs dpkg-dev.  DEBFULLNAME and DEBEMAIL name the maintainer.
#
# CC, CFLAGS and LDFLAGS must be those of the build.  PACKAGES is needed to build for another CPU: the
# directory of library packages that arm64-sysroot.sh makes.  Equal sources and an equal SOURCE_DATE_EPOCH
# (default: the time of the last commit, or 0) make equal bytes.
set -eu
umask 022
export LC_ALL=C TZ=UTC
version=$1
build=$(readlink -f -- "$2")
packages=${3-}
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
cc=${CC:-gcc}
strip=$($cc -print-prog-name=strip)
objcopy=$($cc -print-prog-name=objcopy)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH-$(git -C "$root" log -1 --format=%ct 2>/dev/null)} || SOURCE_DATE_EPOCH=
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}"
# Use one thread: the output of a compressor with several threads depends on their number.
export DPKG_DEB_THREADS_MAX=1
# Take the architecture from the library: it may be for another machine than this one.
case $(readelf -h "$build/libfiberize.so" | sed -n 's/^ *Machine: *//p') in
*X86-64) arch=amd64 ;;
AArch64) arch=arm64 ;;
*) echo "deb.sh: $build/libfiberize.so: for a machine that has no name here" >&2; exit 1 ;;
esac
# An address of .invalid is nobody's (RFC 2606); SECURITY.md says so to those who have the package.
maintainer="${DEBFULLNAME-fiberize developers} <${DEBEMAIL:-fiberize@fiberize.invalid}>"
stage=$build/deb
tree=$stage/fiberize
symbols=$stage/fiberize-dbgsym
doc=$tree/usr/share/doc/fiberize

rm -rf "$stage"
mkdir -p "$tree/DEBIAN" "$doc" "$stage/debian"
cd "$root"
env -u MAKEFLAGS -u MAKELEVEL make -s install VERSION="$version" B="$build" CC="$cc" CFLAGS="${CFLAGS-}" \
	LDFLAGS="${LDFLAGS-}" DESTDIR="$tree" PREFIX=/usr

# Debuggers find the symbols by the build id, which stripping does not remove.
ids=
for file in lib/fiberize/libfiberize.so lib/fiberize/libfiberize-preload.so bin/fiberize libexec/fiberize/measure \
	libexec/fiberize/echo_client libexec/fiberize/inspect; do
	id=$(readelf -n "$tree/usr/$file" | sed -n 's/^ *Build ID: //p')
	[ -n "$id" ] || { echo "deb.sh: $file has no build id" >&2; exit 1; }
	ids="$ids${ids:+ }$id"
	place=$symbols/usr/lib/debug/.build-id/$(printf '%.2s' "$id")
	mkdir -p "$place"
	"$objcopy" --only-keep-debug --compress-debug-sections "$tree/usr/$file" \
		"$place/${id#??}.debug"
	chmod 644 "$place/${id#??}.debug"
done

"$strip" --strip-unneeded --remove-section=.comment --remove-section=.note \
	"$tree/usr/lib/fiberize/libfiberize.so" "$tree/usr/lib/fiberize/libfiberize-preload.so"
"$strip" --remove-section=.comment --remove-section=.note "$tree/usr/bin/fiberize" \
	"$tree/usr/libexec/fiberize/measure" "$tree/usr/libexec/fiberize/echo_client" \
	"$tree/usr/libexec/fiberize/inspect"
for file in "$tree"/usr/lib/fiberize/*/libfiberize-preload.so "$tree"/usr/lib/fiberize/lib/*/libfiberize-preload.so; do
	[ -h "$file" ] || [ ! -e "$file" ] || "$strip" --strip-unneeded --remove-section=.comment "$file"
done
gzip -9n "$tree"/usr/share/man/man*/*

# The stub is made without needed libraries on purpose: it may be preloaded into every program of a machine,
# and none of its libraries can be missing.  So tell lintian.
mkdir -p "$tree/usr/share/lintian/overrides"
echo 'fiberize: shared-library-lacks-prerequisites [usr/lib/fiberize/*libfiberize-preload.so]' \
	>"$tree/usr/share/lintian/overrides/fiberize"

when=$(date -R -d "@$SOURCE_DATE_EPOCH")
gzip -9n >"$doc/changelog.gz" <<CHANGELOG
fiberize ($version) unstable; urgency=medium

  * What changed for users is in CHANGELOG.md.

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
# finish TREE: writes checksums, sets all times to SOURCE_DATE_EPOCH, and builds the package
finish()
{
	(cd "$1" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
	find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$1" "$build" >/dev/null
}

# installed_size TREE: prints the size in KiB, computed so that it does not depend on the file system
installed_size()
{
	find "$1/usr" -printf '%y %s\n' | awk '{ n += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print n }'
}

where=
for package in ${packages:+"$packages"/*}; do
	where="$where -S$package"
done
# $where is split into words on purpose.
# shellcheck disable=SC2086
depends=$(cd "$stage" && DEB_HOST_ARCH=$arch dpkg-shlibdeps $where -O --ignore-missing-info \
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
Installed-Size: $(installed_size "$tree")
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
finish "$tree"

mkdir -p "$symbols/DEBIAN" "$symbols/usr/share/doc"
ln -s fiberize "$symbols/usr/share/doc/fiberize-dbgsym"
cat >"$symbols/DEBIAN/control" <<CONTROL
Package: fiberize-dbgsym
Source: fiberize
Version: $version
Auto-Built-Package: debug-symbols
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(installed_size "$symbols")
Depends: fiberize (= $version)
Section: debug
Priority: optional
Description: debug symbols for fiberize
Build-Ids: $ids
CONTROL
finish "$symbols"
rm -rf "$stage"
