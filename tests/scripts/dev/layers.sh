#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/layers.sh - scripts/dev/check-layers.sh and check-sizes.sh refuse what they are there to refuse:
# each fault is planted in a copy, and one line must say where it is and what to do.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

copy=$work/copy
mkdir -p "$copy/build"
cd "$root" || exit 1
cp -r arch runtime preload scripts tests "$copy"
(cd "$build" && find arch runtime preload -name '*.o' -exec cp --parents -t "$copy/build" {} +) ||
	exit 1
cd "$copy" || exit 1

# plant FILE: what is on stdin, with the head that every file has.
plant()
{
	mkdir -p "${1%/*}"
	{
		printf '/* SPDX-License-Identifier: MIT */\n/*\n * %s - planted.\n */\n' "$1"
		cat
	} >"$1"
}

plant runtime/base/planted_include.c <<-'END'
	#include "runtime/sched/park.h"
END
plant runtime/base/planted_first.h </dev/null
plant runtime/base/planted_first.c <<-'END'
	#include "runtime/sched/park.h"
	#include "runtime/base/planted_first.h"
	void fz_planted_first(void);
	void fz_planted_first(void)
	{
		fz_sched_kick();
	}
END
plant runtime/backend/planted_upwards.c <<-'END'
	#include "preload/gate.h"
END
plant runtime/base/planted_call.c <<-'END'
	void fz_sched_kick(void);
	void fz_planted_call(void);
	void fz_planted_call(void)
	{
		fz_sched_kick();
	}
END
$CC -c runtime/base/planted_call.c -o build/runtime/base/planted_call.o || exit 1
plant runtime/base/planted_brackets.c <<-'END'
	#include <preload/gate.h>
END
plant runtime/base/planted_hidden.c <<-'END'
	#define GATE "preload/gate.h"
	#include GATE
END
# The header is in a room that may use fz_sched_kick; who writes the macro is not.
plant runtime/fiber/planted_macro.h <<-'END'
	#define FZ_PLANTED_KICK() fz_sched_kick()
	static inline void fz_planted_inline(void)
	{
	}
END
plant runtime/base/planted_macro.c <<-'END'
	/* FZ_PLANTED_KICK() in a comment, "FZ_PLANTED_KICK()" in a string */
	static const char *text = "fz_planted_inline()";
	FZ_PLANTED_KICK();
	fz_planted_inline();
END
plant runtime/base/planted_macro.h <<-'END'
	#define FZ_PLANTED_LATER() fz_sched_kick()
END
plant runtime/planted_loose.c </dev/null
plant attic/planted.c </dev/null
mkdir -p scripts/attic
cp scripts/dev/names.awk scripts/attic/planted.awk
cp scripts/dev/demo.sh planted.sh
plant runtime/attic/planted.c </dev/null
cp scripts/dev/demo.sh scripts/planted.sh
cp scripts/dev/demo.sh tests/scripts/planted.sh
sed /SPDX/d scripts/dev/demo.sh >tests/scripts/dev/planted.sh
echo '{}' >runtime/planted.json
echo 'all:' >attic/Makefile
rm runtime/sched/README.md
plant tests/unit/attic/test_planted.c </dev/null
mkdir tests/scripts/attic
cp scripts/dev/demo.sh tests/scripts/attic/planted.sh
seq -f '/* %g */' 451 | plant runtime/io/planted_long.c
seq -f 'FZ_ROW(%g)' 451 | plant runtime/io/planted_rows.def
seq -f '- %g' 13 >runtime/io/README.md
{
	printf 'void fz_planted(void);\nvoid fz_planted(void)\n{\n'
	seq -f '	(void)%g;' 61
	printf '}\n'
} | plant runtime/io/planted_function.c
{
	printf 'int fz_planted_brace(int n);\nint fz_planted_brace(int n) {\n'
	seq -f '	(void)%g;' 61
	printf '	return n;\n}\n'
} | plant runtime/io/planted_brace.c
{
	printf 'def planted():\n'
	seq -f '    print(%g)' 61
	printf '\n\nplanted()\n'
} >scripts/bench/planted.py
{
	printf 'planted() {\n	cat <<-END\n'
	seq 100
	printf '	END\n'
	seq -f '	echo %g' 58
	printf '}\nplanted_long()\n{\n'
	seq -f '	echo %g' 61
	printf '}\n'
} >scripts/bench/planted.sh
{
	printf 'int fz_planted(int n);\nint fz_planted(int n)\n{\n	switch (n) {\n'
	seq -f '	case %g:	return 1;' 100
	printf '	}\n	return 0;\n}\n'
} | plant runtime/io/planted_switch.c
for i in $(seq 25); do
	plant "runtime/sync/planted_$i.c" </dev/null
	cp scripts/dev/demo.sh "tests/scripts/top/planted_$i.sh"
