#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/glibc-tests.sh - glibc's own tests of its threads, from Debian's source
# package of the libc that is installed, natively and as fibers.
#
#	glibc-tests.sh [--modes LIST] [--filter GLOB] [--jobs N] [--factor N]
#
# LIST is comma-separated, of fz (as many processors as CPUs) and fzN; the default is
# fz,fz1,fz8.  All that passes natively must pass in each of them.  What differs and
# may is in tests/glibc/exceptions, a test and the reason on each line.  GLOB selects
# tests by name.  Every test's own time limit is multiplied by N of --factor (4).
#
# The source is in $FZ_GLIBC_SOURCE, or is fetched with apt-get into build/glibc/,
# where all of this happens.  The tests are linked with the installed libc; those that
# need libc's insides do not compile that way, and are counted.
#
# A case is a test in a mode; what differs and may is skipped.  Then one line for each mode.
# Exit status 2 if the tests cannot be had.
#
# "a && b || c" means what it says here, and words are split on purpose:
# shellcheck disable=SC2015,SC2046,SC2086,SC2254

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
cd "$root" || exit 2
out=$build/glibc
exceptions=$root/tests/glibc/exceptions

modes=fz,fz1,fz8
filter='*'
jobs=$(nproc)
factor=4

die() {
	echo "glibc-tests.sh: $*" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || die "$1 needs a value"
	case $1 in
	--modes)	modes=$2 ;;
	--filter)	filter=$2 ;;
	--jobs)		jobs=$2 ;;
	--factor)	factor=$2 ;;
	*)		die "unknown option $1" ;;
	esac
	shift 2
done
for n in "$jobs" "$factor"; do
	case $n in
	*[!0-9]*|''|0)	die "not a number: $n" ;;
	esac
done
for mode in ${modes//,/ }; do
	case $mode in
	fz)		;;
	fz*[!0-9]*|fz0)	die "unknown mode $mode" ;;
	fz[0-9]*)	;;
	*)		die "unknown mode $mode" ;;
	esac
done

# ---- the source

# Prints the directory; the version of the source package is that of libc6.
fetch() {
	local version dir
	version=$(dpkg-query -W -f '${source:Version}' libc6) || die "libc6 is not Debian's"
	dir=$out/source/glibc-$version
	if [ ! -d "$dir" ]; then
		rm -rf "$out/source"
		mkdir -p "$out/source/lists/partial" || exit 2
		(
			cd "$out/source" || exit 2
			# shellcheck source=/dev/null
			. /etc/os-release
			for suite in "$VERSION_CODENAME" "$VERSION_CODENAME-updates"; do
				echo "deb-src http://deb.debian.org/debian $suite main"
			done >sources.list
			echo "deb-src http://deb.debian.org/debian-security" \
				"$VERSION_CODENAME-security main" >>sources.list
			# With lists of its own: the machine's sources may lack deb-src.
			apt=(apt-get -q -o "Dir::Etc::SourceList=$PWD/sources.list"
				-o Dir::Etc::SourceParts=/dev/null
				-o "Dir::State::Lists=$PWD/lists")
			"${apt[@]}" update && "${apt[@]}" source --download-only "glibc=$version" &&
				dpkg-source --no-check -x glibc_*.dsc unpacked &&
				mv unpacked "$dir"
		) >"$out/source.log" 2>&1 || {
			tail -n 5 "$out/source.log" >&2
			die "cannot get the source of glibc $version; see ${out#"$root"/}/source.log"
		}
	fi
	echo "$dir"
}

mkdir -p "$out/include" "$out/bin" || exit 2
if [ -n "${FZ_GLIBC_SOURCE-}" ]; then
	source=$FZ_GLIBC_SOURCE
else
	source=$(fetch) || exit 2
fi
[ -e "$source/nptl/Makefile" ] || die "no source of glibc in $source"

# ---- what can be built

# Headers that glibc does not install and that stand alone; flags that glibc's
# makefiles have for a test, one line each.
prepare() {
	local header
	for header in include/libc-diag.h include/array_length.h include/intprops.h \
			include/libc-pointer-arith.h include/dso_handle.h \
			sysdeps/nptl/internaltypes.h sysdeps/x86/nptl/pthreaddef.h \
			sysdeps/generic/tst-stack-align.h sysdeps/x86_64/stackguard-macros.h; do
		cmp -s "$source/$header" "$out/include/${header##*/}" ||
			cp "$source/$header" "$out/include/" || exit 2
	done
	cat "$source"/{nptl,sysdeps/pthread,rt,posix,stdlib,malloc}/Makefile |
		sed ':a; /\\$/ { N; s/\\\n//; ta }' |
		grep -E '^(CFLAGS|CPPFLAGS|LDFLAGS)-(tst|test)-[^ <]* *[+:]?=[^<]*$' \
			>"$out/flags.new"
	# The makefiles say these as prerequisites.
	cat >>"$out/flags.new" <<-'END'
	LDLIBS-tst-once5 = -lstdc++
	LDLIBS-tst-cancel24 = -lstdc++
	MODULES-tst-_res1 = tst-_res1mod1.so tst-_res1mod2.so
	MODULES-tst-fini1 = tst-fini1mod.so
	MODULES-tst-tls5 = tst-tls5mod.so
	MODULES-tst-compat-forwarder = tst-compat-forwarder-mod.so
	AUX-tst-cleanup4 = $(SRC)/nptl/tst-cleanup4aux.c
	AUX-tst-cleanupx4 = $(SRC)/nptl/tst-cleanupx4aux.c
	END
	cmp -s "$out/flags.new" "$out/flags.mk" || mv "$out/flags.new" "$out/flags.mk"
}

