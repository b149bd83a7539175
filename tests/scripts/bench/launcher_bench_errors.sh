#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/bench/launcher_bench_errors.sh - "fiberize bench": bad options, servers and loads; no process or file is left.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"
# shellcheck source=tests/scripts/bench/bench.inc
. "$(dirname "$0")/bench.inc"
# A PATH that has what the launcher needs, but for what is named.
without()
{
	rm -rf "$work/tools"
	mkdir "$work/tools"
	for tool in sh cat sed tr dirname readlink env printenv sleep awk \
		tail rm mktemp grep uname date getconf taskset wrk cp cut gnuplot; do
		[ "$tool" = "$1" ] || ! command -v "$tool" >/dev/null ||
			ln -s "$(command -v "$tool")" "$work/tools/$tool"
	done
}

refused 'bench: no program' 2 '*bench: no program*' "$fiberize" bench
refused 'bench: unknown option' 2 '*--frob: no such option*' "$fiberize" bench --frob -- true
refused 'bench: option without its value' 2 '*--rounds needs a value*' "$fiberize" bench --rounds
for flags in '--rounds 0' '--rounds x' '--port 65536' '--wait 0' '--connections -1' \
	'--connections 0' '--connections 64,' '--connections 64,x' '--rate 0' '--rate 5,' \
	'--requests-regex (' '--requests-regex=' '--duration 1.5' '--size 0' '--cpus 1' '--cpus 0:99999' '--cpus x:0' '--path x' \
	'--processors 0'; do
	# shellcheck disable=SC2086
	refused "bench: $flags" 2 '*' "$fiberize" bench --echo $flags -- "$work/server" plain 0
done
refused 'bench: unknown variable' 2 '*FIBERIZE_X: no such*' \
	env FIBERIZE_X=1 "$fiberize" bench -- "$work/server" plain 0
refused 'bench: missing program' 127 '*no such program*' "$fiberize" bench -- no-such-program
must "$CC" -static -o "$work/bin/static" -x c - <<<'int main(void) { return 0; }'
refused 'bench: static program' 116 '*statically*' "$fiberize" bench -- "$work/bin/static"
refused 'bench: no library' 115 '*no such library*' \
	"$fiberize" --library /no/such.so bench -- "$work/server" plain 0
refused 'bench: JSON file in no directory' 114 '*cannot be written*' \
	"$fiberize" bench --echo --json /no/such/file -- "$work/server" plain 0
refused 'bench: JSON file without a name' 2 '*--json: the name of the file is empty' \
	"$fiberize" bench --echo --json '' -- "$work/server" plain 0
refused 'bench: no place for temporary files' 114 '*/no/such: no temporary directory*(TMPDIR)' \
	env TMPDIR=/no/such "$fiberize" bench --echo -- "$work/server" plain 0
refused 'bench: several numbers of connections for a load that takes none' 2 '*no {connections}' \
	"$fiberize" bench --load true --connections 4,8 -- "$work/server" plain 0
refused 'bench: a rate for a load that takes none' 2 '*no {rate}' \
	"$fiberize" bench --load true --rate 5 -- "$work/server" plain 0
refused 'bench: a load that takes a rate, without one' 2 '*needs a --rate' \
	"$fiberize" bench --load 'true {rate}' -- "$work/server" plain 0
for option in report markdown; do
	refused "bench: --$option without a name" 2 "*--$option: the name of the file is empty" \
		"$fiberize" bench --echo "--$option=" -- "$work/server" plain 0
	refused "bench: --$option in no directory" 114 '*/no/such/file: cannot be written*' \
		"$fiberize" bench --echo "--$option" /no/such/file -- "$work/server" plain 0
done
without gnuplot
refused 'bench: no gnuplot' 114 '*gnuplot is not installed*' env PATH="$work/tools" \
	"$fiberize" bench --echo --report "$work/page.html" -- "$work/server" plain 0
without wrk
refused 'bench: no wrk' 114 '*wrk is not installed*' \
	env PATH="$work/tools" "$fiberize" bench -- "$work/server" plain 0
refused 'bench: a blank in --path' 2 '*--path /a b: write blanks*' \
	"$fiberize" bench --path '/a b' -- "$work/server" plain 0
run "$fiberize" bench --help
same 'bench --help' '0usage:' "$code${out%% *}"

