#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect_changes.sh - "fiberize ps", bt, stat, top and trace of a process that changes while they
# look: it loads the library, ends, executes another program, its number is used again; and of one whose
# first thread has left.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../lib/target.inc"
need gdb jq

commands=(ps 'ps --stop' bt stat 'top --batch --count 1 0.1' 'trace --summary --seconds 0.05')

# ---- the loader is at work

dormant='0: fiberize: PID: no thread was made yet, so the library is dormant'
outside='107: fiberize: PID: libfiberize.so is not in this process'
answers=$(TOOL=$fiberize COMMANDS='ps;bt;stat;top --batch --count 1' LIBRARY=$library limited \
	gdb -nx -batch -x "$root/tests/lib/loading.gdb.py" --args "$helpers/becomes" - 2>&1 | grep '^answer: ')
for command in ps bt stat 'top --batch --count 1'; do
	same "$command: at each system call until the first thread" "$dormant; $outside" \
		"$(sed -n "s/^answer: $command: //p" <<<"$answers" | sort | tr '\n' ';' | sed 's/;$//; s/;/; /')"
done

# ---- it changes between two looks

# The number of the first look that comes after all is over is not known before: each second one, and then
# each seventh.
looks=$(seq 1 2 40; seq 41 7 400)

# changing NAME PATTERN COMMAND WORD...: becomes, with WORDS, changes at one look after the other; what the
# command says of it is in the pattern, or it has an answer
changing()
{
	local name=$1 pattern=$2 command=$3 at bad='' met=0
	shift 3
	rm -f "$work/fifo"
	mkfifo "$work/fifo"
	export CHANGES_FIFO=$work/fifo CHANGES_DONE=$work/done
	for at in $looks; do
		rm -f "$work/done"
		start "$fiberize" "$helpers/becomes" "$work/fifo" "$@"
		# shellcheck disable=SC2086 # words
		CHANGES_AT=$at CHANGES_PID=$pid LD_PRELOAD=$helpers/changes.so run "$fiberize" $command "$pid"
		stop
		[ -e "$work/done" ] || break
		# shellcheck disable=SC2254 # a pattern
		case $code:$(grep -v ' calls blocked ' <<<"$err") in
		0: | 0:*'so the library is dormant') ;;
		$pattern) met=$((met + 1)) ;;
		*) bad="$bad at $at, $code: $err" ;;
		esac
		[[ $err != *"$newline"*"$newline"* ]] || bad="$bad at $at: $err"
	done
	same "$command: $name: one line that is right, or an answer" '' "$bad"
	yes "$command: $name: it was seen" [ $met -gt 3 ]
	yes "$command: $name: at each look" [ ! -e "$work/done" ]
}

for command in "${commands[@]}"; do
	changing ends '105:fiberize: *: @(the process has ended|no such process|the process has no memory*)' "$command"
	# It has no library until its loader has mapped it.
	changing 'executes another program' \
		'@(105:fiberize: *: the process has executed another program meanwhile|107:fiberize: *: libfiberize.so is not in this process)' \
		"$command" env -u LD_PRELOAD sleep 1000
done
changing 'executes itself' '@(105:fiberize: *: the process has executed another program meanwhile|107:fiberize: *: libfiberize.so is not in this process)' \
	ps "$helpers/becomes" -

# ---- its number is another's

if unshare --pid --fork --mount-proc true 2>/dev/null; then
	export CHANGES_REUSE=1
	for command in ps bt 'top --batch --count 1 0.1'; do
		changing 'its number is used again' \
			'@(105:fiberize: *: @(the process has ended|no such process)|107:fiberize: *: libfiberize.so is not in this process)' \
			"$command"
	done
	unset CHANGES_REUSE
else
	skip 'its number is used again' 'not permitted here: it needs CAP_SYS_ADMIN'
fi

# ---- its first thread has left

has_left()
{
	grep -q 'State:.Z' "/proc/$pid/status"
}

left()
{
	run "$fiberize" ps --json "$pid"
	[ "$(jq '[.threads[] | select(.state == "waits")] | length' <<<"$out")" = 3 ]
}

for how in '' raw; do
	# shellcheck disable=SC2086 # no word, or one
	start "$fiberize" "$helpers/leaves" $how
	[ -z "$how" ] || must eventually has_left
	must eventually left
	name="its main thread has left${how:+, by the kernel}"
	same "$name: ps lists the others" 'leaves leaves leaves' "$(jq -r '[.threads[].name] | join(" ")' <<<"$out")"
	run "$fiberize" ps --stop "$pid"
	like "$name: ps --stop" '3 threads on *; stopped for *' "$out"
	run "$fiberize" bt "$pid"
	same "$name: bt" '0 3' "$code $(grep -c ' naps at .*leaves\.c:' <<<"$("$fiberize" bt --full "$pid" 2>/dev/null)")"
	run "$fiberize" stat "$pid"
	like "$name: stat" "process $pid, *MB of the process are resident*" "$out"
	run "$fiberize" top --batch --count 1 0.1 "$pid"
	run "$fiberize" top --batch --count 1 "$pid" 0.1
	like "$name: top" "*$pid: * threads on *resident [1-9]*sleep*" "$out"
	run "$fiberize" trace --summary --seconds 0.5 "$pid"
	like "$name: trace" '*usleep *user space *naps at leaves.c:*' "$out"
	stop
done
start "$fiberize" --disable "$helpers/leaves"
must eventually has_left
run "$fiberize" ps "$pid"
like 'its main thread has left a process without fibers' '0 fiberize: * so the library is dormant' "$code $err"
stop
finish
