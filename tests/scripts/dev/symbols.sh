#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/symbols.sh - check-symbols.sh refuses a table that is wrong, by one line that says
# where and what to do, and so do "make check" and check-lists.sh, also for profiles that are shipped; and the tools say the words of the table.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

build=$(cd "$build" && pwd) || exit 1
cp -r "$root/arch" "$root/preload" "$root/runtime" "$root/scripts" "$work" || exit 1
mkdir "$work/tests"
cp -r "$root/tests/programs" "$work/tests" || exit 1
cd "$work" || exit 1
cp preload/symbols.def table
cp preload/topics.def topics

checked()
{
	scripts/dev/check-symbols.sh "$build" 2>&1
}

# rejects NAME SED LINE-WITH WHAT: the table after SED is refused for the line of it that has
# LINE-WITH, by WHAT and nothing else
rejects()
{
	sed "$2" table >preload/symbols.def
	number=$(grep -n -m1 -- "$3" preload/symbols.def | cut -d: -f1)
	same "$1" "check-symbols: preload/symbols.def:$number: $4" "$(checked)"
	cp table preload/symbols.def
}

# rejects_elsewhere NAME FILE SED WHAT: by the whole of WHAT
rejects_elsewhere()
{
	cp "$2" kept
	sed "$3" kept >"$2"
	same "$1" "check-symbols: $4" "$(checked)"
	cp kept "$2"
}

same 'the table as it is' '' "$(checked)"

first=$(grep -n '^FZ_SYMBOL(read,' table | cut -d: -f1)
line=$(sed -n "${first}p" table)
sed "${first}p" table >preload/symbols.def
same 'a name twice' "check-symbols: preload/symbols.def:$((first + 1)): read is in line $first already; delete one of the two" "$(checked)"
rejects 'a name that libc keeps and that is taken over' 's/^FZ_LIBC(INSIDE, log, closelog/&, flock/' \
	'^FZ_LIBC(INSIDE, log' \
	"flock is in line $(grep -n '^FZ_SYMBOL(flock,' table | cut -d: -f1) already; delete one of the two"
rejects 'an alias twice' 's/^\(FZ_SYMBOL(write,.*\))$/\1, __read)/' '^FZ_SYMBOL(write,' \
	"__read is in line $first already; delete one of the two"
rejects 'not sorted' "${first}d; /^FZ_SYMBOL(recv,/a $line" '^FZ_SYMBOL(read,' \
	'read comes after recv; sort the names (LC_ALL=C)'
rejects 'names of libc, not sorted' 's/closelog, openlog/openlog, closelog/' '^FZ_LIBC(INSIDE, log' \
	'closelog comes after openlog; sort the names (LC_ALL=C)'
rejects 'no such rung' '/^FZ_SYMBOL(read,/s/RING/RINGS/' '^FZ_SYMBOL(read,' \
	'no such rung of a function that is taken over: RINGS; use one of: USER RING READY ANNOUNCED BRIEF TRACKED SELF'
rejects 'a rung of the other kind' 's/^FZ_LIBC(INSIDE, log/FZ_LIBC(RING, log/' '^FZ_LIBC(RING' \
	"no such rung of a function that stays libc's: RING; use one of: INSIDE LATE NEVER"
rejects 'no such topic' '/^FZ_SYMBOL(read,/s/reading/thinking/' '^FZ_SYMBOL(read,' \
	'no such topic: thinking; use one of preload/topics.def, or add it there'
rejects 'no such family' '/^FZ_SYMBOL(read,/s/ALONE/LONELY/' '^FZ_SYMBOL(read,' \
	'no such family: LONELY; use one of: ALONE MUTEX COND OWN NO'
rejects 'no such word for cancellation' '/^FZ_SYMBOL(read,/s/CANCEL/MAYBE/' '^FZ_SYMBOL(read,' \
	'no such word for cancellation: MAYBE; use one of: CANCEL NO'
rejects 'a topic for what never waits' '/^FZ_SYMBOL(dup,/s/NO, NULL/closing, NULL/' \
	'^FZ_SYMBOL(dup,' 'dup never waits, being TRACKED; its topic must be NO'
