#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/top/top.sh - "fiberize top --batch": its numbers are those of ps and stat; many threads; a process that ends or
# executes meanwhile; processes that cannot be looked at.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq python3 setpriv taskset
chmod 755 "$work"

calls=$helpers/calls

# picture OPTION...: sets out to one picture in plain text
picture()
{
	run "$fiberize" top --batch --count 1 --rows 0 "$@" "$pid" 0.2
}

# table NAME: the rows of the table, in the last picture of $out
table()
{
	awk -v name="$1," '
		$1 == name { rows = ""; skip = 1; inside = 1; next }
		!NF { inside = 0 }
		inside && skip { skip = 0; next }
		inside { rows = rows $0 "\n" }
		END { printf "%s", rows }' <<<"$out"
}

# calls FUNCTION: how many, by stat
calls()
{
	run "$fiberize" stat --json "$pid"
	jq ".calls[]? | select(.function == \"$1\").by_fibers" <<<"$out"
}

# ---- the numbers of stat

mkfifo "$work/fifo"
"$fiberize" --processors 1 --stats "$calls" "$work/fifo" >"$work/said" 2>"$work/complaints" &
pid=$!
opens()
{
	[ "$(calls open)" = 1 ]
}

# The other thread goes on: the processor was taken.
runs_again()
{
	[ "$(calls usleep)" -gt $((before + 10)) ]
}

must eventually opens
before=$(calls usleep)
must eventually runs_again
: >"$work/fifo"
must eventually grep -q ready "$work/said"
all_wait()
{
	run "$fiberize" ps --json "$pid"
	jq -e '[.threads[].state] == ["waits"]' <<<"$out" >/dev/null
}
must eventually all_wait
run "$fiberize" stat --json "$pid"
stat=$out
picture
same 'calls: each function, its rung and number are those of stat' "$(jq -r '.calls[] |
	"\(.function) \(.rung | gsub(" "; "-")) \(.by_fibers + .passed_through)"' <<<"$stat" | sort)" \
	"$(table calls | awk '{ print $1, $2, $NF }' | sort)"
same 'late: the functions of stat' "$(jq -r '.calls[] | select(.late > 0) | "\(.function) \(.late)"' <<<"$stat")" \
	"$(table late | awk '{ print $1, $4 }')"
like 'late: the call is there' '*open 1*' "$(table late | awk '{ print $1, $4 }')"
same 'waits: the numbers of stat' "$(jq -r '.waits | to_entries[] | select(.value > 0) | .value' <<<"$stat" | sort)" \
	"$(table waits | awk '$4 != "-" { print $4 }' | sort)"
same 'nothing happens: rates are 0' '0 0 0 0 0 0 0' "$(table calls | awk '{ for (i = 3; i <= 9; i++) sum[i] += $i }
	END { print sum[3], sum[4], sum[5], sum[6], sum[7], sum[8], sum[9] }')"
idle()
{
	picture
	[ "$(table processors | awk '{ print $2, $3, $4, $5 }')" = 'idle 0.0 0.0 100.0' ]
}
yes 'nothing happens: the processor is idle' eventually idle
stop

# ---- processors that wait for a CPU

cat >"$work/computes.c" <<'PROGRAM'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static void *computes(void *arg)
{
	for (volatile unsigned long i = 0;; i++)
		continue;
	return arg;
}

int main(void)
{
	pthread_t t;

	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, computes, NULL);
	pthread_setname_np(t, "computes");
	puts("ready");
	fflush(stdout);
	pthread_join(t, NULL);
	return 0;
}
PROGRAM
must "$CC" -O1 -Wall -pthread -o "$work/computes" "$work/computes.c"
start taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" \
	"$fiberize" --stats --processors 2 "$work/computes"
