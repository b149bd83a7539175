#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/check-symbols.sh [BUILD] - preload/symbols.def against everything that
# must agree with it.
#
#  1 the list is sorted, each name is there once, and an alias names a body
#  2 what libfiberize.so exports is what the list says, both ways
#  3 libfiberize.so has no version definitions: they would disable interposition
#  4 no object of runtime/ or arch/ calls a name in the list: it would come back
#    to us.  Nor does the library as a whole use one from elsewhere, but through
#    fz_real.
#  5 the running libc has each name that is not OPT; where it has several
#    versions of it, or one that is not for linking, the list names that version
#  6 a body mentions its own FZ_SYM_ and no other, and there is one for each name
#  7 each PARK name is used by a test program (the source, or the binary: it may
#    be what a header or the compiler makes of another name)
#  8 preload/libc/redirect.def is sorted, and each name in it is a body
#  9 nothing in preload/ announces a call that a signal may end but preload/real_call.h,
#    which makes it again if the signal was another thread's
#
# Quiet when all is well; otherwise one line for each finding, and exit status 1.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
build=${1-build}
def=preload/symbols.def
lib=$build/libfiberize.so

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

found=0
finding()
{
	echo "check-symbols: $*"
	found=1
}

[ -e "$lib" ] || { echo "check-symbols: $lib is missing: run make"; exit 2; }

# Lines "alias NAME OF" and "body NAME VERSION KIND" with - for no version.
sed -n -e 's/^FZ_ALIAS(\([A-Za-z0-9_]*\), *\([A-Za-z0-9_]*\))$/alias \1 \2/p' \
	-e 's/^FZ_SYMBOL(\([A-Za-z0-9_]*\), *NULL, *\([A-Z| ]*\))$/body \1 - \2/p' \
	-e 's/^FZ_SYMBOL(\([A-Za-z0-9_]*\), *"\([A-Za-z0-9_.]*\)", *\([A-Z| ]*\))$/body \1 \2 \3/p' \
	$def >"$work/list"
awk '{ print $2 }' "$work/list" >"$work/in_order"
sort -u "$work/in_order" >"$work/names"
awk '$1 == "body" { print $2 }' "$work/list" | sort >"$work/bodies"

# 1
[ "$(grep -c '^FZ_[A-Z]*(' $def)" = "$(wc -l <"$work/list")" ] ||
	finding "$def: a line that is neither FZ_SYMBOL(name, version, kind) nor" \
		"FZ_ALIAS(alias, name)"
sort -c "$work/in_order" 2>"$work/sorted" ||
	finding "$def: not sorted: $(sed 's/.*disorder: //' "$work/sorted")"
for name in $(sort "$work/in_order" | uniq -d); do
	finding "$def: $name is there twice"
done
awk -v def=$def '
	FNR == NR { body[$1] = 1; next }
	$1 == "alias" && !($3 in body) {
		print "check-symbols: " def ": " $2 " is an alias of " $3 ", which is not there"
		bad = 1
	}
	END { exit bad }' "$work/bodies" "$work/list" || found=1
while read -r kind; do
	case $kind in
	PARK|TRACK|SELF|ANNOUNCE|OPT)	;;
	*)	finding "$def: no such kind: $kind" ;;
	esac
done < <(awk '$1 == "body" { for (i = 4; i <= NF; i++) if ($i != "|") print $i }' \
	"$work/list" | sort -u)

# 2
nm -D --defined-only "$lib" | awk '{ print $NF }' | sort -u >"$work/exported"
for name in $(comm -13 "$work/names" "$work/exported"); do
	finding "$lib exports $name, which is not in $def"
done
for name in $(comm -23 "$work/names" "$work/exported"); do
	finding "$lib does not export $name"
done

# 3
readelf -V "$lib" | grep -q '^Version definition' &&
	finding "$lib has a version definition section"