prepare
make -s -k -j "$jobs" -f tests/glibc/build.mk "SRC=$source" "OUT=$out" all \
	>"$out/build.log" 2>&1
for i in {0..19}; do
	for j in {0..19}; do
		[ -e "$out/bin/tst-stack4mod-$i-$j.so" ] ||
			cp "$out/bin/tst-stack4mod.so" "$out/bin/tst-stack4mod-$i-$j.so"
	done
done

# ---- running them

# What glibc's makefiles pass to a test.
arguments() {
	case $1 in
	tst-cancel7|tst-cancelx7)	printf '%s\n' --command "exec $out/bin/$1" ;;
	tst-exec4|tst-spawn2|tst-execve1|tst-_Fork)	printf '%s\n' "$out/bin/$1" ;;
	tst-umask1)			printf '%s\n' ./umask.temp ;;
	esac
}

environment() {
	local preload=$2
	case $1 in
	tst-atfork2)
		echo "MALLOC_TRACE=./mtrace"
		preload=${preload:+$preload:}libc_malloc_debug.so.0 ;;
	tst-stack3)
		echo "MALLOC_TRACE=./mtrace LD_PRELOAD=${preload:+$preload:}libc_malloc_debug.so.0"
		return ;;
	esac
	[ -n "$preload" ] && echo "LD_PRELOAD=$preload"
}

# run_test NAME MODE: leaves its exit status in results/MODE/NAME.
run_test() {
	local name=$1 mode=$2 base=$out/results/$2/$1 preload='' args=() words=''
	case $mode in
	native)	;;
	fz)	preload=$library ;;
	fz*)	preload=$library; words=FIBERIZE_PROCESSORS=${mode#fz} ;;
	esac
	mapfile -t args < <(arguments "$name")
	rm -rf "$base.dir"
	mkdir -p "$base.dir"
	(
		cd "$base.dir" || exit 2
		# Where glibc's build runs them there is one, and some read it.
		echo >Makefile
		ulimit -c 0
		# The test ends itself in its own time; this is for a driver that hangs.
		limited env TIMEOUTFACTOR=$factor \
			LD_LIBRARY_PATH="$out/bin" $words $(environment "$name" "$preload") \
			"$out/bin/$name" "${args[@]}" </dev/null
	) >"$base.log" 2>&1
	echo $? >"$base"
	rm -rf "$base.dir"
}

# run_all MODE: the tests on standard input.
run_all() {
	local name
	rm -rf "$out/results/$1"
	mkdir -p "$out/results/$1"
	while read -r name; do
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
			wait -n
		done
		run_test "$name" "$1" &
	done
	wait
}

# The names whose exit status in MODE is 0.
passed_in() {
	(cd "$out/results/$1" && grep -lx 0 -- * 2>/dev/null | grep -v '\.')
}

list_tests() {
	local file name
	for file in "$out"/bin/*; do
		name=${file##*/}
		[ -x "$file" ] || continue
		case $name in
		*.*)	continue ;;
		esac
		case $name in
		$filter)	echo "$name" ;;
		esac
	done
}

excepted() {
	grep -q "^$1[[:space:]]" "$exceptions"
}

# Who runs out of time natively on a busy machine gets another chance to show that
# the test can be passed here; a fiber has none.
list_tests >"$out/list"
run_all native <"$out/list"
again=$(cd "$out/results/native" && grep -lxvE '0|77' -- * | grep -v '\.')
for name in $again; do
	run_test "$name" native
done
passed_in native >"$out/natively"
total=$(wc -l <"$out/list")
native=$(wc -l <"$out/natively")
not_built=$(grep -c '^not built: [^.]*$' "$out/build.log")

for mode in ${modes//,/ }; do
	before=$passed allowed=0
	run_all "$mode" <"$out/natively"
	while read -r name; do
		status=$(cat "$out/results/$mode/$name")
		if [ "$status" = 0 ]; then
			pass "$name ($mode)"
		elif excepted "$name"; then
			allowed=$((allowed + 1))
			skip "$name ($mode)" "$(sed -n "s/^${name}[[:space:]]*//p" "$exceptions")"
		else
			fail "$name ($mode)" "exit status $status; see ${out#"$root"/}/results/$mode/$name.log"
		fi
	done <"$out/natively"
	echo "$mode: $native passed natively, $((passed - before)) under fiberize," \
		"$allowed differ and may ($total built, $not_built not)"
done
finish
