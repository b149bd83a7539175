#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/status.sh - "fiberize status": which processes run under fiberize, dormant ones, a library
# that was replaced or is of another version, what was measured of them, processes of other users.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/processes.inc
. "$(dirname "$0")/../../lib/processes.inc"
need setpriv

look()
{
	run "$fiberize" status --json
	json=$out
}

version=$("$fiberize" --version | sed 's/^fiberize //')
begin "$helpers/busy" idle
native=$pid
begin "$fiberize" --backend uring -p 2 "$helpers/busy" idle
ring=$pid
began=$(date +%s)
begin "$fiberize" --backend epoll -p 1 "$helpers/busy" idle
poll=$pid
begin "$fiberize" sh -c 'echo ready; kill -STOP "$$"'
dormant=$pid
must cp "$library" "$work/replaced.so"
begin "$fiberize" --library "$work/replaced.so" "$helpers/busy" idle
replaced=$pid
must cp "$library" "$work/new.so"
must mv "$work/new.so" "$work/replaced.so"
must cp "$library" "$work/removed.so"
begin "$fiberize" --library "$work/removed.so" "$helpers/busy" idle
removed=$pid
must rm "$work/removed.so"
# A folder whose name has what the kernel writes behind that of a deleted file; LD_PRELOAD takes no space.
must mkdir "$work/a (deleted) folder"
must ln -s "a (deleted) folder" "$work/folder"
must cp "$library" "$work/folder/same.so"
must cp "$library" "$work/folder/replaced.so"
begin env LD_PRELOAD="$work/folder/same.so" "$helpers/busy" idle
odd_same=$pid
begin env LD_PRELOAD="$work/folder/replaced.so" "$helpers/busy" idle
odd_replaced=$pid
must rm "$work/folder/replaced.so"
must cp "$library" "$work/folder/replaced.so"

# A description of a form that is not known yet, one that lacks an entry, and one without a version; one with
# an object that is larger than any number, and one with more entries than there can be.
must python3 - "$library" "$work/later.so" "$work/lacks.so" "$work/older.so" "$work/wide.so" "$work/many.so" <<'PYTHON'
import struct, sys
library, later, lacks, older, wide, many = sys.argv[1:]
data = open(library, 'rb').read()
# The description: magic, version, size of an entry, their number.
at = data.index(b'fiberize\x01\x00\x00\x00')
assert data.find(b'fiberize\x01\x00\x00\x00', at + 1) < 0
open(later, 'wb').write(data[:at + 8] + b'\x63' + data[at + 9:])
for name, path in ((b'backend_kind\0', lacks), (b'version\0', older)):
    entry = data.index(name, at)
    open(path, 'wb').write(data[:entry] + b'?' + data[entry + 1:])
size = data.index(b'started\0', at) + 32
open(wide, 'wb').write(data[:size] + struct.pack('<I', 4096) + data[size + 4:])
open(many, 'wb').write(data[:at + 16] + struct.pack('<I', 20000) + data[at + 20:])
PYTHON
begin "$fiberize" --library "$work/later.so" "$helpers/busy" idle
later=$pid
begin "$fiberize" --library "$work/lacks.so" "$helpers/busy" idle
lacks=$pid
begin "$fiberize" --library "$work/older.so" -p 2 "$helpers/busy" idle
older=$pid
begin "$fiberize" --library "$work/wide.so" -p 2 "$helpers/busy" idle
wide=$pid
begin "$fiberize" --library "$work/many.so" "$helpers/busy" idle
many=$pid
begin "$helpers/endless"
endless=$pid
begin "$fiberize" -p 2 "$helpers/leaves" raw
leaves=$pid
left()
{
	grep -q '^State:.Z' "/proc/$leaves/status"
}
must eventually left

look
same 'exit status, no complaint' 0: "$code:$err"
same 'native: not listed' '' "$(of "$native" .pid)"
uring=$(of "$ring" .backend)
[ "$uring" = epoll ] || same 'io_uring' io_uring "$uring"
same 'processors, threads' "busy $version 2 5 false null" \
	"$(of "$ring" '"\(.name) \(.version) \(.processors) \(.threads) \(.replaced) \(.note)"')"
same 'epoll' 'epoll 1 5' "$(of "$poll" '"\(.backend) \(.processors) \(.threads)"')"
since=$(of "$poll" .since)
yes 'since when' [ "$((since - began))" -ge -2 ] && yes 'not later than now' [ "$since" -le "$(date +%s)" ]
same 'dormant' 'null no thread was made yet' "$(of "$dormant" '"\(.backend) \(.note)"')"
same 'replaced' "true false null $version 5" \
	"$(of "$replaced" '"\(.replaced) \(.removed) \(.note) \(.version) \(.threads)"')"
