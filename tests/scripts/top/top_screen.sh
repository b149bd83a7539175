#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/top/top_screen.sh - "fiberize top" on a real terminal emulator (tmux): each key, another size, signals and job
# control, many threads, a process that ends meanwhile, a thread that does not stop, terminals that cannot be used.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq tmux
calls=$helpers/calls

# calls FUNCTION: how many, by stat
calls()
{
	run "$fiberize" stat --json "$pid"
	jq ".calls[]? | select(.function == \"$1\").by_fibers" <<<"$out"
}

unset TMUX
export LC_ALL=C.UTF-8

# in_tmux WORDS...: of a server of this script's own
in_tmux()
{
	tmux -S "$work/tmux" -f "$work/tmux.conf" "$@"
}

end_tmux()
{
	in_tmux kill-server
}
at_exit end_tmux
printf '%s\n' 'set -g status off' 'set -g default-terminal screen' 'set -s escape-time 0' 'set -s exit-empty off' \
	>"$work/tmux.conf"

# terminal COLUMNS LINES COMMAND: runs the command in a new terminal, of which the others know by $session
session=0
terminal()
{
	in_tmux kill-session -t "=$session" 2>/dev/null
	session=$((session + 1))
	must in_tmux new-session -d -s "$session" -x "$1" -y "$2" "$3"
}

screen()
{
	in_tmux capture-pane -p -t "=$session:"
}

shows()
{
	screen | grep -q -e "$1"
}

lacks()
{
	! shows "$1"
}

# shown NAME PATTERN: the screen comes to match
shown()
{
	if eventually shows "$2"; then
		pass "$1"
	else
		fail "$1" "no line with $2 in: $(screen)"
	fi
}

keys()
{
	in_tmux send-keys -t "=$session:" "$@"
}

# top_in COLUMNS LINES [BEFORE [AFTER]]: shows $pid after the commands BEFORE, and leaves how it ended in
# $work/code, $work/err and $work/after.  AFTER: commands for when it has stopped or ended.
top_in()
{
	rm -f "$work/code" "$work/after"
	cat >"$work/run.sh" <<-END
		trap : INT TERM
		ulimit -c 0
		stty -g >'$work/before'
		${3-}
		'$fiberize' top $pid 0.5 2>'$work/err'
		${4-}
		echo \$? >'$work/code'
		stty -g >'$work/after'
		echo over
		exec cat
	END
	terminal "$1" "$2" "exec bash '$work/run.sh'"
}

alternate()
{
	in_tmux display-message -p -t "=$session:" '#{alternate_on}'
}

# ended NAME CODE [MESSAGE]: it ends so, and the terminal is as it was
ended()
{
	must eventually shows '^over'
	same "$1: exit code and message" "$2${3+ $3}" "$(cat "$work/code" "$work/err" | tr '\n' ' ' | sed 's/ $//')"
	same "$1: the terminal's modes" "$(cat "$work/before")" "$(cat "$work/after")"
	same "$1: the screen is as before" 0 "$(alternate)"
}

# ---- what it shows, and keys

last_line()
{
	screen | tail -n 1
}