# Both processors always have something to run, and one CPU.
delayed()
{
	picture
	[ "$(table processors | awk '{ busy += $3; delay += $4; idle += $5 }
		END { print NR, (busy < 120), (delay > 60), (idle < 30) }')" = '2 1 1 1' ]
}
yes 'two processors on one CPU are delayed, not idle' eventually delayed
same 'calls: the columns line up' 1 "$(awk '/^calls,/ { inside = 1; next } !NF { inside = 0 }
	inside { lengths[length($0)] } END { print length(lengths) }' <<<"$out")"
has 'calls: the longest rung' "$work/out" '^pthread_setname_np *for-the-fiber '
stop

# ---- rates

# The numbers that each picture and the one before must agree in: the difference of the totals is the rate times
# the time; the rates of the processors add up; the shares are all of the time.
agree()
{
	awk '
		function off(a, b, by) { return a - b > by || b - a > by }
		/ s from picture to picture$/ {
			seconds = $0
			sub(/ s from picture.*/, "", seconds)
			sub(/.*; /, "", seconds)
			pictures++
		}
		/^per second:/ { switches = $3; sum = processors = 0 }
		/^[a-z]*,/ { table = $1 }
		table == "processors," && $1 ~ /^[0-9]/ {
			sum += $8
			processors++
			if (off($3 + $4 + $5, 100, 0.2))
				print "shares: " $0
		}
		/^calls,/ && (processors < 1 || off(sum, switches, processors + 1))
		table == "calls," && ($1 == "read" || $1 == "write") {
			if (pictures > 1 && off($NF - total[$1], $3 * seconds, $3 * 0.006 + seconds + 1))
				print "rate: " $0 " before " total[$1] " s " seconds
			total[$1] = $NF
			moved += $3 > 0
		}
		END { print pictures, (moved > 2 ? "moved" : "stood still") }' <<<"$out"
}

start "$fiberize" --stats "$calls" talk
before=$(calls read)
run "$fiberize" top --batch --count 3 "$pid" 0.3
same 'three pictures agree' '3 moved' "$(agree)"
total=$(table calls | awk '$1 == "read" { print $NF }')
after=$(calls read)
yes 'reads: not fewer than stat had' [ "$before" -le "$total" ]
yes 'reads: not more than stat has' [ "$total" -le "$after" ]
stop

# ---- the threads of ps

# threads_of_ps, fibers: "TID STATE NAME DETAIL" of each thread; deadlines go on
threads_of_ps()
{
	run "$fiberize" ps --json "$@" "$pid"
	jq -r '.threads[] | select(.name != "computes") |
		"\(.tid) \(.state) \(.name) \(.detail // "-" | sub(", for [0-9.]* s more"; ""))"' <<<"$out"
}

fibers()
{
	table fibers | awk '{
		tid = substr($0, 1, 8); state = substr($0, 10, 9); name = substr($0, 59, 15); detail = substr($0, 75)
		gsub(/ /, "", tid); sub(/ *$/, "", state); sub(/ *$/, "", name); sub(/, for [0-9.]* s more/, "", detail)
		if (name != "computes") print tid, state, name, detail }'
}

start "$fiberize" "$helpers/waiters"
must eventually settled
ps=$(threads_of_ps)
picture --sort tid
same 'fibers: those of ps' "$ps" "$(fibers)"
like 'the head' "*$pid: 14 threads on * processor*: *13 waits*CPU *per second: *" "$out"
like 'without --stats' '*calls, by rate: calls are not counted: *--stats*late, by *--stats*' "$out"
same 'waits: the kinds of ps' "$(run "$fiberize" ps --json "$pid"; jq -r '.threads[] | select(.state == "waits").waits_for' <<<"$out" |
	sort | uniq -c | awk '{ $1 = $1; print }' | sort)" \
	"$(table waits | awk '$NF != "request" { n = $1; sub(/.*-  /, ""); sub(/request: /, ""); print n, $0 }' | sort)"
picture --sort name
same '--sort name' "$(threads_of_ps --sort name)" "$(picture --sort name; fibers)"
computes_first()
{
	picture --sort cpu
	[[ $(table fibers | head -n 1) == *' computes '* ]]
}
yes 'the thread that computes is the hottest' eventually computes_first

# ---- the command line

refused 'no such option' 2 '*--wide: no such option; fiberize top *' "$fiberize" top --wide 1
refused 'no process' 2 '*one process id is needed*' "$fiberize" top
refused 'no number' 2 '*x1: not a process id*' "$fiberize" top --batch x1
refused 'no count' 2 '*--count 0: must be a whole number from 1 to 2147483647' "$fiberize" top --batch --count 0 1
refused 'no value' 2 '*--rows: needs a value*' "$fiberize" top --batch --rows
refused 'no interval' 2 '*0.01: not a number of seconds*' "$fiberize" top --batch 1 0.01
refused 'no such key' 2 '*--sort size: no such key; there are fibers: cpu *' "$fiberize" top --batch --sort size 1
refused 'a count on the screen' 2 '*--batch only' "$fiberize" top --count 1 1
refused 'no terminal' 104 '*must be a terminal*--batch*' "$fiberize" top "$pid"
refused 'another user' 106 '*not allowed*ptrace*' \
	setpriv --reuid 65534 --clear-groups "$fiberize" top --batch "$pid"
