#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-layers.sh [BUILD] - checks which room uses which, and the rules for rooms.
#
#  1 a room uses only the rooms that the matrix below allows.  This is checked in three ways: by
#    #include, by names in the sources (names.awk), and by calls in the objects under BUILD
#  2 in arch/*.h, runtime and preload no #include names the directory of a CPU (the compiler finds its
#    headers by -iquote), and no #if in runtime and preload depends on the CPU
#  3 every header of arch, runtime and preload compiles alone, and its guard is FZ_DIR_FILE_H
#  4 every file begins with the licence, and has its own name in the first line
#    of its comment; a .c file with a header may leave the name to the header
#  5 a .c file of runtime and preload includes its own header first, or an ..._internal.h, which is for
#    a few files only (runtime/io/io_internal.h)
#  6 every file is in a room, and each room of arch, runtime, preload and scripts has a README.md; no
#    room has more than 20 subjects (x.c, x.h and x_internal.h are one;
#    in tests/scripts each script is one)
#
# Prints nothing if all is well; otherwise one line for each finding, and exits with 1.
set -u
export LC_ALL=C
shopt -s globstar nullglob
cd "$(dirname "$0")/../.." || exit 2
CC=${CC-gcc}
build=${1:-build}
cpu=$($CC -dumpmachine)
cpu=${cpu%%-*}

# The matrix: in each line a room, and the rooms that it may include and call.  "runtime" stands
# for all rooms in runtime/, "preload" for the files directly in preload/, and a file for itself.
# A room uses rooms above it in the list; a comment gives the reason if it uses a room below it.
matrix() {
	sed -e 's/#.*//' -e '/^[ \t]*$/d' <<-'END'
	arch
	runtime/base	arch
	runtime/backend	arch runtime/base
	# Switch, park and end of a fiber are each done partly by sched, partly by fiber; a thread
	# that leaves the runtime runs signal handlers; a joiner waits in the parking lot, like any
	# wait for a word in memory.
	runtime/fiber	arch runtime/base runtime/sched runtime/signal runtime/sync
	# Each switch changes the signal mask and the alternate stack; the monitor
	# routes signals that have arrived.
	runtime/sched	arch runtime/base runtime/backend runtime/fiber runtime/signal
	runtime/signal	arch runtime/base runtime/fiber runtime/sched
	runtime/io	arch runtime/base runtime/backend runtime/fiber runtime/sched runtime/signal
	runtime/sync	arch runtime/base runtime/backend runtime/fiber runtime/io runtime/sched runtime/signal
	runtime/inspect	arch runtime/backend runtime/base runtime/fiber runtime/io runtime/sched runtime/sync
	# preload has the tables and the gate; init.c knows all rooms.
	preload	arch runtime preload/libc preload/process preload/signal preload/sync preload/syscall preload/thread
	# preload/thread has the gate of cancellation points, and the clocks of threads.
	preload/io	runtime preload preload/thread
	preload/signal	arch runtime preload preload/thread
	# C11's threads use preload/thread; a spinning thread calls preload/io's sched_yield.
	# While a thread waits for one of the loader's two locks, the other one is released.
	preload/sync	arch runtime preload preload/io preload/libc preload/thread
	# A child of posix_spawn or clone must not run redirected functions; preload/libc bypasses them.
	# preload/thread has the gate of cancellation points.
	preload/process	arch runtime preload preload/io preload/libc preload/thread
	# A fiber's new life reads the list of loaded modules; meanwhile fork must wait (preload/process).
	preload/thread	arch runtime preload preload/libc preload/process
	# preload/libc redirects calls inside libc to the library's bodies in these rooms.
	preload/libc	arch runtime preload preload/io preload/process preload/signal preload/sync preload/thread
	# syscall() leads each number to the body of its name.
	preload/syscall	arch runtime preload preload/io preload/process preload/signal preload/thread
	# The stub is loaded into processes with any libc, so it must not need libfiberize.so's code.
	preload/stub	arch runtime/base
	# Tools may use tables and the parser of options, but nothing that needs fibers.
	scripts
	scripts/bench	scripts/machine
	scripts/bench/report
	scripts/bench/programs
	scripts/bench/programs/*
	scripts/bench/programs/compute/*
	scripts/bench/programs/databases/*
	scripts/bench/programs/files/*
	scripts/bench/programs/http/*
	scripts/bench/programs/proxies/*
	scripts/bench/programs/servers/*
	scripts/elf
	scripts/check	preload/rungs.def preload/symbols.def runtime/base scripts/elf
	scripts/machine	scripts/check scripts/elf
	scripts/launch	runtime/base scripts/check scripts/elf scripts/inspect/commands.def scripts/machine
	# scripts/process reads the description that the library has of itself.
	scripts/process	runtime/inspect
	# main.c calls the commands of all rooms.
	scripts/inspect	runtime/base runtime/inspect scripts/counters scripts/machine scripts/process scripts/trace
	scripts/counters	runtime/base scripts/inspect scripts/process
	scripts/trace	preload/rungs.def scripts/inspect scripts/process runtime/inspect
	scripts/top	runtime/base scripts/counters scripts/inspect scripts/process
	# gen-options.c prints the list of options, gen-fit.c the numbers that the stub compares.
	scripts/dev	runtime/base preload/stub
	scripts/package
	scripts/kubernetes
	scripts/service
	tests
	tests/plain
	tests/plain/*	tests/plain
	tests/arch	arch tests/arch/* tests/plain
	tests/arch/*	arch tests/arch tests/plain
	tests/kubernetes
	tests/lib
	tests/extra	tests/programs
	tests/glibc
	tests/glibc/*
	# fuzz.c gives damaged files to the launcher's functions that read files.
	tests/helpers	tests/programs runtime/base scripts/check
	# Each fuzz target includes the parser that it tests.
	tests/fuzz	runtime/base scripts/check scripts/inspect scripts/process tests/helpers
	# The explorer replaces CPU, kernel and libc, and reads the runtime's records.
	tests/model	arch runtime runtime/* tests/model/*
	tests/model/*	arch arch/* runtime runtime/* tests/model
	tests/model/scenarios/*	arch runtime runtime/* tests/model
	tests/modules	tests/programs
	tests/targets	tests/programs
	tests/programs
	tests/programs/*	tests/programs
	tests/real
	tests/fleet
	tests/scripts/*
	tests/unit	arch runtime
	tests/unit/*	arch runtime tests/unit
	# It includes the reader of events, and stands for the process that is read.
	tests/unit/trace	scripts/trace
	END
}

rooms=$(cat scripts/dev/rooms.awk)

# For each line of a file only the first finding is shown.  If a file has a wrong #include, wrong names in that
# file are not shown: they go away with the #include.
exec 3>&1
findings=$(mktemp) || exit 2
trap 'rm -f "$findings"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
exec >"$findings"
show_findings()
{
	awk '
		$2 ~ /:[0-9]+:$/ && shown[$2]++ { next }
		{
			file = $2
			sub(/:.*/, "", file)
			what = $4 " " $5 " " $6
		}
		what == "may not include" { includes[file] = 1 }
		what != "may not use" || !(file in includes) { print }' "$findings" >&3
}