start "$fiberize" --stats "$helpers/waiters"
must eventually settled
top_in 200 50
shown 'overview: fibers' '^fibers by cpu, 1 to 14 of 14; every 0.5 s; h: help, q: quit'
shown 'overview: processors' '^PROC NOW '
shown 'overview: calls' '^FUNCTION .*PARKED'
shown 'overview: waits' '^  WAITING .* FOR'
shown 'overview: the whole' ": 14 threads on .*13 waits"
keys c
shown 'c' '^calls by rate, '
yes 'c: no other table' eventually lacks '^PROC NOW'
keys s
shown 's' '^calls by total, '
keys S
shown 'S' '^calls by rate, '
keys l
shown 'l' '^late by rate, 0 to 0 of 0'
keys w
shown 'w' '^waits by threads, '
keys p
shown 'p' '^processors by number, '
keys f
shown 'f' '^fibers by cpu, '
keys Tab
shown 'TAB' '^calls by rate, '
keys BTab BTab
shown 'shift-TAB' '^fibers by cpu, 1 to 14 .*'
shown 'shift-TAB: the overview' '^PROC NOW'
keys h
shown 'h' '^fiberize top: keys'
keys q
shown 'q: back from the help' '^fibers by cpu, '
keys + +
shown '+' '; every 2 s;'
keys -
shown '-' '; every 1 s;'
keys Right
shown 'right' '^ STATE     PROC'
keys Left
shown 'left' '^     TID STATE     PROC'
keys Escape
keys f s s s
shown 'f s s s' '^fibers by tid, '
fibers_on_screen()
{
	screen | awk '/^     TID/ { rows = 1; next } /^fibers by/ { exit } rows && NF { print $1 }'
}
same 'in the order of ps' "$(run "$fiberize" ps --json "$pid"; jq '.threads[].tid' <<<"$out")" "$(fibers_on_screen)"

# The cursor goes to the thread "awaits", whose stack does not change.
tid=$(jq '.threads[] | select(.name == "awaits").tid' <<<"$out")
place=$(jq --argjson tid "$tid" '[.threads[] | select(.tid < $tid)] | length' <<<"$out")
for ((i = 0; i < place; i++)); do
	keys Down
done
keys Enter
shown 'Enter' "^stack of thread $tid at "
must eventually shows '^lines 1 to .*read it again'
run "$fiberize" bt "$pid" "$tid"
same 'the stack that bt has' "$out" "$(screen | sed -n '/^stack of/,/^lines/{/^stack\|^lines\|^$/d;p}')"
keys r
shown 'r: the stack again' "^thread $tid \"awaits\""
keys q
shown 'q: back from the stack' '^fibers by tid, '
keys Up Enter
shown 'up' "^stack of thread $((tid - 1)) at "
keys Escape
shown 'Esc: back from the stack' '^fibers by tid, '
keys o
shown 'o' '^PROC NOW'

# ---- another size

in_tmux resize-window -t "=$session:" -x 100 -y 20
reaches()
{
	[[ $(last_line) == "$1"* && $(screen | wc -l) -eq $2 ]]
}
yes 'a smaller terminal' eventually reaches 'fibers by tid, ' 20
in_tmux resize-window -t "=$session:" -x 40 -y 9
shown 'too small for it' '^40 x 9: too small'
in_tmux resize-window -t "=$session:" -x 120 -y 60
yes 'a larger terminal' eventually reaches 'fibers by tid, 1 to 14 of 14' 60

# ---- it goes

keys q
ended 'q' 0
for signal in INT TERM HUP QUIT; do
	top_in 100 30
	must eventually shows '^fibers by cpu'
	pkill -"$signal" -P "$(in_tmux display-message -p -t "=$session:" '#{pane_pid}')"
	ended "SIG$signal" $((128 + $(kill -l $signal)))
done
top_in 100 30
must eventually shows '^fibers by cpu'
keys C-c
ended 'Ctrl-C' 130

# shellcheck disable=SC2016 # for the shell in the terminal
top_in 100 30 'set -m' 'stty -g >"${0%/*}/after"; echo "stopped $(jobs -p)"; read -r line; fg'
must eventually shows '^fibers by cpu'
keys C-z
shown 'Ctrl-Z' '^stopped [1-9]'
same "Ctrl-Z: the terminal's modes" "$(cat "$work/before")" "$(cat "$work/after")"
same 'Ctrl-Z: the screen is as before' 0 "$(alternate)"
keys Enter
shown 'it goes on' '^fibers by cpu'
same 'it goes on: on its own screen' 1 "$(alternate)"
keys q
ended 'after Ctrl-Z' 0

# ---- the process ends