stop
refused 'the process is gone' 105 '*no such process' "$fiberize" top --batch "$pid"
start sh -c 'echo ready; exec sleep 1000'
refused 'not fiberized' 107 '*libfiberize.so is not in this process' "$fiberize" top --batch "$pid"
stop
python3 - "$library" "$work/libfiberize.so" <<'END'
import struct, sys
old = open(sys.argv[1], 'rb').read()
head = b'fiberize' + struct.pack('<I', 1)
assert old.count(head) == 1
open(sys.argv[2], 'wb').write(old.replace(head, b'fiberize' + struct.pack('<I', 77)))
END
start "$fiberize" --library "$work/libfiberize.so" "$helpers/waiters"
refused 'another version' 108 '*version 77*' "$fiberize" top --batch "$pid"
stop
# shellcheck disable=SC2016 # for the shell
start "$fiberize" sh -c 'echo ready; read -r line <"$0"' "$work/fifo"
run "$fiberize" top --batch "$pid"
same 'no thread yet' "0 fiberize: $pid: no thread was made yet, so the library is dormant" "$code $err"
stop

# It has made a thread.
start "$fiberize" --disable "$work/computes"
dormant="0 fiberize: $pid: switched off (FIBERIZE_DISABLE or /etc/fiberize/disable), so the library is dormant"
for command in 'top --batch' ps bt stat; do
	# shellcheck disable=SC2086 # words
	run "$fiberize" $command "$pid"
	same "$command: switched off" "$dormant" "$code $err"
done
run "$fiberize" status --json
same 'status: switched off' 'switched off (FIBERIZE_DISABLE or /etc/fiberize/disable)' \
	"$(jq -r ".. | objects | select(.pid? == $pid).note" <<<"$out")"
stop
start "$helpers/forbid_io_uring" "$fiberize" --backend uring "$work/computes"
run "$fiberize" ps "$pid"
like 'ps: dormant for another reason' "0 fiberize: $pid: only io_uring is wanted *, so the library is dormant" "$code $err"
stop

# ---- it ends, or executes, meanwhile

# watched SIGNAL COMMAND...: starts it, and looks at it in plain text, as count says, until the signal; sets
# code and err
watched()
{
	local signal=$1 watcher
	shift
	rm -f "$work/pictures"
	start "$@"
	"$fiberize" top --batch "${count[@]}" "$pid" 0.1 >"$work/pictures" 2>"$work/err" &
	watcher=$!
	must eventually grep -qs '^fibers' "$work/pictures"
	kill -"$signal" "$pid"
	wait "$watcher" 2>/dev/null
	code=$?
	err=$(cat "$work/err")
	stop
}

count=(--count 100000)
watched KILL "$fiberize" "$helpers/crowd" 3
same 'it ends before all pictures' "105 fiberize: $pid: the process has ended" "$code $err"
watched USR1 "$fiberize" "$calls" talk
same 'it executes another program' "105 fiberize: $pid: the process has executed another program meanwhile" "$code $err"
count=()
watched KILL "$fiberize" "$helpers/crowd" 3
same 'until it ends' "0 fiberize: $pid: the process has ended" "$code $err"

# ---- many threads

start "$fiberize" "$helpers/crowd" 2000
run "$fiberize" top --batch --count 1 --rows 7 --sort tid "$pid" 0.1
same '--rows' 7 "$(table fibers | wc -l)"
like 'all are counted' '*: 2001 threads on *fibers, by tid: 2001*' "$out"
picture
same 'each is listed, once' 2001 "$(table fibers | awk '{ print $1 }' | sort -u | wc -l)"
same 'what they wait for' '2000 condition variable' "$(table waits | awk '$1 == 2000 { print $1, $5, $6 }')"
stop
finish
