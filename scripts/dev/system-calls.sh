#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/system-calls.sh LIBC - prints which exported functions of an x86-64 libc make which
# system calls directly: lines "FUNCTION CALL", with "unknown" for a call whose number is not found.
set -u
export LC_ALL=C
libc=${1?usage: system-calls.sh LIBC}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Make lines START SIZE NAME for exported functions. Symbols of version GLIBC_PRIVATE are not for programs.
readelf -W --dyn-syms "$libc" | awk '
	($4 == "FUNC" || $4 == "IFUNC") && $7 != "UND" && $8 !~ /GLIBC_PRIVATE/ {
		sub(/@.*/, "", $8)
		print $2, $3, $8
	}' | sort -u >"$work/at"
echo '#include <asm/unistd.h>' | ${CC-gcc} -E -dM - |
	awk '$2 ~ /^__NR_/ { print substr($2, 6), $3 }' >"$work/numbers"
objdump -d --no-show-raw-insn "$libc" | awk -v at="$work/at" -v numbers="$work/numbers" '
	function number(hex,	i, n)
	{
		for (i = 1; i <= length(hex); i++)
			n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
		return n
	}
	BEGIN {
		while ((getline line <at) > 0) {
			split(line, f, " ")
			sub(/^0+/, "", f[1])
			names[f[1]] = names[f[1]] " " f[3]
			size[f[1]] = f[2]
		}
		while ((getline line <numbers) > 0) {
			split(line, f, " ")
			call[f[2]] = f[1]
		}
	}
	# objdump begins a new heading at each symbol that it knows.
	/^[0-9a-f]+ <.*>:$/ {
		start = $1
		sub(/^0+/, "", start)
		here = names[start]
		rax = ""
		next
	}
	/mov +\$0x[0-9a-f]+,%eax/ {
		rax = $0
		sub(/.*mov +\$0x/, "", rax)
		sub(/,%eax.*/, "", rax)
		rax = number(rax)
	}
	/xor +%eax,%eax/ { rax = 0 }
	# Code after the end of an exported function belongs to a static function, which has no heading.
	/\tsyscall/ && here != "" {
		address = $1
		sub(/:/, "", address)
		if (number(address) >= number(start) + size[start])
			next
		n = split(here, f, " ")
		for (i = 1; i <= n; i++)
			print f[i], (rax in call ? call[rax] : "unknown")
		rax = ""
	}' | sort -u
