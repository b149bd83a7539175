#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect_changes.sh - "fiberize ps", bt, stat, top and trace of a process that changes while they
# look: it loads the library, ends, executes another program, its number is used again; and of one whose
# first thread has left.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need gdb jq

commands=(ps 'ps --stop' bt stat 'top --batch --count 1' 'trace --summary --seconds 0.05')

# ---- the loader is at work

cat >"$work/answers" <<'SH'
#!/bin/sh
# answers FIBERIZE DIRECTORY PID: what each command says of the process
for command in ps bt stat 'top --batch --count 1'; do
	$1 $command $3 >"$2/answer" 2>&1 </dev/null
	echo "$? $(sed "s/: $3: /: PID: /" "$2/answer")" >>"$2/answers of ${command%% *}"
done
SH
COMMAND="sh $work/answers $fiberize $work" LIBRARY=$library limited \
	gdb -nx -batch -x "$root/tests/lib/loading.gdb.py" --args "$helpers/becomes" - >"$work/gdb" 2>&1
dormant='0 fiberize: PID: no thread was made yet, so the library is dormant'
outside='107 fiberize: PID: libfiberize.so is not in this process'
for command in ps bt stat top; do
	same "$command: at each change of the mappings until the first thread" "$dormant$newline$outside" \
		"$(sort -u "$work/answers of $command")"
done

# ---- it changes between two looks

looks='1 2 3 4 5 6 8 11 15 21 30 45 70 110'
ended='^105:fiberize: [0-9]+: (the process has ended|no such process|the process has no memory: .*)$'
# It has no library until its loader has mapped it.
other='^(105:fiberize: [0-9]+: the process has executed another program meanwhile|107:fiberize: [0-9]+: libfiberize.so is not in this process)$'

# changing NAME REGEX COMMAND WORD...: becomes, with WORDS, changes before one look after the other; what the
# command says of it is in REGEX, or it has an answer
changing()
{
	local name=$1 regex=$2 command=$3 at said bad='' met=0
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
		# All was over before that look.
		[ -e "$work/done" ] || break
		said=$code:$(grep -v ' calls blocked ' <<<"$err")
		if [[ $said =~ $regex ]]; then
			met=$((met + 1))
		elif [[ $said != 0: && $said != 0:*' so the library is dormant' ]]; then
			bad="$bad at $at: $said"
		fi
	done
	same "$command: $name: one line that is right, or an answer" '' "$bad"
	yes "$command: $name: it was seen" [ $met -gt 3 ]
}

for command in "${commands[@]}"; do
	changing ends "$ended" "$command"
	changing 'executes another program' "$other" "$command" env -u LD_PRELOAD sleep 1000
done
changing 'executes itself' "$other" ps "$helpers/becomes" -

# ---- its number is another's

if unshare --pid --fork --mount-proc true 2>/dev/null; then
	export CHANGES_REUSE=1
	for command in ps bt 'top --batch --count 1'; do
		changing 'its number is used again' "$ended|$other" "$command"
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
	# With one processor no other kernel thread runs main, and so leaves in place of the first one.
	# shellcheck disable=SC2086 # no word, or one
	start "$fiberize" --processors 1 "$helpers/leaves" $how
	[ -z "$how" ] || must eventually has_left
	must eventually left
	name="its main thread has left${how:+, by the kernel}"
	same "$name: ps lists the others" 'leaves leaves leaves' "$(jq -r '[.threads[].name] | join(" ")' <<<"$out")"
	run "$fiberize" ps --stop "$pid"
	like "$name: ps --stop" '3 threads on *; stopped for *' "$out"
	run "$fiberize" bt "$pid"
	same "$name: bt" '0 3' "$code $(grep -c ' naps at .*leaves\.c:' <<<"$("$fiberize" bt --each "$pid" 2>/dev/null)")"
	run "$fiberize" stat "$pid"
	like "$name: stat" "leaves: process $pid, *MB of the process are resident*" "$out"
	run "$fiberize" top --batch --count 1 "$pid" 0.1
	like "$name: top" "leaves $pid: * threads on *resident [1-9]*sleep*" "$out"
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