rejects 'a column too few' '/^FZ_SYMBOL(recv,/s/ALONE, //' '^FZ_SYMBOL(recv,' \
	'not FZ_SYMBOL(name, rung, cancel, family, topic, version, aliases...); correct it'
rejects 'over two lines' '/^FZ_SYMBOL(read,/s/)$/,/' '^FZ_SYMBOL(read,' \
	'not one call of a macro; write it in one line'
rejects 'another macro' "${first}i FZ_ALIAS(readz, read)" '^FZ_ALIAS' \
	'none of FZ_TOPIC, FZ_RUNG, FZ_SYMBOL, FZ_LIBC and FZ_TRAIT; correct it'
rejects 'not in libc' '/^FZ_SYMBOL(writev,/a FZ_SYMBOL(writez, RING, NO, NO, writing, NULL)' \
	'^FZ_SYMBOL(writez' \
	'libc has no writez; correct the name, or, in an FZ_SYMBOL, say OPTIONAL if other libcs have it'
rejects "libc's, and not in libc" 's/^FZ_LIBC(INSIDE, log, closelog, /&closelogs, /' \
	'^FZ_LIBC(INSIDE, log' \
	'libc has no closelogs; correct the name, or, in an FZ_SYMBOL, say OPTIONAL if other libcs have it'
rejects 'not in that version' '/^FZ_SYMBOL(read,/s/NULL/"GLIBC_9.9"/' '^FZ_SYMBOL(read,' \
	'libc has read, but not in version GLIBC_9.9; name one that it has'
rejects 'another name, not in libc' 's/^FZ_SYMBOL(accept4,/FZ_SYMBOL(accept5,/' '^FZ_SYMBOL(accept5' \
	'libc has no accept5; correct the name, or, in an FZ_SYMBOL, say OPTIONAL if other libcs have it'
number=$(grep -n '^FZ_RUNG(BRIEF,' preload/rungs.def | cut -d: -f1)
rejects_elsewhere 'a rung twice' preload/rungs.def "${number}p" \
	"preload/rungs.def:$((number + 1)): the rung BRIEF is in line $number already; delete one of the two"
rejects_elsewhere 'a rung that is missing' preload/rungs.def '/^FZ_RUNG(BRIEF,/d' \
	'preload/rungs.def: has no FZ_RUNG(BRIEF, word, text); add it'
rejects 'without a body' '/^FZ_SYMBOL(accept,/i FZ_SYMBOL(abs, SELF, NO, NO, NO, NULL)' \
	'^FZ_SYMBOL(abs' 'abs has no body; write one in preload/, with FZ_EXPORT'
rejects 'an alias without a body' '/^FZ_SYMBOL(writev,/s/)$/, _IO_puts)/' '^FZ_SYMBOL(writev' \
	"$build/libfiberize.so does not export _IO_puts; run make, or add the FZ_EXPORT_ALIAS"
rejects 'an alias that libc lacks' '/^FZ_SYMBOL(writev,/s/)$/, __writev)/' '^FZ_SYMBOL(writev' \
	'libc has no __writev; correct the name, or, in an FZ_SYMBOL, say OPTIONAL if other libcs have it'
rejects 'without a test' '/^FZ_SYMBOL(flock,/s/file_locks/mounts/' '^FZ_SYMBOL(flock,' \
	'no test of mounts uses flock; call it in one of those that preload/topics.def names'

# A call that never waits has no topic: any program may test it.
rejects 'a trait of a name that libc has not' 's/^FZ_TRAIT(SERVES, accept, accept4,/FZ_TRAIT(SERVES, accept, accept5,/' \
	'^FZ_TRAIT(SERVES' \
	'libc has no accept5; correct the name, or, in an FZ_SYMBOL, say OPTIONAL if other libcs have it'
rejects 'no such trait' 's/^FZ_TRAIT(SERVES/FZ_TRAIT(WAITS/' '^FZ_TRAIT(WAITS' \
	'no such trait: WAITS; use one of: EXECS LOOP PLUGINS PROCESSES SERVES THREADS'