# shellcheck disable=SC2086
{
failed_bench 'bench: ends at once' 110 '*ended with exit status 3 before it listened*' \
	"$fiberize" bench $short -- sh -c 'exit 3'
failed_bench 'bench: what it said is shown' 110 '*program says: out of cheese*' \
	"$fiberize" bench $short -- sh -c 'echo out of cheese; exit 1'
failed_bench 'bench: killed at once' 110 '*signal 9*before it listened*' \
	"$fiberize" bench $short -- sh -c 'kill -9 $$'
failed_bench 'bench: by the clock, no such page' 112 '*exit status 1*HTTP status 404*' "$fiberize" bench --rounds 1 \
	--load "$build/libexec/echo_client -c 4 -d 0.2 -r {rate} --get /none {port}" --rate 50 -- "$programs/legacy_server" -p 0
failed_bench 'bench: by the clock, no HTTP server' 112 '*not one of HTTP/1.1*' "$fiberize" bench --rounds 1 \
	--load "$build/libexec/echo_client -c 4 -d 0.2 -r {rate} --get /none {port}" --rate 50 -- "$work/server" plain 0
failed_bench 'bench: never listens' 111 '*does not listen on any TCP port after 1 seconds*' \
	"$fiberize" bench $short --wait 1 -- "$work/server-sleep" 3600
failed_bench 'bench: listens elsewhere' 111 '*does not listen on port 1 after 1 seconds*' \
	"$fiberize" bench $short --wait 1 --port 1 -- "$work/server" plain 0
failed_bench 'bench: load fails' 112 '*load command ended with exit status 7*load says: oops*' \
	"$fiberize" bench $short --load 'echo oops >&2; exit 7' -- "$work/server" plain 0
failed_bench 'bench: no such load' 112 '*exit status 127*' \
	"$fiberize" bench $short --load 'no-such-load {port}' -- "$work/server" plain 0
failed_bench 'bench: wrong answers' 112 '*came back changed*' \
	"$fiberize" bench --echo $short -- "$work/server" lies 0
failed_bench 'bench: dies under load' 110 '*ended with exit status 3 under load*' \
	"$fiberize" bench --echo $short -- "$work/server" dies 0
failed_bench 'bench: dies under load that goes on' 110 '*ended with exit status 3 under load*' \
	"$fiberize" bench --load "$build/libexec/echo_client -c 1 -d 1 {port}; exec $work/server-sleep 3600" $short \
	-- "$work/server" dies 0
failed_bench 'bench: full standard output' 114 'fiberize: standard output: cannot be written' \
	sh -c '"$@" >/dev/full' - "$fiberize" bench --load true --rounds 1 -- "$work/server" plain 0
run "$fiberize" bench --load true --rounds 1 --json /dev/full -- "$work/server" plain 0
same 'bench: full disk for JSON' '114 fiberize: /dev/full: cannot be written' "$code $err"
tidy 'bench: full disk for JSON'
printf '#!/bin/sh\necho nothing of use\n' >"$work/tools/wrk"
chmod +x "$work/tools/wrk"
failed_bench 'bench: no figures' 113 '*load says: nothing of use*no figures*' \
	env PATH="$work/tools:$PATH" "$fiberize" bench $short -- "$work/server" plain 0
failed_bench 'bench: a server that is no HTTP server' 112 '*every request failed*' \
	"$fiberize" bench $short --wait 20 -- "$work/server" plain 0
}

"$build/libexec/measure" -s "$work/s" -l "$work/l" "$work/server-sleep 3600" -- "$work/server" plain 0 \
	>/dev/null &
measure=$!
at_exit kill -KILL "$measure"
port=
find_port()
{
	pid=$(pgrep -P $measure -f "$work/server plain" -o) || return
	port=$(ss -Hltnp 2>/dev/null | awk -v pid="pid=$pid," \
		'index($0, pid) { sub(/.*:/, "", $4); print $4; exit }')
	[ -n "$port" ]
}
eventually find_port
failed_port()
{
	run "$fiberize" bench --echo --port "$port" -- "$work/server" plain "$port"
	case $err in
	*"port $port is in use by another process"*) same 'bench: port in use' 114 "$code" ;;
	*) fail 'bench: port in use' "exit status $code, message: $err" ;;
	esac
}
failed_port
kill -TERM $measure
wait $measure
same 'measure: ended by SIGTERM in order' 143 $?
tidy 'measure: ended by SIGTERM'
if listening "$port"; then
	fail 'the port is free again' "something listens on $port"
else
	pass 'the port is free again'
fi

none_left()
{
	! pgrep -f "$work/server" >/dev/null
}

# interrupted SIGNAL: in the middle of a load.  The launcher gets it alone, as
# from another program, not from a terminal that signals all of a group.
interrupted()
{
	setsid env --default-signal=INT sh -c 'echo $$ >"$0"; exec "$@"' "$work/pid" \
		"$fiberize" bench --load "$work/server-sleep 3600" -- "$work/server" plain 0 \
		>"$work/out" 2>"$work/err" &
	waiter=$!
	yes "bench, SIG$1: is under way" eventually pgrep -f "^$work/server-sleep 3600" >/dev/null
	kill -s "$1" "$(cat "$work/pid")"
	{ wait $waiter; } 2>/dev/null
	same "bench, SIG$1: exit status" "$2" $?
	# A killed launcher takes its children with it, but cannot wait for them.
	if [ "$1" = KILL ]; then
		eventually none_left
		rm -rf "$work/scratch"/*
	fi
	tidy "bench, SIG$1"
}
interrupted INT 130
interrupted TERM 143
interrupted HUP 129
interrupted KILL 137

finish
