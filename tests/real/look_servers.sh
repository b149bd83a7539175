#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/look_servers.sh - the commands that look inside, on servers with many connections: legacy_server,
# Python, Java, MariaDB.

# Dollars in single quotes belong to jq and awk.
# shellcheck disable=SC2016
# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
# shellcheck source=tests/real/look.inc
. "$(dirname "$0")/look.inc"

# ---- legacy_server with 10,000 connections

ulimit -n "$(ulimit -Hn)"
connections=10000
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -gt 10100 ] || connections=$(($(ulimit -n) - 200))
looks_legacy_server $connections

# ---- python3's ThreadingHTTPServer

make_files
make_file_server
server_port=$(free_port)
begin python "${fiberized[@]}" "$python" "$work/file_server.py" "$server_port" "$work/files"
target=$started
wait_for_port "$target" "$server_port"
# HTTP/1.0: a connection that has sent half of a request stays.
sed -i 's/^class Handler.*/&\n    protocol_version = "HTTP\/1.1"/' "$work/file_server.py"
stop "$target" 0
begin python "${fiberized[@]}" "$python" "$work/file_server.py" "$server_port" "$work/files"
target=$started
wait_for_port "$target" "$server_port"
clients "$server_port" 100 'GET /100 HTTP/1.1

' 300
looks_ps python 105
looks_bt python 105 ' in .*python'
looks_group python
looks_stat python 104
looks_top python 105 ' recv'
looks_trace python ' (recv|poll|read|send|accept4?|recvfrom) +(request|readiness) '
tid=$(first_tid '.waits_for == "recv"')
looks_gdb python 105 '[Ss]ock\|[Pp]y' "$tid" -p "$target"
all_frames python 105 -p "$target"
looks_core python 105 '[Pp]y' "$tid" "$python"
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
	looks_top java 55 ' look-[0-9]'
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
	looks_top mariadb 501 ' waits '
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
finish