same 'removed' "false true null $version 5" \
	"$(of "$removed" '"\(.replaced) \(.removed) \(.note) \(.version) \(.threads)"')"
same 'not removed, in an odd folder' 'false false' "$(of "$odd_same" '"\(.replaced) \(.removed)"')"
same 'replaced, in an odd folder' 'true false' "$(of "$odd_replaced" '"\(.replaced) \(.removed)"')"
same 'another form' 'its library is of another version: use the fiberize that came with it ? null' \
	"$(of "$later" '"\(.note) \(.version) \(.backend)"')"
same 'lacks an entry' "its library is of another version: use the fiberize that came with it $version null" \
	"$(of "$lacks" '"\(.note) \(.version) \(.backend)"')"
same 'without a version' 'null ? 2 5' "$(of "$older" '"\(.note) \(.version) \(.processors) \(.threads)"')"
same 'an object larger than a number' 'null 2 5' "$(of "$wide" '"\(.note) \(.processors) \(.threads)"')"
same 'its first thread has left' 'leaves 2 null' "$(of "$leaves" '"\(.name) \(.processors) \(.note)"')"
same 'too many entries' 'the description in its library is damaged' "$(of "$many" .note)"
refused 'ps: too many entries' 108 '*the description in its libfiberize.so is damaged' "$fiberize" ps "$many"
refused 'ps: notes without an end' 107 '*libfiberize.so is not in this process' "$fiberize" ps "$endless"
refused 'ps: another form' 108 '*in version 99, this tool reads 1*' "$fiberize" ps "$later"
refused 'ps: lacks an entry' 108 '*does not describe "backend_kind"*' "$fiberize" ps "$lacks"

# Each process that "ps" takes for one of fiberize's is listed, and no other.
wrong=
for pid in "${pids[@]}"; do
	"$fiberize" ps --count "$pid" >"$work/ps" 2>&1
	ps=$?
	listed=$(of "$pid" .pid)
	case $ps:$listed in
	107: | 0:"$pid" | 108:"$pid")	;;
	*)	wrong="$wrong $pid: ps $ps, listed <$listed>" ;;
	esac
done
same 'the same that ps looks at' '' "$wrong"

run "$fiberize" status
like 'text: head' '     PID NAME *' "$out"
like 'text' "*$newline* $poll busy  *$version  *epoll  * 1 * 5  *-  20??-??-?? ??:??:??$newline*" "$out"
like 'text: replaced' "*$newline* $replaced busy *  its library was replaced: a restart takes the new one*" "$out"
like 'text: removed' "*$newline* $removed busy *  its library was removed: after a restart it runs natively*" "$out"

# ---- what was measured

same 'nothing was measured' '[]' "$(jq -c '[.processes[].measured[]]' <<<"$json")"
begin "$fiberize" sh -c 'echo ready; kill -STOP "$$"' 'a b' --port=8080 -t 4 v1
numbers=$pid
mkdir -p "$XDG_STATE_HOME/fiberize"
file=$XDG_STATE_HOME/fiberize/measured
# measured CASE PROGRAM COMMAND [DIRECTORY]: one more line; CASE has blanks instead of tabs
measured()
{
	printf '%s\t%s\t%s\t%s\n' "${1// /$'\t'}" "${4-$PWD}" "$2" "$3" >>"$file"
}
busy=$(readlink -f "$helpers/busy")
measured '100 0.1.0 64 0 0.400 0.300 0.500 faster' "$busy" 'busy idle'
measured '200 0.1.0 64 0 0.600 0.550 0.650 faster' "$busy" './busy idle'
measured '200 0.1.0 0 500 1.100 0.900 1.200 undecided' "$busy" './busy idle'
printf '300\t0.1.0\t64\tx\n\n\t\t\n' >>"$file"
measured '300 0.1.0 64 0 0.100 0.100 0.100 faster' "$busy" 'busy idle 2'
measured '300 0.1.0 64 0 0.100 0.100 0.100 faster' "${busy}x" 'busy idle'
measured '300 0.1.0 64 0 0.100 0.100 0.100 faster' "$busy" 'busy idle' "$work"
measured '300 0.1.0 64 0 0.100 0.100 0.100 faster' "$busy" 'busy idle' -
# Figures that are none, and texts that nobody may print.
for figure in nan inf -0.5 1e300 0x1p3 1.2.3 '' 99999999999999; do
	measured "300 0.1.0 64 0 $figure 0.100 0.100 faster" "$busy" 'busy idle'
	measured "300 0.1.0 64 0 0.100 0.100 $figure faster" "$busy" 'busy idle'