done
sed -i '/SPDX/d' arch/arch.h
sed -i 's/FZ_RUNTIME_BASE_LOCK_H/FZ_LOCK_H/' runtime/base/lock.h

scripts/dev/check-layers.sh build >"$work/found" 2>&1
same "exit status" 1 $?
scripts/dev/check-sizes.sh >>"$work/found" 2>&1
same "exit status of check-sizes.sh" 1 $?

# found NAME WHERE WHAT: exactly one line says so.
found()
{
	same "$1" 1 "$(grep -E '^check-(layers|sizes): ' "$work/found" | grep -F ": $2: " | grep -cF "$3")"
}

found "include against the order" runtime/base/planted_include.c:5 \
	'runtime/base may not include "runtime/sched/park.h": pass it'
# By its place, and by what is used, the file would be found twice more.
found "include against the order, and before its own header" runtime/base/planted_first.c:5 \
	'runtime/base may not include "runtime/sched/park.h": pass it'
same "one line for that" 1 "$(grep -c 'planted_first\.c' "$work/found")"
found "include of preload" runtime/backend/planted_upwards.c:5 \
	'runtime/backend may not include "preload/gate.h": pass it'
found "call against the order" runtime/base/planted_call.c \
	'runtime/base may not use fz_sched_kick of runtime/sched/processor: pass it'
found "include in angle brackets" runtime/base/planted_brackets.c:5 \
	'<preload/gate.h> is a file of this project: write "preload/gate.h"'
found "include by a macro" runtime/base/planted_hidden.c:6 \
	'GATE hides what is included: write the name of the header'
found "macro of another room" runtime/base/planted_macro.c:7 \
	'runtime/base may not use FZ_PLANTED_KICK of runtime/fiber/planted_macro.h: pass it'
found "inline function of another room" runtime/base/planted_macro.c:8 \
	'runtime/base may not use fz_planted_inline of runtime/fiber/planted_macro.h: pass it'
found "macro that calls another room" runtime/base/planted_macro.h:5 \
	'runtime/base may not use fz_sched_kick of runtime/sched/processor: pass it'
found "unknown folder" attic/planted.c 'is in no room: move it'
found "script in an unknown folder" scripts/attic/planted.awk 'is in no room: move it'
found "script beside all folders" planted.sh 'is in no room: move it'
found "file beside the rooms" runtime/planted_loose.c 'is in no room: move it'
found "unknown room" runtime/attic/planted.c 'is in no room: move it'
found "script beside the launcher" scripts/planted.sh 'is in no room: move it'
found "test beside the rooms" tests/scripts/planted.sh 'is in no room: move it'
found "another file beside the rooms" runtime/planted.json 'is in no room: move it'
found "another file in an unknown folder" attic/Makefile 'is in no room: move it'
found "room without a head" runtime/sched 'has no README.md: say'
found "test of an unknown room" tests/unit/attic/test_planted.c 'there is no room runtime/attic'
found "script of an unknown room" tests/scripts/attic/planted.sh 'there is no room scripts/attic'
found "long file" runtime/io/planted_long.c '450 are enough: divide it'
same "a table may be long" 0 "$(grep -c planted_rows "$work/found")"
found "long head of a room" runtime/io/README.md '12 are enough for the head of a room'
found "long function" runtime/io/planted_function.c:7 'a function of 61 lines'
found "long function, its brace in the first line" runtime/io/planted_brace.c:6 'a function of 62 lines'
found "long function in Python" scripts/bench/planted.py:1 'a function of 61 lines'
found "long function in shell" scripts/bench/planted.sh:164 'a function of 61 lines'
same "a flat switch may be long" 0 "$(grep -c planted_switch "$work/found")"
same "large room" 1 "$(grep -c '^check-layers: runtime/sync: has .* subjects' "$work/found")"
same "large room of scripts" 1 "$(grep -c '^check-layers: tests/scripts/top: has .* subjects' "$work/found")"
found "no licence" arch/arch.h 'no SPDX line'
found "no licence, of a test" tests/scripts/dev/planted.sh 'no SPDX line'
found "wrong guard" runtime/base/lock.h 'its guard is not FZ_RUNTIME_BASE_LOCK_H'

rm -rf build/*
scripts/dev/check-layers.sh build >"$work/found" 2>&1
found "nothing built" build 'no objects there to look at: make library'

finish
