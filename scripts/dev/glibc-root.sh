#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/glibc-root.sh DIR SUITE - fills DIR with a small root of another release of Debian, such as bullseye: its
# libc, cat and xz (which makes threads), for tests with a real other glibc.  It has empty folders etc, proc and fiberize.
#
# Any user may do it (apt.inc).  If DIR is complete, does nothing, silently.
set -u

# shellcheck source=scripts/dev/apt.inc
. "${0%/*}/apt.inc"
packages='libc6 libgcc-s1 coreutils xz-utils liblzma5'
dir=${1:?usage: glibc-root.sh DIR SUITE} suite=${2:?usage: glibc-root.sh DIR SUITE}
contents="$suite: $packages"
is_complete && exit 0

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ ! -e $keyring ]; then
	echo 'glibc-root.sh: no apt-get of Debian here' >&2
	exit 1
fi
empty_dir
echo "deb [signed-by=$keyring] http://deb.debian.org/debian $suite main" >"$dir/apt/sources.list"
unpack_packages "$dir/unpacked" -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=/nonexistent
# An older release has /bin and /lib, a newer one has them in /usr alone.
mkdir "$dir/etc" "$dir/proc" "$dir/fiberize" "$dir/usr" "$dir/bin"
for folder in lib lib64; do
	mkdir "$dir/$folder"
	for part in "$dir/unpacked/$folder" "$dir/unpacked/usr/$folder"; do
		[ ! -d "$part" ] || cp -a "$part/." "$dir/$folder" || exit 1
	done
	ln -s "../$folder" "$dir/usr/$folder"
done
for program in cat xz; do
	cp "$(find "$dir/unpacked/bin" "$dir/unpacked/usr/bin" -name $program 2>/dev/null | head -n 1)" "$dir/bin" || exit 1
done
rm -rf "$dir/unpacked"
finish_dir
