#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/arm64-sysroot.sh DIR - fills DIR with files of Debian's arm64 packages, for linking and
# for qemu-user: libc, other libraries that fiberize needs, and the servers that tests/scripts/runtime/aarch64.sh runs.
# DIR/packages has a directory for each library package, from which dpkg-shlibdeps finds dependencies.
#
# Uses apt-get with lists and a cache of its own in DIR, as any user; the system and
# its packages stay as they are.  If DIR is complete, does nothing, silently.
set -u

libraries='libc6 libgcc-s1 libstdc++6 libelf1 libdw1 libjson-c5 libncursesw6 libtinfo6'
packages="$libraries liburing-dev systemtap-sdt-dev microsocks
	libelf-dev libdw-dev libjson-c-dev libncurses-dev zlib1g liblzma5 libbz2-1.0
	python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1"

dir=${1:?usage: arm64-sysroot.sh DIR}
# DIR/complete has the list of packages; if this script's list is another one by now, start again.
[ "$(cat "$dir/complete" 2>/dev/null)" = "$packages" ] && exit 0

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo 'arm64-sysroot.sh: no apt-get here' >&2
	exit 1
fi
rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/debs" || exit 1
dir=$(cd "$dir" && pwd) || exit 1

# Runs apt-get for arm64, with its own directories; installs nothing.
apt()
{
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o Dir::State::Lists="$dir/apt/lists" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$dir/apt/cache" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none "$@" >"$dir/log" 2>&1 || {
		tail -n 5 "$dir/log" >&2
		echo "arm64-sysroot.sh: apt-get $* failed" >&2
		exit 1
	}
}

apt update
cd "$dir/debs" || exit 1
# $packages is split into words on purpose.
# shellcheck disable=SC2086
apt download $packages
for deb in *.deb; do
	dpkg-deb --extract "$deb" "$dir" || exit 1
done
# Make absolute links lead into DIR, not to libraries of this machine.
find "$dir/usr/lib" "$dir/lib" -type l -lname '/*' | while read -r link; do
	ln -sf "$dir$(readlink "$link")" "$link"
done
# The package with this link would also install a C++ compiler, so make the link here.
ln -s libstdc++.so.6 "$dir/usr/lib/aarch64-linux-gnu/libstdc++.so"
mkdir "$dir/packages"
for library in $libraries; do
	dpkg-deb --raw-extract "$library"_*.deb "$dir/packages/$library" || exit 1
done
rm -rf "$dir/apt" "$dir/debs" "$dir/log"
echo "$packages" >"$dir/complete"
