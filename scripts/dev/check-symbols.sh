#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-symbols.sh [BUILD] - checks that libc, the library, tests and manual agree with
# preload/symbols.def.
# scripts/dev/check-symbols.sh --table - only checks that need no library.  "make check" begins with this:
# the compiler would report such mistakes less clearly, and several times.
#
# First the table is checked alone (scripts/dev/symbols.awk): its words are known, it is sorted,
# and each name is there once; and scripts/check/calls.def has no function of libc.
# For each name that the library takes over:
#  1 libc has it, unless it is OPTIONAL; if libc has several functions of the name, or none
#    that can be linked with, the line has the version; --table ends here
#  2 it has one body in preload/, which mentions its own FZ_SYM_ and no other
#  3 libfiberize.so exports it and its aliases, and nothing else but what preload/stub calls
#  4 a test uses it; if it waits, a test of its topic.  The test's source or binary has the name:
#    a header or the compiler may turn another name into this one
# For functions in the table that the library leaves to libc:
#  5 libc has them
# For the library:
#  6 libfiberize.so has no version definitions: they would disable interposition
#  7 no object of runtime/ or arch/ calls a name of the table, because the call would enter the
#    library's own body; and the library imports no such name: it calls libc's function by fz_real
#  8 a call that a signal may interrupt is announced only by fz_call_begin() of runtime/io/real_call.h, which
#    repeats the call if the signal was for another thread; fz_block() of preload/real_call.h calls it
#  9 only preload/gate.h turns errors into libc's conventions: in other files an error is -errno
# If there are no findings so far, is the table complete (scripts/dev/waiting.list)?
# 10 each cancellation point that libc exports has a rung that waits, or is in FZ_LIBC
# 11 each function of libc that makes a system call in which it may wait is in the table, too
# 12 the manual is up to date
#
# Prints nothing if all is well; otherwise one line for each finding, and exits with 1.
set -u -o pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
table=
[ "${1-}" != --table ] || { table=1; shift; }
build=${1-build}
def=preload/symbols.def
lib=$build/libfiberize.so

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ "$table" ]; then
	# bash has the libc with which the library will be linked.
	lib=$BASH
else
	[ -e "$lib" ] || { echo "check-symbols: $lib is missing; run make"; exit 2; }
	for source in tests/programs/*/*.c; do
		program=$build/tests/programs/${source##*/}
		program=${program%.c}
		[ -e "$program" ] || { echo "check-symbols: $program is missing; run make tests"; exit 2; }
	done
fi
awk -v tool=check-symbols -f scripts/dev/symbols.awk preload/topics.def preload/rungs.def $def >"$work/rows" || exit 1
awk -F'|' '$1 == "symbol" || $1 == "alias" { print $3 }' "$work/rows" | sort >"$work/names"

# Findings are lines WHERE|WHAT.  For each line of a file only the first finding is shown.
: >"$work/findings"
finding()
{
	echo "$1|$2" >>"$work/findings"
}

# at_lines TEXT...: makes a finding for each line NAME or NAME WORD of standard input, at the line of NAME
# in the table.  In TEXT, @ stands for NAME and % for WORD.
at_lines()
{
	awk -v def=$def -v text="$*" '
		FNR == NR {
			split($0, f, "|")
			if (f[1] != "topic" && f[1] != "rung" && !(f[3] in line))
				line[f[3]] = f[2]
			next
		}
		{
			what = text
			gsub(/@/, $1, what)
			gsub(/%/, $2, what)
			print def ":" line[$1] "|" what
		}' "$work/rows" - >>"$work/findings"
}

show_findings_and_stop()
{
	awk -F'|' '!($1 ~ /:[0-9]+$/ && shown[$1]++) { print "check-symbols: " $1 ": " $2 }' "$work/findings"
	[ ! -s "$work/findings" ] || exit 1
}

# 1, 5
libc=$(ldd "$lib" | awk '$1 == "libc.so.6" { print $3 }')
[ -e "$libc" ] || { echo "check-symbols: ldd $lib names no libc.so.6"; exit 2; }
# Lines "NAME VERSION default|old ADDRESS"
nm -D --with-symbol-versions --defined-only "$libc" | awk '
	{
		i = index($NF, "@")
		name = i ? substr($NF, 1, i - 1) : $NF
		rest = i ? substr($NF, i) : "@@-"
		how = rest ~ /^@@/ ? "default" : "old"
		gsub(/@/, "", rest)
		print name, rest, how, $1
	}' | sort -u >"$work/libc"