found=0
finding()
{
	echo "check-layers: $*"
	found=1
}

# includes FILE...: prints FILE:LINE HEADER for each #include of the files
includes()
{
	awk '/^[ \t]*#[ \t]*include/ {
		header = $0
		sub(/^[ \t]*#[ \t]*include[ \t]*/, "", header)
		sub(/[ \t].*$/, "", header)
		print FILENAME ":" FNR, header
	}' "$@"
}

# All source files, tests included.
mapfile -t files < <(find . \( -path './build*' -o -path './.*' \) -prune -o -type f -regextype egrep \
	-regex '.*\.(c|h|S|cc|def|sh|inc|awk|py)' -printf '%P\n' | sort)
sources=()
for file in "${files[@]}"; do
	case $file in
	*.[chS]|*.cc|*.def)	sources+=("$file") ;;
	esac
done

# 1 by #include.  All rooms but arch may include headers of libc.
while read -r where header; do
	name=${header//[<>]/}
	case $where:$header in
	*:\"*)	;;
	*:'<'*)
		if [ -e "$name" ]; then
			finding "$where: $header is a file of this project: write \"$name\""
			continue
		fi
		case $where:$header in
		*:'<stdint.h>'|*:'<stddef.h>'|*:'<stdbool.h>'|*:'<stdatomic.h>'|*:'<stdarg.h>'|*:'<asm/'*|*:'<linux/'*)	;;
		arch/*)	finding "$where: arch/ may not include $header: it calls nothing" ;;
		esac ;;
	*)	finding "$where: $header hides what is included: write the name of the header" ;;
	esac
done < <(includes "${sources[@]}")

# Finds the file of #include "NAME" as the compiler does: beside the including file, from the project's
# directory, then by -iquote.
resolve() {
	local where header dir
	while read -r where header; do
		[ "${header#\"}" != "$header" ] || continue
		header=${header//\"/}
		dir=${where%%:*}
		dir=${dir%/*}
		for at in "$dir/" '' "arch/$cpu/" tests/unit/ tests/programs/ tests/arch/ \
				"tests/arch/$cpu/" scripts/check/ nowhere/; do
			[ -e "$at$header" ] && break
		done
		echo "$where $at$header"
	done
}
includes "${sources[@]}" | resolve | awk "$rooms"'
	{
		file = $1
		sub(/:[0-9]+$/, "", file)
		room = room_of(dir_of(file))
		other = room_of(dir_of($2))
		if (room == "" || $2 ~ /^nowhere\//)
			next
		if (!may(room, $2, other))
			refuse($1, room " may not include \"" $2 "\"")
	}
	END { exit bad }' <(matrix) - || found=1

# 1 by calls in the objects, but not calls that the compiler generates.
objects=()
for file in {arch/"$cpu",runtime/*,preload,preload/*}/*.[cS]; do
	[ ! -e "$build/${file%.*}.o" ] || objects+=("$build/${file%.*}.o")
done
if [ ${#objects[@]} -eq 0 ]; then
	finding "$build: no objects there to look at: make library"
else
	nm -g "${objects[@]}" | awk -v build="$build/" "$rooms"'
		/:$/ {
			object = substr($0, length(build) + 1)
			sub(/\.o:$/, "", object)
			next
		}
		NF == 3 && $2 != "w" { home[$3] = object }
		NF == 2 && $1 == "U" && $2 !~ /^(_Unwind_|__gcc_personality_)/ { calls[object " " $2] }
		END {
			for (call in calls) {
				split(call, part, " ")
				if (!(part[2] in home))
					continue
				room = room_of(dir_of(part[1]))
				other = room_of(dir_of(home[part[2]]))
				if (room != "" && other != "" && !may(room, home[part[2]], other)) {
					print "check-layers: " part[1] ".c: " room " may not use " part[2] " of " home[part[2]] ": pass it as an argument or by a hook, or see the matrix in scripts/dev/check-layers.sh"
					bad = 1
				}
			}
			exit bad
		}' <(matrix) - || found=1

	# 1 by names in the sources
	mapfile -t ours < <(printf '%s\n' "${sources[@]}" | grep -E '^(arch|runtime|preload|scripts)/')
	mapfile -t headers < <(printf '%s\n' "${ours[@]}" | grep '\.h$')
	awk -f scripts/dev/rooms.awk -f scripts/dev/names.awk <(matrix) step=functions \
		<(nm -A --defined-only -g "${objects[@]}" | sed "s,^$build/\(.*\)\.o:.* \(.*\),\2 \1,") \
		step=define "${headers[@]}" step=use "${ours[@]}" || found=1
fi

# 2
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

# 3
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

# 4
scripts=()
for file in scripts/fiberize scripts/*/*.sh \
	tests/**/*.sh .ci/run Makefile; do
	[ -e "$file" ] && scripts+=("$file")