# 4
objects=()
for object in "$build"/arch/*/*.o "$build"/runtime/*/*.o; do
	# One whose source is gone is only left over.
	source=${object#"$build"/}
	source=${source%.o}
	[ -e "$source.c" ] || [ -e "$source.S" ] || continue
	objects+=("$object")
done
nm -A --undefined-only "${objects[@]}" | awk '
	FNR == NR { name[$1] = 1; next }
	$NF in name {
		sub(/:.*/, "", $1)
		print "check-symbols: " $1 " calls " $NF ", which is interposed"
		bad = 1
	}
	END { exit bad }' "$work/names" - || found=1
for name in $(nm -D --undefined-only "$lib" | awk '{ sub(/@.*/, "", $NF); print $NF }' |
	sort -u | comm -12 - "$work/names"); do
	finding "$lib needs $name from elsewhere, which is interposed"
done

# 5
libc=$(ldd "$lib" | awk '$1 == "libc.so.6" { print $3 }')
[ -e "$libc" ] || finding "cannot find libc.so.6 by ldd $lib"
# Lines "name VERSION default|old"
nm -D --with-symbol-versions --defined-only "$libc" | awk '
	{
		i = index($NF, "@")
		name = i ? substr($NF, 1, i - 1) : $NF
		rest = i ? substr($NF, i) : "@@-"
		how = rest ~ /^@@/ ? "default" : "old"
		gsub(/@/, "", rest)
		print name, rest, how
	}' | sort -u >"$work/libc"
# A name may have moved here from libpthread, and keep the version it had there:
# those are the same function.  Two addresses are two functions.
nm -D --with-symbol-versions --defined-only "$libc" | awk '
	{ name = $NF; sub(/@.*/, "", name); at[name " " $1] = 1 }
	END { for (x in at) { split(x, f, " "); n[f[1]]++ }
	      for (x in n) if (n[x] > 1) print x }' | sort >"$work/ambiguous"
awk -v def=$def -v libc="$work/libc" -v ambiguous="$work/ambiguous" '
	function fail(text)
	{
		print "check-symbols: " text
		bad = 1
	}
	FILENAME == libc {
		there[$1] = version[$1 " " $2] = 1
		if ($3 == "default")
			linkable[$1] = 1
		next
	}
	FILENAME == ambiguous { several[$1] = 1; next }
	{ optional = 0; for (i = 4; i <= NF; i++) optional += $i == "OPT" }
	# Exporting one more name harms nobody.
	$1 == "alias" { next }
	!($2 in there) {
		if (!optional)
			fail("libc has no " $2)
		next
	}
	$3 == "-" {
		if (!($2 in linkable) && !optional)
			fail($2 ": libc has it only in old versions; " def " names none")
		if ($2 in several)
			fail($2 ": libc has several functions of that name; " def \
				" must name the version")
		next
	}
	!(($2 " " $3) in version) {
		fail($2 ": libc has it, but not in version " $3)
	}
	END { exit bad }' "$work/libc" "$work/ambiguous" "$work/list" || found=1

# 6: from FZ_EXPORT and the name to the closing brace in the first column.
awk -v out="$work/defined" '
	function fail(text)
	{
		print "check-symbols: " text
		bad = 1
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
			print "body", name >out
		}
	}
	inside {
		line = $0
		while (match(line, /FZ_SYM_[A-Za-z0-9_]+/)) {
			used = substr(line, RSTART + 7, RLENGTH - 7)
			if (used == name)
				own = 1
			else if (used != "COUNT")
				fail(where ": " name " counts as " used)
			line = substr(line, RSTART + RLENGTH)
		}
	}
	inside && /^}/ {
		if (!own)
			fail(where ": " name " does not mention FZ_SYM_" name)
		inside = 0
		name = ""
	}
	END { exit bad }' preload/*.c preload/*/*.c || found=1
awk '$1 == "body" { print $2 }' "$work/defined" | sort >"$work/written"
for name in $(comm -23 "$work/bodies" "$work/written"); do
	finding "$name: no FZ_EXPORT in preload/"
done
for name in $(comm -13 "$work/bodies" "$work/written"); do
	finding "$name: FZ_EXPORT in preload/, but no FZ_SYMBOL in $def"
done

# 7
cat tests/programs/*/*.c tests/programs/*/*.cc tests/programs/*.h | tr -c 'A-Za-z0-9_' '\n' |
	sort -u >"$work/used"
programs=()
for program in "$build"/tests/programs/*; do
	case $program in
	*.d|*.o|*'*')	continue ;;
	esac
	programs+=("$program")
done
nm -D --undefined-only "${programs[@]}" 2>/dev/null |
	awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u - "$work/used" -o "$work/used"
# An alias is as good.
awk '
	FNR == NR { used[$1] = 1; next }
	$1 == "alias" && $2 in used { used[$3] = 1 }
	$1 == "body" { for (i = 4; i <= NF; i++) if ($i == "PARK") parks[$2] = 1 }
	END {
		for (name in parks)
			if (!(name in used)) {
				print "check-symbols: " name \
					" may park, but nothing in tests/programs/ calls it"
				bad = 1
			}
		exit bad
	}' "$work/used" "$work/list" || found=1

# 8
sed -n 's/^FZ_REDIRECT(\([A-Za-z0-9_]*\), [A-Z_]*)$/\1/p' preload/libc/redirect.def >"$work/redirected"
sort -uc "$work/redirected" 2>"$work/sorted" ||
	finding "preload/libc/redirect.def: not sorted: $(sed 's/.*disorder: //' "$work/sorted")"
for name in $(sort "$work/redirected" | comm -23 - "$work/bodies"); do
	finding "preload/libc/redirect.def: $name has no body in $def"
done

# 9: libc's functions that do not answer EINTR, whatever ends the kernel's wait.
may_announce=" preload/io/brief.h preload/process/clone.c preload/process/spawn.c
	preload/sync/barrier.c preload/sync/cond.c preload/sync/cond_shared.c
	preload/sync/mutex.c preload/sync/rwlock.c preload/thread/join.c "
for place in $(grep -noE '\<fz_announce(_brief)?\(' preload/*.[ch] preload/*/*.[ch] | tr -d '('); do
	[[ $may_announce =~ [[:space:]]${place%%:*}[[:space:]] ]] ||
		finding "${place%:*}: ${place##*:}: a signal may end the call: use fz_block" \
			"(preload/real_call.h), or, if none can, add the file to the list here"
done

exit $found