mkdir -p less/tests
ln -s "$build"/{libfiberize.so,arch,runtime,preload} less
cp -rs "$build/tests/programs" less/tests
rm less/tests/programs/wait_traced
mv tests/programs/process/wait_traced.c traced
echo '/* ptrace */' >>tests/programs/process/wait_own.c
same 'never waits, and without a test' "check-symbols: preload/symbols.def:$(grep -n '^FZ_SYMBOL(ptrace,' \
	table | cut -d: -f1): no test uses ptrace; call it in a program of tests/programs" \
	"$(scripts/dev/check-symbols.sh less 2>&1)"
mv traced tests/programs/process/wait_traced.c

number=$(grep -n '^FZ_TOPIC(mounts,' topics | cut -d: -f1)
rejects_elsewhere 'a test that is not there' preload/topics.def \
	'/^FZ_TOPIC(mounts,/s/file_calls/file_calls no_such/' \
	"preload/topics.def:$number: there is no tests/programs/*/no_such.c; correct the name"
rejects_elsewhere 'a topic twice' preload/topics.def '/^FZ_TOPIC(mounts,/p' \
	"preload/topics.def:$((number + 1)): the topic mounts is in line $number already; delete one of the two"
rejects_elsewhere 'a topic of nothing' preload/topics.def \
	'/^FZ_TOPIC(mounts,/i FZ_TOPIC(moods, "moods", "")' \
	"preload/topics.def:$number: no function has the topic moods; delete the line"
number=$(grep -n '^FZ_EXPORT.* readv(' preload/io/read.c | cut -d: -f1)
rejects_elsewhere 'counted as another' preload/io/read.c 's/FZ_SYM_readv)/FZ_SYM_read)/' \
	"preload/io/read.c:$number: readv counts as read; use FZ_SYM_readv"
rejects_elsewhere 'a cancellation point that is forgotten' preload/symbols.def 's/, fgets,/,/' \
	'preload/symbols.def: POSIX permits fgets to be a cancellation point, so it may wait; add a line (CANCEL only if it is one in glibc)'
[ "$(uname -m)" != x86_64 ] ||
	rejects_elsewhere 'a system call that is forgotten' preload/symbols.def 's/ fsmount,//' \
		'preload/symbols.def: fsmount makes the system call fsmount, and has no line that says how it waits; add one, or name it as an alias'
rejects_elsewhere 'the manual is stale' scripts/package/libfiberize.7 's/^msync$/msink/' \
	'scripts/package/libfiberize.7: not up to date; run scripts/dev/gen-symbols.sh --update'

# Options of the commands that look at a process.
cp scripts/inspect/commands.def commands
number=$(grep -n '^FZ_OPTION(ps, hex,' commands | cut -d: -f1)
sed "${number}i FZ_OPTION(ps, wide, \"\", \"wide lines\")" commands >scripts/inspect/commands.def
same 'an option that the manual has not' "check-commands: scripts/inspect/commands.def:$number: scripts/package/fiberize.1 does not have --wide of fiberize ps in the synopsis and the section PS; describe it there" \
	"$(scripts/dev/check-commands.sh)"
sed "${number}d" commands >scripts/inspect/commands.def
number=$(grep -n -m1 '^\.RB \[ .-.-hex \]' scripts/package/fiberize.1 | cut -d: -f1)
same 'an option that is gone' "check-commands: scripts/package/fiberize.1:$number: fiberize ps has no --hex; delete it, or add its line to scripts/inspect/commands.def" \
	"$(scripts/dev/check-commands.sh)"

# announced NAME FILE USE WHAT: a line USE at the end of FILE is refused by WHAT
announced()
{
	rejects_elsewhere "$1" "$2" "\$a $3" "$2:$(($(wc -l <"$2") + 1)): fz_announce: a signal may end the call; use fz_block (preload/real_call.h), or, if none can, $4 the list in check-symbols.sh"
}
announced 'a call that is announced and not repeated' preload/io/terminal.c \
	'static void tell(struct fz_fiber *f) { fz_announce (f); }' 'add preload/io/terminal.c:tell to'
