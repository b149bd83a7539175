#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-layers.sh - includes go one way: arch/ <- runtime/ <- preload/.
#
#  1 arch/ includes nothing but its own headers and the compiler's
#  2 runtime/ includes arch/, its own, and of libc's only what does not call:
#    it names neither preload/ nor anything that depends on it
#  3 preload/ includes runtime/ and its own, and of arch/ the contract only
#  4 the CPU directories are found by -iquote: nobody names one of them
#  5 every header compiles alone, and its guard is FZ_DIR_FILE_H
#  6 every file begins with the licence, and says its own name in the first line
#    of its comment; a .c file that has a header leaves that to the header
#  7 a .c file includes its own header first, or one that is for it and few more
#    (runtime/io/io_internal.h)
#
# Quiet when all is well; otherwise one line for each finding, and exit status 1.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
CC=${CC-gcc}
cpu=$($CC -dumpmachine)
cpu=${cpu%%-*}

found=0
finding()
{
	echo "check-layers: $*"
	found=1
}

# FILE:LINE HEADER for each #include of the files in $@
includes()
{
	awk '/^[ \t]*#[ \t]*include/ {
		header = $0
		sub(/^[ \t]*#[ \t]*include[ \t]*/, "", header)
		sub(/[ \t].*$/, "", header)
		print FILENAME ":" FNR, header
	}' "$@"
}

# 1
while read -r where header; do
	case $header in
	'"arch/arch.h"')	continue ;;
	'<stdint.h>'|'<stddef.h>'|'<stdbool.h>'|'<stdatomic.h>'|'<stdarg.h>')	continue ;;
	'<asm/'*|'<linux/'*)	continue ;;
	'"'*/*)	;;
	'"'*)
		[ -e "$(dirname "${where%%:*}")/${header//\"/}" ] && continue
		# arch.h takes the one of whichever CPU -iquote names.
		[ -e "arch/$cpu/${header//\"/}" ] && continue
		;;
	esac
	finding "$where: arch/ may not include $header"
done < <(includes arch/*.h arch/*/*.[chS])

# 2: what of libc's headers is types and constants, or is not interposed.
while read -r where header; do
	case $header in
	'"runtime/'*|'"arch/arch.h"'|'<linux/'*|'<asm/'*)	continue ;;
	'"options.def"')	continue ;;
	'"'*'/'*'"')	;;
	'"'*'"')
		[ -e "arch/$cpu/${header//\"/}" ] && continue
		;;
	'<'*)	continue ;;
	esac
	finding "$where: runtime/ may not include $header"
done < <(includes runtime/*/*.[ch])

# 3
while read -r where header; do
	case $header in
	'"preload/'*|'"runtime/'*|'"arch/arch.h"'|'<'*)	continue ;;
	esac
	finding "$where: preload/ may not include $header"
done < <(includes preload/*.[ch] preload/*/*.[ch])

# 4
while read -r where header; do
	case $header in
	*arch/x86_64/*|*arch/aarch64/*|*x86_64/*|*aarch64/*)
		finding "$where: names a CPU: $header" ;;
	esac
done < <(includes arch/*.h runtime/*/*.[ch] preload/*.[ch] preload/*/*.[ch])
while IFS=: read -r file line text; do
	finding "$file:$line: depends on the CPU outside arch/: $text"
done < <(grep -nE '^[ \t]*#[ \t]*(el)?if.*(__x86_64__|__aarch64__|__i386__)' \
	runtime/*/*.[ch] preload/*.[ch] preload/*/*.[ch] | grep -vE '^[a-z/]*/(uapi|libc_proto)\.h:')

# 5
read -ra alone <<<"$CC"
alone+=(-std=gnu11 -D_GNU_SOURCE '-DFZ_VERSION=""' -Wall -Wextra -I. -iquote "arch/$cpu"
	-fsyntax-only -x c)
headers=(arch/*.h arch/"$cpu"/*.h runtime/*/*.h preload/*.h preload/*/*.h)
if ! "${alone[@]}" "${headers[@]}" 2>/dev/null; then
	for header in "${headers[@]}"; do
		errors=$("${alone[@]}" "$header" 2>&1) ||
			finding "$header does not compile alone: $(echo "$errors" | grep -m 1 error)"
	done
fi
awk '
	FNR == 1 {
		guard = "FZ_" toupper(FILENAME)
		gsub(/[\/.-]/, "_", guard)
		file[guard] = FILENAME
	}
	$0 == "#ifndef " guard || $0 == "#define " guard { found[guard]++ }
	END {
		for (guard in file)
			if (found[guard] != 2) {
				print "check-layers: " file[guard] ": its guard is not " guard
				bad = 1
			}
		exit bad
	}' "${headers[@]}" || found=1

# 6
sources=()
for file in arch/*.h arch/*/*.[chS] runtime/*/*.[ch] runtime/*/*.def preload/*.[ch] preload/*/*.[ch] \
	preload/*.def preload/*/*.def scripts/check/*.[ch] scripts/check/*.def tests/*/*.[ch] tests/*/*.cc tests/*/*/*.[chS]; do
	[ -e "$file" ] && sources+=("$file")
done
scripts=()
for file in scripts/fiberize scripts/*/*.sh \
	tests/*.sh tests/*/*.sh .ci/run Makefile; do
	[ -e "$file" ] && scripts+=("$file")
done
# named: it must say its name in the first lines, or that of a header beside it does.
awk '
	function fail(text)
	{
		print "check-layers: " current ": " text
		bad = 1
	}
	function is_named(line,    name, rest)
	{
		name = FILENAME
		sub(/\.[ch]$/, "", name)
		if (line ~ ("(^| )(" name "|" FILENAME ")"))
			return 1
		rest = FILENAME
		sub(/\/[^\/]*$/, "/.*", rest)
		name = FILENAME
		sub(/.*\//, "", name)
		return line ~ ("(^| )" rest name)
	}
	function end_of_head()
	{
		if (!current)
			return
		if (!licensed)
			fail("no SPDX line")
		if (needs_name && !named)
			fail("does not begin with its name")
		current = ""
	}
	FNR == 1 {
		end_of_head()
		current = FILENAME
		licensed = named = 0
		header = FILENAME
		needs_name = is_source && FILENAME !~ /^tests\/unit\/.*\/test_.*\.c$/
		# tests/unit/test_X.c is about runtime/X, and Criterion names it.
		if (needs_name && sub(/\.c$/, ".h", header) && (getline text < header) >= 0) {
			close(header)
			needs_name = 0
		}
	}
	FNR <= (is_source ? 1 : 3) && /SPDX-License-Identifier: MIT/ { licensed = 1 }
	FNR <= 12 && is_named($0) { named = 1 }
	FNR == 12 { nextfile }
	END {
		end_of_head()
		exit bad
	}' is_source=1 "${sources[@]}" is_source=0 "${scripts[@]}" || found=1

# 7
for file in runtime/*/*.c preload/*.c preload/*/*.c; do
	header=${file%.c}.h
	[ -e "$header" ] || continue
	first=$(includes "$file" | head -n 1)
	case ${first#* } in
	"\"$header\"" | *_internal.h\")	;;
	*)	finding "${first%% *}: includes ${first#* } before its own header" ;;
	esac
done

exit $found