awk '{ print $1 }' "$work/libc" | sort -u >"$work/exported"
awk -v out="$work/wrong" '
	FNR == NR {
		there[$1] = version[$1 " " $2] = 1
		if ($3 == "default")
			linkable[$1] = 1
		# A function that has moved from libpthread to libc has its old version and a new one,
		# with one address.  So versions with one address are one function.
		if (!at[$1 " " $4]++)
			functions[$1]++
		next
	}
	{ split($0, f, "|"); name = f[3] }
	f[1] == "symbol" && f[8] == "OPTIONAL" { optional[name] = 1 }
	f[1] == "symbol" || f[1] == "alias" || f[1] == "libc" { known[name] = 1 }
	f[1] == "libc" || f[1] == "symbol" && f[8] != "OPTIONAL" || f[1] == "trait" && !(name in known) ||
	f[1] == "alias" && !(f[4] in optional) {
		if (!(name in there))
			print name >(out ".missing")
	}
	f[1] == "symbol" && f[8] == "NULL" && name in there {
		if (!(name in linkable))
			print name >(out ".old")
		else if (functions[name] > 1)
			print name >(out ".several")
	}
	f[1] == "symbol" && f[8] ~ /^GLIBC/ && name in there {
		if (!((name " " f[8]) in version))
			print name, f[8] >(out ".version")
	}' "$work/libc" "$work/rows"
touch "$work"/wrong.{missing,old,several,version}
at_lines "libc has no @; correct the name, or, in an FZ_SYMBOL, say OPTIONAL if other libcs have it" <"$work/wrong.missing"
at_lines "libc has @ only in old versions; name one of them" <"$work/wrong.old"
at_lines "libc has several functions @; name the version of one" <"$work/wrong.several"
at_lines "libc has @, but not in version %; name one that it has" <"$work/wrong.version"
show_findings_and_stop

# calls.def has only functions of other libraries than libc, by prefixes of their names.
awk '
	/^[A-Z_]+\("/ {
		split($0, part, "\"")
		name = part[2]
		sub(/ $/, "", name)
		if (name !~ /^(GOMP_|_Z|__kmpc_|apr_|ev_|evconnlistener_|event_|g_|io_uring_|sd_|uv_)/)
			print FILENAME ":" FNR "|none of the libraries in check-symbols.sh has " name \
				"; if libc has it, name it in an FZ_TRAIT of preload/symbols.def, otherwise name its library there"
	}' scripts/check/calls.def >>"$work/findings"
show_findings_and_stop
[ -z "$table" ] || exit 0

# 2: a body goes from FZ_EXPORT and the name to the closing brace in the first column.  A macro that makes
# a whole body counts as one.
awk '
	/^FZ_EXPORT_(BRIEF|WIRED|IDS|C11)\(/ {
		split($0, word, /[(, ]+/)
		print "body|" FILENAME ":" FNR "|" word[3]
	}
	/^FZ_EXPORT / { heading = ""; collecting = 1; where = FILENAME ":" FNR }
	collecting {
		heading = heading " " $0
		rest = heading
		gsub(/__attribute__ *\(\([^)]*(\([^)]*\))?[^)]*\)\)/, "", rest)
		if (match(rest, /[A-Za-z0-9_]+\(/)) {
			name = substr(rest, RSTART, RLENGTH - 1)
			collecting = 0
			inside = 1
			own = 0
			print "body|" where "|" name
		}
	}
	inside {
		line = $0
		while (match(line, /FZ_SYM_[A-Za-z0-9_]+/)) {
			used = substr(line, RSTART + 7, RLENGTH - 7)
			if (used == name)
				own = 1
			else if (used != "COUNT")
				print "finding|" where "|" name " counts as " used \
					"; use FZ_SYM_" name
			line = substr(line, RSTART + RLENGTH)
		}
	}
	inside && /^}/ {
		if (!own)
			print "finding|" where "|" name " is not counted; begin by fz_enter(FZ_SYM_" name ")"
		inside = 0
	}' preload/*.c preload/*/*.c >"$work/bodies"
awk -F'|' '$1 == "finding" { print $2 "|" $3 }' "$work/bodies" >>"$work/findings"
awk -F'|' '
	FNR == NR { if ($1 == "symbol") known[$3] = 1; next }
	$1 == "body" && !($3 in known) {
		print $2 "|" $3 " has a body, but no FZ_SYMBOL; add one to preload/symbols.def"
	}' "$work/rows" "$work/bodies" >>"$work/findings"
awk -F'|' '
	FNR == NR { if ($1 == "body") written[$3] = 1; next }
	$1 == "symbol" && !($3 in written) { print $3 }' "$work/bodies" "$work/rows" |
	at_lines "@ has no body; write one in preload/, with FZ_EXPORT"

# 3
nm -D --defined-only "$lib" | awk '$NF != "fiberize_start" { print $NF }' | sort -u >"$work/ours"
comm -23 "$work/names" "$work/ours" |
	at_lines "$lib does not export @; run make, or add the FZ_EXPORT_ALIAS"