announced 'another function of a file that may announce' preload/process/spawn.c \
	'static void tell(struct fz_fiber *f) { fz_announce(f); }' 'add preload/process/spawn.c:tell to'
announced 'an announcement by a pointer' preload/process/spawn.c \
	'static void (*const tell)(struct fz_fiber *) = fz_announce;' 'move it into a function of'
n=$(wc -l <preload/io/terminal.c)
for use in 'static int fails(void) { return EINVAL; }' 'static void fails(void) { errno = EINVAL; }' \
	'static int fails(int ret) { return ret ? errno : 0; }'; do
	rejects_elsewhere "an error in libc's convention" preload/io/terminal.c "\$a $use" \
		"preload/io/terminal.c:$((n + 1)): turns an error into libc's convention; return fz_leave(-E...) or fz_leave_pthread(-E...), or -E... to a caller that does (preload/gate.h)"
done
number=$(grep -n '^SERVES("apr_socket_listen ' scripts/check/calls.def | cut -d: -f1)
for name in accept4 accept5 exel; do
	rejects_elsewhere "$name among other libraries' calls" scripts/check/calls.def "${number}s/apr_socket_listen/$name/" \
		"scripts/check/calls.def:$number: none of the libraries in check-symbols.sh has $name; if libc has it, name it in an FZ_TRAIT of preload/symbols.def, otherwise name its library there"
done

# "make check" begins with the table: nothing is compiled, and no test runs.
mkdir -p tests/model tests/fuzz
cp "$root/Makefile" .
cp "$root/tests/model/build.mk" tests/model
cp "$root/tests/fuzz/build.mk" tests/fuzz
printf '#!/bin/sh\n' >scripts/dev/deps.sh
printf '#!/bin/sh\necho "tests were run"\n' >tests/run.sh
chmod +x tests/run.sh

# make_check_rejects NAME SED LINE-WITH WHAT: as rejects
make_check_rejects()
{
	sed "$2" table >preload/symbols.def
	number=$(grep -n -m1 -- "$3" preload/symbols.def | cut -d: -f1)
	same "make check: $1" "check-symbols: preload/symbols.def:$number: $4" \
		"$(env -u MAKEFLAGS -u MAKELEVEL make check 2>&1 | grep -v '^make: \*\*\* .* Error 1$')"
	cp table preload/symbols.def
}
make_check_rejects 'a name twice' "${first}a FZ_SYMBOL(read, SELF, NO, NO, NO, NULL)" '^FZ_SYMBOL(read, SELF' \
	"read is in line $first already; delete one of the two"
make_check_rejects 'an alias twice' 's/^\(FZ_SYMBOL(write,.*\))$/\1, __read)/' '^FZ_SYMBOL(write,' \
	"__read is in line $first already; delete one of the two"
make_check_rejects 'not sorted' "${first}d; /^FZ_SYMBOL(recv,/a $line" '^FZ_SYMBOL(read,' \
	'read comes after recv; sort the names (LC_ALL=C)'
make_check_rejects 'no such rung' '/^FZ_SYMBOL(read,/s/RING/RINGS/' '^FZ_SYMBOL(read,' \
	'no such rung of a function that is taken over: RINGS; use one of: USER RING READY ANNOUNCED BRIEF TRACKED SELF'
make_check_rejects 'not in libc' '/^FZ_SYMBOL(writev,/a FZ_SYMBOL(writez, RING, NO, NO, writing, NULL)' \
	'^FZ_SYMBOL(writez' \
	'libc has no writez; correct the name, or, in an FZ_SYMBOL, say OPTIONAL if other libcs have it'
yes 'make check: nothing is compiled' [ ! -e build ]

# Lists in pages.
same 'the lists as they are' '' "$(scripts/dev/check-lists.sh 2>&1)"
# list NAME FILE SED WHAT
list()
{
	cp "$2" kept
	sed -i "$3" "$2"
	same "$1" "check-lists: $4" "$(scripts/dev/check-lists.sh 2>&1)"
	cp kept "$2"
}
list 'a wait that has no word' runtime/inspect/fields.def '/^FZ_WAIT(for_futex/d' \
	'runtime/inspect/fields.def: has no FZ_WAIT with FZ_FOR_FUTEX; add it'