top_in 100 30
must eventually shows '^fibers by cpu'
keys f
must eventually shows '^fibers by cpu, 1 to 14'
must eventually lacks '^PROC NOW'
stop
shown 'the process ends' "^$pid: the process has ended; this was the last picture; q quits"
shown 'the last picture stays' ' awaits  *condition variable'
keys Enter Down s
shown 'keys are no harm' "^$pid: the process has ended"
shown 'the last picture still stays' ' awaits  *condition variable'
keys q
ended 'a process that has ended' 0 "fiberize: $pid: the process has ended"

# ---- a process that does much

start "$fiberize" --stats "$calls" talk
top_in 120 30
must eventually shows '^fibers by cpu'
moves()
{
	screen | awk '/^read /{ exit $3 > 0 ? 0 : 1 }'
}
yes 'reads per second' eventually moves
keys Space
must eventually shows 'PAUSED'
before=$(calls read)
old=$(screen)
runs_on()
{
	[ "$(calls read)" -gt $((before + 1000)) ]
}
must eventually runs_on
same 'space: a pause' "$old" "$(screen)"
keys r
changes()
{
	[ "$(screen)" != "$old" ]
}
yes 'r: a picture while it pauses' eventually changes
shown 'r: it still pauses' PAUSED
keys Space
yes 'space: it goes on' eventually lacks PAUSED
keys q
ended 'after a pause' 0
stop

# ---- a thread that does not stop is not left to stop later

start "$fiberize" "$helpers/vforks"
has_child()
{
	pgrep -P "$pid" >"$work/child"
}
must eventually has_child
top_in 100 30
must eventually shows '^fibers by cpu, 1 to 2 of 2'
keys f s s s Down Enter
shown 'a thread that does not stop: it has no stack now' '^thread [0-9]* has run meanwhile'
must kill -KILL "$(cat "$work/child")"
yes 'a thread that does not stop: it goes on while top runs' eventually grep -qs '^on' "$work/said"
keys q q
ended 'a thread that does not stop' 0
stop

# ---- pages

start "$fiberize" "$helpers/crowd" 1500
top_in 80 24
must eventually shows '^fibers by cpu'
keys f s s s
shown 'many threads' '^fibers by tid, 1 to 19 of 1501;'
keys NPage NPage
shown 'PgDn' '^fibers by tid, 19 to 37 of 1501;'
keys End
shown 'End' '^fibers by tid, 1483 to 1501 of 1501;'
same 'End: the last thread' "$(run "$fiberize" ps --json "$pid"; jq '.threads[-1].tid' <<<"$out")" \
	"$(fibers_on_screen | tail -n 1)"
keys PPage PPage
shown 'PgUp' '^fibers by tid, 1465 to 1483 of 1501;'
keys Home
shown 'Home' '^fibers by tid, 1 to 19 of 1501;'
shown 'without --stats: no calls' ' 1501 threads on '
keys c
shown 'without --stats: why' '^calls are not counted: '
keys q
ended 'many threads' 0

# ---- terminals that cannot be used

# cannot NAME MESSAGE COLUMNS LINES [BEFORE]
cannot()
{
	top_in "$3" "$4" "${5-}"
	must eventually shows '^over'
	same "$1: exit code" 104 "$(cat "$work/code")"
	like "$1: message" "$2" "$(cat "$work/err")"
	same "$1: one line" 1 "$(wc -l <"$work/err")"
}

cannot 'too small' 'fiberize: top: the terminal has 9 lines and 40 columns, and 10 and 60 are needed; *' 40 9
cannot 'no such terminal' 'fiberize: top: TERM=nonsense: no such terminal is known here*' 80 24 'export TERM=nonsense'
cannot 'no TERM' 'fiberize: top: TERM is not set*' 80 24 'unset TERM'
cannot 'a simple terminal' 'fiberize: top: TERM=dumb: this terminal cannot move the cursor or clear the screen; *' 80 24 'export TERM=dumb'
finish
