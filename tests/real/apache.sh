#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/apache.sh - Apache with threads (worker, then event): files and a CGI
# program of a daemon that it forks, graceful restarts under load, SIGHUP, SIGTERM.
. "$(dirname "$0")/common.inc"
need curl $python apache2
modules=/usr/lib/apache2/modules

cat >"$work/program" <<'END'
#!/bin/sh
printf 'Content-Type: text/plain\n\n%s\n' "$QUERY_STRING"
END
chmod 755 "$work/program"
make_files
# Its children are of another user, if we are root.
chmod 755 "$work"

configure() {
	cat >"$work/apache.conf" <<-END
	ServerRoot $work
	ServerName localhost
	Listen 127.0.0.1:$2
	PidFile $work/pid
	DefaultRuntimeDir $work
	Mutex pthread
	ErrorLog $work/error.log
	LoadModule mpm_module $modules/mod_mpm_$1.so
	LoadModule authz_core_module $modules/mod_authz_core.so
	LoadModule alias_module $modules/mod_alias.so
	LoadModule cgid_module $modules/mod_cgid.so
	ScriptSock $work/cgid.socket
	ScriptAlias /program $work/program
	StartServers 2
	ServerLimit 4
	ThreadsPerChild 25
	MaxRequestWorkers 100
	MaxConnectionsPerChild 300
	DocumentRoot $work/files
	<IfModule mpm_$1_module>
	User nobody
	Group nogroup
	</IfModule>
	END
	sed -i "s/mpm_module/mpm_$1_module/" "$work/apache.conf"
	[ "$(id -u)" = 0 ] || sed -i '/IfModule/,/IfModule/d' "$work/apache.conf"
}

# restart SIGNAL: a new generation answers afterwards.
restart() {
	local before tries
	before=$(grep -c 'resuming normal operations' "$work/error.log")
	kill "-$1" "$server"
	for ((tries = 0; tries < 600; tries++)); do
		(($(grep -c 'resuming normal operations' "$work/error.log") > before)) && return
		sleep 0.05
	done
	fail "$mpm: no new generation after SIG$1"
}

for mpm in worker event; do
	port=$(free_port)
	configure $mpm "$port"
	rm -f "$work/error.log"
	begin "$mpm" "${run[@]}" apache2 -DFOREGROUND -f "$work/apache.conf"
	server=$started
	wait_for_port "$server" "$port"

	# Three times, each with a graceful restart in the middle.
	for ((i = 0; i < 3; i++)); do
		rm -rf "$work/got"
		mkdir "$work/got"
		fetch "$port" &
		fetching=$!
		sleep 0.3
		restart USR1
		wait $fetching || exit 1
	done
	restart HUP
	for ((i = 0; i < 20; i++)); do
		got=$(curl --silent --show-error --fail --max-time 60 \
			"http://127.0.0.1:$port/program?$i" 2>&1)
		[ "$got" = $i ] || fail "$mpm: CGI program $i answered $got"
	done
	grep -E 'segfault|exit signal' "$work/error.log" && fail "$mpm: a child crashed"
	stop "$server" 0
done
exit 0
