#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/glibc-root.sh DIR SUITE - fills DIR with a small root of another release of Debian, such as bullseye: its
# libc, cat and xz (which makes threads), for tests with a real other glibc.  It has empty folders etc, proc and fiberize.
#
# Uses apt-get with lists and a cache of its own in DIR, as any user; the system and
# its packages stay as they are.  If DIR is complete, does nothing, silently.
set -u

packages='libc6 libgcc-s1 coreutils xz-utils liblzma5'
dir=${1:?usage: glibc-root.sh DIR SUITE} suite=${2:?usage: glibc-root.sh DIR SUITE}
[ "$(cat "$dir/complete" 2>/dev/null)" = "$suite: $packages" ] && exit 0

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null || [ ! -e $keyring ]; then
	echo 'glibc-root.sh: no apt-get of Debian here' >&2
	exit 1
fi
rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/debs" || exit 1
dir=$(cd "$dir" && pwd) || exit 1
echo "deb [signed-by=$keyring] http://deb.debian.org/debian $suite main" >"$dir/apt/sources.list"

# Runs apt-get for that release, with its own directories; installs nothing.
apt()
{
	apt-get -q -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=/nonexistent \
		-o Dir::State::Lists="$dir/apt/lists" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$dir/apt/cache" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none "$@" >"$dir/log" 2>&1 || {
		tail -n 5 "$dir/log" >&2
		echo "glibc-root.sh: apt-get $* failed" >&2
		exit 1
	}
}

apt update
cd "$dir/debs" || exit 1
# $packages is split into words on purpose.
# shellcheck disable=SC2086
apt download $packages
for deb in *.deb; do
	dpkg-deb --extract "$deb" "$dir/unpacked" || exit 1
done
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
rm -rf "$dir/apt" "$dir/debs" "$dir/log" "$dir/unpacked"
echo "$suite: $packages" >"$dir/complete"
