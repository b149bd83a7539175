#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/look.sh - each command that looks inside (ps, bt, stat, trace, gdb's), on servers with many
# connections, on a deadlock, on core files, and on processes that cannot be looked at.

# Dollars in single quotes belong to jq and awk.
# shellcheck disable=SC2016
# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need jq gdb promtool setpriv unshare g++
[ ${#fiberized[@]} -gt 0 ] || { skip "${0##*/}" 'looks at fibers alone'; finish; }
chmod 755 "$work"
script=$root/scripts/inspect/gdb.py
ulimit -c unlimited
cd "$work" || exit 1

# ask FILTER ARGUMENT...: of what "run fiberize ps --json" has found
ask() {
	jq -r "$@" "$work/out"
}

# each_once NAME LEAST: LEAST threads at least, and none twice
each_once() {
	same "$1: exit status" '0 ' "$code $err"
	yes "$1: as many threads" [ "$(ask '.threads | length')" -ge "$2" ]
	same "$1: each thread once" '' "$(ask '.threads[].tid' | sort | uniq -d | tr '\n' ' ')"
}

# The threads that "fiberize bt" has printed.
printed() {
	awk '/^thread [0-9]/ { n++ } /^[0-9]+ threads, one of them/ { n += $1 } END { print n + 0 }' "$work/out"
}

by_gdb() {
	run gdb -nx -batch -x "$script" "$@"
}

# ---- the commands, each on a process NAME, $target

# looks_ps NAME LEAST: LEAST threads at least
looks_ps() {
	local name=$1 least=$2
	run "$fiberize" ps --json "$target"
	each_once "$name: ps --json" "$least"
	same "$name: ps --json, each wait has a kind and a time" true \
		"$(ask '[.threads[] | select(.state == "waits")] | length > 0 and all(.waits_for and .waits_s >= 0)')"
	run "$fiberize" ps "$target"
	like "$name: ps" "[1-9]* threads on *: *waits*$newline*TID STATE * WAITS FOR*fz-monitor *monitor*" "$out"
	same "$name: ps, a line a thread" "$(head -n 1 <<<"$out" | cut -d' ' -f1)" \
		"$(awk 'NR > 2 && $1 ~ /^[0-9]+$/ && $2 != "library" && $3 != "for"' "$work/out" | wc -l)"
	run "$fiberize" ps --count "$target"
	yes "$name: ps --count" [ "${out%% threads on *}" -ge "$least" ]
	run "$fiberize" ps --tree "$target"
	like "$name: ps --tree" "[1-9]* threads on *$newline*TID STATE*NAME*WAITS FOR (below each thread*" "$out"
	run "$fiberize" ps --stop "$target"
	like "$name: ps --stop" '[1-9]* threads on *; stopped for *.* ms*' "$out"
	same "$name: ps --stop, nobody is stopped after it" '' "$(grep -h '^State:.*[tT] (' /proc/"$target"/task/*/status)"
}

# looks_bt NAME LEAST FRAME
looks_bt() {
	run "$fiberize" bt "$target"
	yes "$1: bt, each thread" [ "$(printed)" -ge "$2" ]
	has "$1: bt, a frame of the program" "$work/out" "$3"
}

looks_group() {
	run "$fiberize" bt --group "$target"
	like "$1: bt --group, equal stacks once" '*threads, one of them is thread *' "$out"
}

# looks_stat NAME LEAST
looks_stat() {
	local own
	# The process knows its number in its own namespace.
	own=$(awk '/^NSpid:/ { print $NF }' "/proc/$target/status")
	run "$fiberize" stat "$target"
	like "$1: stat" "*process $own, *fibers * alive*switches *requests *memory * resident*" "$out"
	run "$fiberize" stat --json "$target"
	same "$1: stat --json" true \
		"$(ask --argjson least "$2" --argjson pid "$own" '.pid == $pid and .fibers >= $least and .switches > 0')"
	run "$fiberize" stat --prometheus "$target"
	yes "$1: stat --prometheus, by promtool" promtool check metrics <"$work/out" 2>"$work/promtool"
	has "$1: stat --prometheus" "$work/out" '^fiberize_fibers [1-9]'
}

# A second may be too short.
traced() {
	run "$fiberize" trace --summary --seconds 1 "$target"
	grep -Eq "$1" "$work/out"
}

# looks_trace NAME LINE
looks_trace() {
	yes "$1: trace" eventually traced "$2"
	like "$1: trace, how many" 'fiberize: [1-9]* calls blocked in *, * events lost' "$err"
}

# looks_gdb NAME LEAST FRAME TID GDB-ARGUMENT...: on a process or a core file
looks_gdb() {
	local name=$1 least=$2 frame=$3 tid=$4
	shift 4
	by_gdb "$@" -ex 'info fibers' -ex 'fiber locks'
	yes "$name: info fibers, each thread" [ "$(grep -Ec '^[* ] [0-9]+ "' "$work/out")" -ge "$least" ]
	same "$name: info fibers, fiber locks: no error" '' "$(grep -e Error -e Traceback "$work/err")"
	by_gdb "$@" -ex "fiber apply $tid bt"
	has "$name: fiber apply bt" "$work/out" "$frame"
}

# all_frames NAME LEAST GDB-ARGUMENT...: frames of all threads
all_frames() {
	local name=$1 least=$2
	shift 2
	by_gdb "$@" -ex 'fiber apply all bt'
	yes "$name: fiber apply all bt" [ "$(grep -c '^Fiber [0-9]' "$work/out")" -ge "$least" ]
	same "$name: fiber apply all bt, each has a frame outside of the library" '' "$(awk '
		/^Fiber / { if (fiber && !seen) print fiber; fiber = $2; seen = 0 }
		/^#[0-9]+ / && !/ at (runtime|preload|arch)\// { seen = 1 }
		END { if (fiber && !seen) print fiber }' "$work/out")"
}

# The core file that the process leaves; $core is empty if the kernel writes none here.
leave_core() {
	local directory
	directory=$(readlink "/proc/$target/cwd")
	kill -ABRT "$target"
	wait "$target" 2>/dev/null
	core=$(find "$directory" -maxdepth 1 -name 'core*' -print -quit)
	[ -n "$core" ] || skip "$1: core file" "the kernel writes none here: $(cat /proc/sys/kernel/core_pattern)"
}

# looks_core NAME LEAST FRAME TID PROGRAM
looks_core() {
	leave_core "$1"
	[ -n "$core" ] || return
	run "$fiberize" ps --core --json "$core"
	each_once "$1: ps --core" "$2"
	run "$fiberize" bt --core "$core"
	yes "$1: bt --core, each thread" [ "$(printed)" -ge "$2" ]
	has "$1: bt --core, a frame of the program" "$work/out" "$3"
	looks_gdb "$1, core" "$2" "$3" "$4" "$5" "$core"
	rm "$core"
}

first_tid() {
	run "$fiberize" ps --json "$target"
	ask "[.threads[] | select($1)][0].tid"
}

# ---- clients

cat >clients.py <<'END_OF_CLIENTS'
import socket, sys, threading, time
port, count, hello, least = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode(), int(sys.argv[4])
all = []
def connect():
    s = socket.create_connection(("127.0.0.1", port))
    all.append(s)
    return s
def answer(s):
    if hello:
        s.sendall(hello)
    got = b""
    while len(got) < least:
        more = s.recv(65536)
        assert more
        got += more
# Connections that stay, each when its thread has answered; then some that are never silent.
for i in range(count):
    answer(connect())
busy = [connect() for _ in range(4)] if hello else []
for s in busy:
    answer(s)
print("connected", flush=True)
while True:
    for s in busy:
        answer(s)
    time.sleep(0.002)
END_OF_CLIENTS

# clients PORT COUNT HELLO LEAST: connections on which the server has answered LEAST bytes
clients() {
	begin clients $python "$work/clients.py" "$@"
	client=$started
	eventually grep -qs connected "$work/clients.log" || die 'the clients are not connected'
}

end_clients() {
	kill -KILL "$client" 2>/dev/null
	wait "$client" 2>/dev/null
}

# ---- legacy_server with 10,000 connections

ulimit -n "$(ulimit -Hn)"
connections=10000
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -gt 10100 ] || connections=$(($(ulimit -n) - 200))
server_port=$(free_port)
begin server "${fiberized[@]}" "$programs/legacy_server" -e -p "$server_port"
target=$started
wait_for_port "$target" "$server_port"
clients "$server_port" $connections 12345678 8
looks_ps legacy_server $((connections + 5))
run "$fiberize" ps --json --wait recv "$target"
yes 'legacy_server: connections that wait' [ "$(ask '.threads | length')" -ge $connections ]
same 'legacy_server: each waits for its own descriptor, which has peers' $connections \
	"$(ask '[.threads[] | select(.detail | test("^recv[(][0-9]+: tcp 127.0.0.1:'"$server_port"' to 127.0.0.1:[0-9]+[)]$")) | .fd] | unique | length' |
		awk -v n=$connections '{ print ($1 > n ? n : $1) }')"
looks_bt legacy_server $((connections + 5)) ' serve_echo at .*legacy_server\.c:[0-9]'
looks_group legacy_server
looks_stat legacy_server $((connections + 4))
looks_trace legacy_server ' (read|write) +request .*serve_echo at legacy_server\.c:'
tid=$(first_tid '.waits_for == "recv"')
looks_gdb legacy_server $((connections + 5)) ' serve_echo .*legacy_server\.c:[0-9]' "$tid" -p "$target"
yes 'legacy_server: goes on' kill -0 "$target"
looks_core legacy_server $((connections + 5)) ' serve_echo .*legacy_server\.c:[0-9]' "$tid" "$programs/legacy_server"
end_clients

# ---- python3's ThreadingHTTPServer

make_files
make_file_server
server_port=$(free_port)
begin python "${fiberized[@]}" $python "$work/file_server.py" "$server_port" "$work/files"
target=$started
wait_for_port "$target" "$server_port"
# HTTP/1.0: a connection that has sent half of a request stays.
sed -i 's/^class Handler.*/&\n    protocol_version = "HTTP\/1.1"/' "$work/file_server.py"
stop "$target" 0
begin python "${fiberized[@]}" $python "$work/file_server.py" "$server_port" "$work/files"
target=$started
wait_for_port "$target" "$server_port"
clients "$server_port" 100 'GET /100 HTTP/1.1

' 300
looks_ps python 105
looks_bt python 105 ' in .*python'
looks_group python
looks_stat python 104
looks_trace python ' (recv|poll|read|send|accept4?|recvfrom) +(request|readiness) '
tid=$(first_tid '.waits_for == "recv"')
looks_gdb python 105 '[Ss]ock\|[Pp]y' "$tid" -p "$target"
all_frames python 105 -p "$target"
looks_core python 105 '[Pp]y' "$tid" $python
end_clients

# ---- Java

if command -v javac jstack >/dev/null; then
	cat >Look.java <<-'JAVA'
	import java.net.*;

	public class Look {
	    public static void main(String[] args) throws Exception {
	        ServerSocket server = new ServerSocket(Integer.parseInt(args[0]), 1024, InetAddress.getLoopbackAddress());
	        for (int i = 0; ; i++) {
	            Socket s = server.accept();
	            new Thread(() -> {
	                try {
	                    byte[] buffer = new byte[64];
	                    for (int n; (n = s.getInputStream().read(buffer)) > 0; )
	                        s.getOutputStream().write(buffer, 0, n);
	                } catch (Exception e) {
	                }
	            }, "look-" + i).start();
	        }
	    }
	}
	JAVA
	javac -d "$work" Look.java >javac.log 2>&1 || die 'javac failed'
	server_port=$(free_port)
	begin java "${fiberized[@]}" java -Xmx256m -cp "$work" Look "$server_port"
	target=$started
	wait_for_port "$target" "$server_port"
	clients "$server_port" 50 12345678 8
	looks_ps java 55
	# jstack has nid=0x1a or nid=26.
	limited jstack "$target" >jstack.log 2>&1
	sed -n 's/^"\(look-[0-9]*\)".* nid=\([0-9a-fx]*\) .*/\1 \2/p' jstack.log |
		while read -r name nid; do echo "$name $((nid))"; done | sort >nids
	run "$fiberize" ps --json --name 'look-*' "$target"
	ask '.threads[] | "\(.name) \(.tid)"' | sort >tids
	same "java: the tids are jstack's nids" "54: $(cat nids)" "$(wc -l <tids): $(cat tids)"
	looks_bt java 55 ' in .*libjvm\.so'
	looks_group java
	looks_stat java 54
	looks_trace java ' (read|recv|poll) +(request|readiness) '
	looks_gdb java 55 'Java_\|lib\(jvm\|nio\|net\)\.so' "$(head -n 1 tids | cut -d' ' -f2)" -p "$target"
	end_clients
	stop "$target" 143
else
	skip java 'javac is not installed'
fi

# ---- MariaDB with 500 connections

if command -v mariadbd >/dev/null; then
	make_database
	start_database database --max-connections=600 --connect-timeout=100000
	target=$started
	# The greeting is longer than 60 bytes; then the server waits for the name and the password.
	clients "$port" 500 '' 60
	limited mariadb --no-defaults --socket="$work/data/socket" -u root -e 'SELECT SLEEP(100000)' >/dev/null 2>&1 &
	pids+=($!)
	sleeps() {
		run "$fiberize" bt "$target"
		grep -q Item_func_sleep "$work/out"
	}
	yes 'mariadb: a query that sleeps has its frame' eventually sleeps
	looks_ps mariadb 501
	looks_bt mariadb 501 ' in .*mariadbd'
	looks_group mariadb
	looks_stat mariadb 501
	looks_trace mariadb ' [1-9a-z].* +(user space|request|readiness|announced) '
	run "$fiberize" ps --json "$target"
	yes 'mariadb: connections that wait for their client' \
		[ "$(ask '[.threads[] | select(.detail // "" | test("tcp 127.0.0.1:'"$port"' to"))] | length')" -ge 500 ]
	looks_gdb mariadb 501 'mariadbd\|mysqld\|vio\|[Ii]tem' "$(first_tid '.detail // "" | test("tcp 127.0.0.1:'"$port"' to")')" -p "$target"
	end_clients
	stop "$target" 0
else
	skip mariadb 'mariadbd is not installed'
fi

# ---- two mutexes

cat >embrace.cc <<'CXX'
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <thread>

std::mutex left, right;
pthread_barrier_t both;

void one(std::mutex &first, std::mutex &second, const char *name)
{
	pthread_setname_np(pthread_self(), name);
	std::lock_guard<std::mutex> mine(first);
	pthread_barrier_wait(&both);
	std::lock_guard<std::mutex> yours(second);
}

int main()
{
	pthread_barrier_init(&both, nullptr, 2);
	std::thread a([] { one(left, right, "a"); });
	std::thread b([] { one(right, left, "b"); });
	a.join();
	b.join();
}
CXX
must g++ -g -O0 -pthread -o embrace embrace.cc
line=$(grep -n 'yours(second)' embrace.cc | cut -d: -f1)
begin embrace "${fiberized[@]}" ./embrace
target=$started
embraced() {
	run "$fiberize" ps --json "$target"
	[ "$(ask '.deadlocks | length')" = 1 ]
}
eventually embraced || die 'no deadlock'
same 'deadlock: all asleep' true "$(ask .all_asleep)"
a=$(first_tid '.name == "a"') b=$(first_tid '.name == "b"')
run "$fiberize" ps "$target"
like 'deadlock: ps has the cycle' \
	"*deadlock:$newline*$a waits for mutex 0x* (right), held by $b \"b\"$newline*$b waits for mutex 0x* (left), held by $a \"a\"*all asleep*" "$out"
run "$fiberize" ps --tree "$target"
like 'deadlock: ps --tree' '*mutex 0x* (left), held by*mutex 0x* (right), held by*' "$(sort -t'(' -k2 <<<"$out")"
run "$fiberize" bt "$target" "$a" "$b"
same 'deadlock: bt has both lines' 2 "$(grep -c "  one(.*) at .*embrace\.cc:$line\$\|  one at .*embrace\.cc:$line\$\| one(std::mutex&, .*embrace\.cc:$line\$" "$work/out")"
by_gdb -p "$target" -ex 'fiber locks'
like 'deadlock: fiber locks' "*mutex 0x* (left), held by $a \"a\": $b \"b\"*mutex 0x* (right), held by $b \"b\": $a \"a\"*deadlock: $a \"a\" -> $b \"b\" -> $a \"a\"*" "$out"
looks_core deadlock 3 "embrace\.cc:$line\$" "$a" ./embrace

# ---- it ends, forks, executes meanwhile

begin restless "${fiberized[@]}" "$helpers/restless" 40
target=$started
bad=
looks=0
while kill -0 "$target" 2>/dev/null; do
	by_gdb -p "$target" -ex 'info fibers' -ex 'fiber apply all bt 1' -ex 'fiber locks'
	case $err in
	*Traceback* | *Error:*) bad="$bad $err" ;;
	esac
	looks=$((looks + 1))
done
same 'gdb, forks, executes, ends: no error of the commands' '' "$bad"
yes 'gdb, forks, executes, ends: there were looks' [ $looks -gt 0 ]
wait "$target"
same 'gdb, forks, executes, ends: unharmed' 0 $?

# ---- processes that cannot be looked at

# each_refused NAME CODE PATTERN PID COMMAND...: by each of the tools, behind a command
each_refused() {
	local name=$1 code=$2 pattern=$3 pid=$4 tool
	shift 4
	for tool in ps 'ps --stop' bt stat 'trace --seconds 1'; do
		# shellcheck disable=SC2086 # words
		refused "$tool: $name" "$code" "$pattern" "$@" "$fiberize" $tool "$pid"
	done
}

sleep 1000 &
pids+=($!)
each_refused 'not fiberized' 107 '*libfiberize.so is not in this process' $!
begin waiters "${fiberized[@]}" "$helpers/waiters"
target=$started
eventually grep -qs ready "$work/waiters.log" || die 'not ready'
each_refused 'of another user' 106 '*not allowed to look at the process: ptrace(2) forbids it*' "$target" \
	setpriv --reuid 65534 --clear-groups
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	# The number is that of no process there.
	each_refused 'of another PID namespace' 105 '*no such process' "$target" unshare --pid --fork --mount-proc
	begin inside unshare --pid --fork --kill-child --mount-proc "$fiberize" "$helpers/waiters"
	outer=$started
	eventually grep -qs ready "$work/inside.log" || die 'not ready in the namespace'
	target=$(cat "/proc/$outer/task/$outer/children")
	target=${target% }
	looks_ps 'a PID namespace' 14
	looks_bt 'a PID namespace' 14 ' awaits at .*waiters\.c:'
	looks_stat 'a PID namespace' 13
	looks_gdb 'a PID namespace' 14 ' awaits .*waiters\.c:' "$(first_tid '.name == "awaits"')" -p "$target"
	kill -KILL "$outer"
	wait "$outer" 2>/dev/null
else
	skip 'another PID namespace' 'unshare --pid is not permitted here'
fi
# A number above all that the kernel gives.
each_refused 'gone' 105 '*no such process' "$(($(cat /proc/sys/kernel/pid_max) + 1))"
finish
