#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/arm64-sysroot.sh DIR - fills DIR with files of Debian's arm64 packages, for linking and
# for qemu-user: libc, other libraries that fiberize needs, and the servers that tests/scripts/runtime/aarch64.sh runs.
# DIR/packages has a directory for each library package, from which dpkg-shlibdeps finds dependencies.
#
# Any user may do it (apt.inc).  If DIR is complete, does nothing, silently.
set -u

# shellcheck source=scripts/dev/apt.inc
. "${0%/*}/apt.inc"

libraries='libc6 libgcc-s1 libstdc++6 libelf1 libdw1 libjson-c5 libncursesw6 libtinfo6'
packages="$libraries liburing-dev systemtap-sdt-dev microsocks
	libelf-dev libdw-dev libjson-c-dev libncurses-dev zlib1g liblzma5 libbz2-1.0
	python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1"

dir=${1:?usage: arm64-sysroot.sh DIR}
contents=$packages
is_complete && exit 0

empty_dir
unpack_packages "$dir" -o APT::Architecture=arm64 -o APT::Architectures=arm64
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
finish_dir