for name in $(comm -13 "$work/names" "$work/ours"); do
	finding "$lib" "exports $name, which $def has not; add its line or hide it"
done

# code_of FILE...: prints FILE:LINE CODE for each line of the files, without comments.
code_of()
{
	awk '
		FNR == 1 { in_comment = 0 }
		{
			gsub(/\/\*([^*]|\*[^\/])*\*\//, " ")
			if (in_comment && !sub(/^.*\*\//, ""))
				next
			in_comment = sub(/\/\*.*/, "")
			print FILENAME ":" FNR " " $0
		}' "$@"
}

# 4: make lines "TEST WORD" from the sources without comments, and from the binaries.
: >"$work/misnamed"
while read -r line test; do
	compgen -G "tests/programs/*/$test.c" >"$work/source" && continue
	finding "preload/topics.def:$line" "there is no tests/programs/*/$test.c; correct the name"
	echo "$test" >>"$work/misnamed"
done < <(awk -F'|' '$1 == "topic" { n = split($5, test, " "); while (n) print $2, test[n--] }' \
	"$work/rows" | sort -u -k 2)
sources=(tests/programs/*/*.c)
binaries=()
for source in "${sources[@]}"; do
	source=${source##*/}
	binaries+=("$build/tests/programs/${source%.c}")
done
{
	code_of "${sources[@]}" | awk '
		{
			test = $1
			gsub(/.*\/|\.c:.*/, "", test)
			sub(/^[^ ]* /, "")
			n = split($0, word, /[^A-Za-z0-9_]+/)
			while (n)
				print test, word[n--]
		}'
	nm -D -A --undefined-only "${binaries[@]}" 2>/dev/null |
		sed 's/^.*\/\([^/:]*\):.* \([^ @]*\)\(@[^@]*\)*$/\1 \2/'
} >"$work/used"
awk -F'|' '
	FNR == NR { split($0, f, " "); used[f[1], f[2]] = used[f[2]] = 1; next }
	FILENAME ~ /misnamed$/ { misnamed[$0] = 1; next }
	$1 == "topic" { tests[$3] = $5 }
	$1 == "alias" { names[$4] = names[$4] " " $3 }
	$1 == "symbol" { topic[$3] = $7 }
	END {
		for (name in topic) {
			found = 0
			test_count = split(tests[topic[name]], test, " ")
			name_count = split(name names[name], alias, " ")
			for (k = 1; k <= name_count; k++) {
				# A function that never waits has no topic.
				if (topic[name] == "NO")
					found += alias[k] in used
				for (i = 1; i <= test_count; i++)
					found += (test[i], alias[k]) in used || test[i] in misnamed
			}
			if (!found)
				print name, topic[name]
		}
	}' "$work/used" "$work/misnamed" "$work/rows" >"$work/untested"
awk '$2 != "NO"' "$work/untested" |
	at_lines "no test of % uses @; call it in one of those that preload/topics.def names"
awk '$2 == "NO"' "$work/untested" |
	at_lines "no test uses @; call it in a program of tests/programs"

# 6
readelf -V "$lib" | grep -q '^Version definition' &&
	finding "$lib" 'has version definitions; the version script must have no named node'

# 7
objects=()
for object in "$build"/arch/*/*.o "$build"/runtime/*/*.o; do
	# Skip an object whose source does not exist: it is left over from an earlier build.
	source=${object#"$build"/}
	source=${source%.o}
	[ -e "$source.c" ] || [ -e "$source.S" ] || continue
	objects+=("$object")
done
nm -A --undefined-only "${objects[@]}" | awk '
	FNR == NR { name[$1] = 1; next }
	$NF in name {
		sub(/:.*/, "", $1)
		print $1 "|calls " $NF ", which comes back to us; make the system call instead"
	}' "$work/names" - >>"$work/findings"
for name in $(nm -D --undefined-only "$lib" | awk '{ sub(/@.*/, "", $NF); print $NF }' |
	sort -u | comm -12 - "$work/names"); do
	finding "$lib" "needs $name from elsewhere; call fz_real.$name"
done
# 8: these functions may announce, because the functions of libc that they call never fail with EINTR.
may_announce='
	preload/process/clone.c:clone
	preload/process/exec_watch.c:fz_exec_watch_begin
	preload/process/spawn.c:enter_brief
	preload/process/spawn.c:pclose
	preload/process/spawn.c:system
	preload/sync/barrier.c:pthread_barrier_destroy
	preload/sync/barrier.c:pthread_barrier_wait
	preload/sync/cond.c:pthread_cond_destroy
	preload/sync/cond_shared.c:fz_cond_wait_shared
	preload/sync/cond_shared.c:wait_behind_gate
	preload/sync/mutex.c:prepare_lock
	preload/sync/mutex.c:pthread_mutex_setprioceiling
	preload/sync/rwlock.c:pthread_rwlock_clockrdlock
	preload/sync/rwlock.c:pthread_rwlock_timedrdlock
	preload/sync/rwlock.c:read_shared
	preload/thread/host.c:begin_blocking
	preload/thread/join.c:pthread_clockjoin_np
	preload/thread/join.c:pthread_join
	preload/thread/join.c:pthread_timedjoin_np
	preload/thread/setid.c:set
'
# Find the function of each line: its heading begins in the first column, with the name in the first line.
code_of preload/*.[ch] preload/*/*.[ch] | list=$may_announce awk '
	BEGIN {
		for (i = split(ENVIRON["list"], entry, " "); i; i--)
			listed[entry[i]] = 1
	}
	{
		where = file = $1
		sub(/:.*/, "", file)
		sub(/^[^ ]* /, "")
		heading = $0
		gsub(/__attribute__ *\(\([^)]*(\([^)]*\))?[^)]*\)\)/, "", heading)
		if (/^[A-Za-z_]/ && !/^[A-Za-z0-9_]+:/)
			name = match(heading, /[A-Za-z0-9_]+\(/) ? substr(heading, RSTART, RLENGTH - 1) : ""
		else if (/^}/)
			name = ""
	}
	match($0, /(^|[^A-Za-z0-9_])fz_announce(_brief)?([^A-Za-z0-9_]|$)/) {
		used = substr($0, RSTART, RLENGTH)
		gsub(/[^a-z_]/, "", used)
		place = file ":" name
		if (place in listed)
			announces[place] = 1
		else
			print where "|" used ": a signal may end the call; use fz_block (preload/real_call.h), or, if none can, " \
				(name == "" ? "move it into a function of" : "add " place " to") \
				" the list in check-symbols.sh"
	}
	END {
		for (place in listed)
			if (!(place in announces))
				print "scripts/dev/check-symbols.sh|" place " announces nothing; delete it from the list"
	}' >>"$work/findings"
# 9: comparisons with an error are allowed.  errno may be set to a saved value, or to 0 when a thread begins.
while read -r where _; do
	finding "$where" "turns an error into libc's convention; return fz_leave(-E...) or fz_leave_pthread(-E...), or -E... to a caller that does (preload/gate.h)"
done < <(code_of preload/*.[ch] preload/*/*.[ch] | grep -v '^preload/gate\.h:' | sed -E 's/[=!]= E[A-Z0-9]+//g' |
	grep -E '\<return\>.*[ (]E[A-Z0-9]{2,} *[;:)]|\<return\>.*[ (]errno *[;:)]|\<errno = ' |
	grep -vE '\<errno = (0|.*saved(_errno)?);')
show_findings_and_stop

# words HEADING: prints the words under a heading of waiting.list.
words()
{
	awk -v heading="$1" '/^[a-z]/ { inside = $1 == heading; next }
		inside && /^\t/ { for (i = 1; i <= NF; i++) print $i }' scripts/dev/waiting.list | sort
}
# waits: the names whose line in the table says how they wait or, in FZ_LIBC, that they never do.
awk -F'|' '
	$1 == "symbol" && $4 !~ /^(TRACKED|SELF)$/ || $1 == "libc" { waits[$3] = 1; print $3 }
	$1 == "alias" && $4 in waits { print $3 }' "$work/rows" | sort >"$work/waits"

# 10
for name in $(words points | comm -12 - "$work/exported" | comm -23 - "$work/waits" |
	comm -23 - <(words unused)); do
	finding "$def" "POSIX permits $name to be a cancellation point, so it may wait; add a line (CANCEL only if it is one in glibc)"
done

# 11
if [ "$(uname -m)" = x86_64 ]; then
	scripts/dev/system-calls.sh "$libc" >"$work/calls"
	[ "$(wc -l <"$work/calls")" -gt 300 ] ||
		finding "$libc" 'its system calls cannot be read; mend scripts/dev/system-calls.sh'
	words instant >"$work/instant"
	words tries | sort - "$work/waits" >"$work/known"
	awk -v def=$def '
		FILENAME ~ /instant$/ { instant[$1] = 1; next }
		FILENAME ~ /known$/ { known[$1] = 1; next }
		$2 != "unknown" && !($2 in instant) && !($1 in known) &&
		$1 !~ /^(__pthread|__libc)_/ {
			print def "|" $1 " makes the system call " $2 \
				", and has no line that says how it waits; add one, or name it as an alias"
		}' "$work/instant" "$work/known" "$work/calls" >>"$work/findings"
fi
show_findings_and_stop

# 12
[ "$(scripts/dev/gen-symbols.sh --fresh)" = "$(cat scripts/package/libfiberize.7)" ] ||
	finding scripts/package/libfiberize.7 'not up to date; run scripts/dev/gen-symbols.sh --update'
show_findings_and_stop
exit 0
