#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/aarch64_servers.sh - microsocks and python3 of Debian's arm64, in qemu-user.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need curl "$python" qemu-aarch64

sysroot=$build/aarch64-sysroot
[ -e "$sysroot/complete" ] || die "$sysroot is missing: run make aarch64"
emulated=(qemu-aarch64 -L "$sysroot" -E "PYTHONHOME=$sysroot/usr" -E PYTHONDONTWRITEBYTECODE=1)
[ ${#fiberized[@]} -gt 0 ] && emulated+=(-E "LD_PRELOAD=$build/aarch64/libfiberize.so")
TRANSFERS=200
PARALLEL=32

make_files
make_file_server
files_port=$(free_port)
begin files "${emulated[@]}" "$sysroot/usr/bin/python3.11" "$work/file_server.py" \
	"$files_port" "$work/files"
files=$started
wait_for_port "$files" "$files_port"
port=$(free_port)
begin server "${emulated[@]}" "$sysroot/usr/bin/microsocks" -i 127.0.0.1 -p "$port"
server=$started
wait_for_port "$server" "$port"
fetch "$files_port" --noproxy '' --proxy "socks5://127.0.0.1:$port"
stop "$server" 143
stop "$files" 0
finish