done
for text in $'\xff' $'\e[2J' 'a"b' 0123456789012345; do
	measured "300 0.1.0 64 0 0.100 0.100 0.100 $text" "$busy" 'busy idle'
done
measured $'300 \xff 64 0 0.100 0.100 0.100 faster' "$busy" 'busy idle'
printf '300\0' >>"$file"
measured '300 0.1.0 64 0 0.100 0.100 0.100 faster' "$busy" 'busy idle'
sh=$(readlink -f "$(command -v sh)")
# shellcheck disable=SC2016 # as it is
words='sh -c '\''echo ready; kill -STOP "$$"'\'' '\''a b'\'
measured '300 0.1.0 64 0 0.700 0.600 0.800 faster' "$sh" "$words --port=0 -t 16 v1"
measured '400 0.1.0 64 0 0.200 0.200 0.200 faster' "$sh" "$words --port=0 -t 16 v2"
measured '400 0.1.0 64 0 0.200 0.200 0.200 faster' "$sh" "$words --port=0 -t x v1"
# No argument of these depends on the directory.
# shellcheck disable=SC2016
printf 'echo ready\nkill -STOP "$$"\n' >"$work/stops"
begin "$fiberize" sh -e "$work/stops" 8080 --file="$work/x" --at=127.0.0.1:80
absolute=$pid
for option in -f-x --file=x -Ix/y; do
	begin "$fiberize" sh "$work/stops" $option
	measured '500 0.1.0 64 0 0.200 0.200 0.200 faster' "$sh" "sh $work/stops $option" "$work"
	relative="${relative-}${relative+ }$pid"
done
measured '500 0.1.0 64 0 0.900 0.900 0.900 slower' "$sh" "sh -e $work/stops 0 --file=$work/x --at=127.0.0.1:8080" -
look
same 'absolute names: another directory' '0.9' "$(of "$absolute" '.measured[].cpu_ratio | tojson')"
same 'relative names in options: another directory' 0.2 "$(for pid in $relative; do of "$pid" '.measured[].cpu_ratio'; done)"
same 'the last bench, each of its cases' '[[200,64,null,0.6,0.55,0.65,"faster"],[200,null,500,1.1,0.9,1.2,"undecided"]]' \
	"$(of "$poll" '[.measured[] | [.when, .connections, .rate, .cpu_ratio, .low, .high, .verdict]] | tojson')"
same 'other numbers among its arguments' '0.7' "$(of "$numbers" '.measured[].cpu_ratio | tojson')"
run "$fiberize" status
like 'text: the last bench' "*$newline* $poll busy * 5 * 0.60..1.10?  20??*" "$out"
like 'text: one case' "*$newline* $numbers sh * 0.70  20??*" "$out"
# A line without an end, which is not looked at, and a last line behind it.
truncate -s 300000000 "$file"
echo >>"$file"
measured '600 0.1.0 64 0 0.300 0.300 0.300 faster' "$busy" 'busy idle'
run timeout 20 "$fiberize" status
like 'text: a very long line' "0:*$newline* $poll busy * 5 * 0.30  20??*" "$code:$out"
rm "$file"
mkfifo "$file"
run "$fiberize" status
like 'no file: nothing was measured' "0:*$newline* $poll busy * 5 * -  20??*" "$code:$out"
rm "$file"

if [ "$(id -u)" = 0 ]; then
	mkdir "$work/libexec"
	cp "$fiberize" "$library" "$work"
	cp "$build/libexec/inspect" "$work/libexec"
	chmod 755 "$work"
	run setpriv --reuid 65534 --regid 65534 --clear-groups -- env "$work/fiberize" status --json
	json=$out
	same 'as nobody: exit status' 0 "$code"
	same 'as nobody: not listed' '' "$(of "$ring" .pid)"
	same 'as nobody: counted' true "$(jq '.forbidden >= 7' <<<"$json")"
	run setpriv --reuid 65534 --regid 65534 --clear-groups -- env "$work/fiberize" status
	like 'as nobody: how to go on' '* processes that only root may look at: run "fiberize status" as root' "$out"
	run unshare --pid --fork --mount-proc "$fiberize" status
	same 'alone in a namespace' 'no process runs under fiberize' "$out"
else
	skip 'as nobody' 'needs root'
fi

refused 'JSON of a service' 2 '*no such option*' "$fiberize" status --json a.service
refused 'no such option' 2 '*no such option*' "$fiberize" status --nonesuch
finish