done
# named: the name of the file is in its first lines.  A .c file with a header beside it need not have one.
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
		# tests/unit/ROOM/test_X.c needs no name: Criterion prints it.
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

# 5
for file in runtime/*/*.c preload/*.c preload/*/*.c; do
	header=${file%.c}.h
	[ -e "$header" ] || continue
	first=$(includes "$file" | head -n 1)
	case ${first#* } in
	"\"$header\"" | *_internal.h\")	;;
	*)	finding "${first%% *}: includes ${first#* } before its own header" ;;
	esac
done

# 6
printf '%s\n' "${files[@]}" | awk "$rooms"'
	{
		dir = dir_of($1)
		subject = $1
		sub(/(_internal)?\.[a-zA-Z]+$/, "", subject)
		if (($1 ~ /\.(c|h|S|cc|def)$/ || dir ~ /^tests\/scripts\//) && !seen[subject]++)
			count[dir]++
		# tests/unit/ROOM has the unit tests of runtime/ROOM, or of scripts/ROOM.
		if (dir ~ /^tests\/unit\// && !(("runtime" substr(dir, 11)) in rows) &&
		    !(("scripts" substr(dir, 11)) in rows)) {
			print "check-layers: " $1 ": there is no room runtime" substr(dir, 11) " that it could test"
			bad = 1
		}
		# tests/scripts/ROOM is about scripts/ROOM, or about all of runtime or preload.
		if (dir ~ /^tests\/scripts\// && dir !~ /\/(preload|runtime)$/ && !(substr(dir, 7) in rows)) {
			print "check-layers: " $1 ": there is no room " substr(dir, 7) " that it could test"
			bad = 1
		}
	}
	END {
		# In tests/programs each file is a program of its own, so there may be more than 20.
		for (dir in count)
			if (count[dir] > 20 && dir !~ /^tests\/programs/) {
				print "check-layers: " dir ": has " count[dir] \
					" subjects, 20 are enough: divide the room"
				bad = 1
			}
		exit bad
	}' <(matrix) - || found=1

# Files that are no sources may be in folders below some rooms, too.  Directly in scripts/ there is only
# the launcher.
find . \( -path './build*' -o -path './.*' -o -name __pycache__ \) -prune -o -type f -printf '%P\n' | sort | awk "$rooms"'
	/^(LICENSE|Makefile|README\.md|runtime\/DESIGN\.md)$/ { next }
	{
		dir = dir_of($0)
		may_be_below = $0 !~ /\.(c|h|S|cc|def|sh|inc|awk|py)$/ && dir ~ /^(tests\/(fuzz|glibc|model)|scripts\/kubernetes)\//
		if (room_of(dir) == "" && !may_be_below || dir == "scripts" && $0 !~ /\/(fiberize|README\.md)$/) {
			print "check-layers: " $0 ": is in no room: move it into one of the matrix in scripts/dev/check-layers.sh"
			bad = 1
		}
	}
	END { exit bad }' <(matrix) - || found=1
for room in $(matrix | awk '$1 ~ /^(arch|runtime|preload|scripts)(\/|$)/ && $1 !~ /\*|programs\// { print $1 }'); do
	[ -e "$room/README.md" ] || finding "$room: has no README.md: say in at most 12 lines what lives here, what does not, and who may call it"
done

show_findings
exit $found