list 'a number that the manual has not' runtime/sched/carrier.h '/^	FZ_LEFT_ENDED,/i \	FZ_LEFT_PLANTED,' \
	"scripts/package/libfiberize.7:$(grep -n '^how the first was left:' scripts/package/libfiberize.7 | cut -d: -f1): is not what the source has; write: how the first was left: 0 nothing, 1 parked, 2 yielded, 3 planted, 4 ended, 5 no processor, 6 moved."
number=$(grep -n '^| heap |' runtime/DESIGN.md | cut -d: -f1)
list 'ranks in another order' runtime/base/lock.h 's/RANK(HEAP)/RANK(PLANTED)/' \
	"runtime/DESIGN.md:$number: the table has the rank \"heap\" where \"planted\" must be; correct it, as FZ_RANKS of runtime/base/lock.h"
# profiles NAME FILE LINE SED WHAT: after SED the first line that matches LINE is the one that is named
profiles()
{
	list "$1" "$2" "$4" "$2:$(sed "$4" "$2" | grep -n "$3" | head -n 1 | cut -d: -f1): $5"
}
shipped=scripts/package/profiles.conf pods=scripts/kubernetes/profiles.yaml
python=$(sed -n 's/^# python: //p' $shipped)
profiles 'a figure that was never measured' $shipped '^# python:' 's/^# python: operations.s 1/&2/' \
	"is not what scripts/bench/FIGURES.md has; write: # python: $python"
profiles 'a figure in words' $shipped '^# 0\.59' '0,/^# A thread for each connection.$/s//# 0.59 (0.58..0.60)/' \
	'is a figure in another form than # WORKLOAD: operations/s ...; correct it'
profiles 'a program that loses' $shipped '^\[fio\]' '/^\[fio/,/= 0/s/= 0/= 1/' '[fio] is on, although it is slower'
profiles 'an event loop' $pods '\[memcached\]' '/\[memcached/,/= 0/s/= 0/= 1/' '[memcached] is on, although it gains nothing'
profiles 'a figure is left out' $pods '\[nginx\]' '/# nginx: /s/:.*/ is an event loop/;s/# nginx is/# no figures: it is/' \
	"[nginx] says nothing of nginx; add $(sed -n 's/^ *\(# nginx: \)/\1/p' $pods)"
profiles 'no word of a longer p99' $shipped '^\[java\]' '/^# p99 was longer in java/d' \
	'[java] is on; write: # p99 was longer in java, java_large: measure that of yours.'
profiles 'a longer p99 that was not' $shipped '^\[ruby' '/^# ruby: /a # p99 was longer in ruby: measure that of yours.' \
	'[ruby*] is on; remove the line on p99'
profiles 'no figures and no reason' $pods '\[node\]' 's/no figures: an event/an event/' '[node] has no figures; add them, or say # no figures: WHY'
profiles 'neither on nor off' $pods '\[node\]' '/\[node/,/= 0/{/= 0/d}' '[node] has no line everywhere = 0 or 1; add it'

# The words of each rung, in all that prints them.
"$fiberize" --stats "$programs/misc_calls" 2>stats >/dev/null
"$fiberize" check "$programs/misc_calls" >told
for case in 'accept:request' 'usleep:user space' 'eventfd_read:readiness' 'tcdrain:announced' \
	'getrandom:brief' 'setsockopt:tracked'; do
	name=${case%%:*} word=${case#*:}
	same "--stats: $name is $word" 1 "$(grep -c "^fiberize: .*: $name ($word): " stats)"
	[ "$word" = tracked ] ||
		same "check: $name is $word" 1 "$(grep -c "^  $word .*\<$name\>" told)"
	same "the manual has $word" 1 \
		"$(sed -n "/^\.SH BLOCKING CALLS/,/^\.SH WHAT DIFFERS/p" scripts/package/libfiberize.7 | grep -c "^\.I $word\$")"
done
same 'check: puts waits inside libc' 1 "$(grep -c '^  inside libc .*\<puts\>' told)"

finish
