#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/arm64-sysroot.sh DIR - fills DIR with the parts of Debian's arm64 packages for
# libc, liburing and the servers that tests/scripts/aarch64.sh runs: for linking, and for
# qemu-user.
#
# Uses apt-get with lists and a cache of its own in DIR, as any user; the system and
# its packages stay as they are.  If DIR is complete, does nothing, silently.
set -u

packages='libc6 libgcc-s1 libstdc++6 liburing-dev systemtap-sdt-dev microsocks
	python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1 zlib1g'

dir=${1:?usage: arm64-sysroot.sh DIR}
# It names the packages, which may have become more.
[ "$(cat "$dir/complete" 2>/dev/null)" = "$packages" ] && exit 0

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo 'arm64-sysroot.sh: no apt-get here' >&2
	exit 1
fi
rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/debs" || exit 1
dir=$(cd "$dir" && pwd) || exit 1

# apt-get for another architecture; installs nothing.
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
rm -rf "$dir/apt" "$dir/debs" "$dir/log"
echo "$packages" >"$dir/complete"
