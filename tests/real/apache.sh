#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/apache.sh - Apache with threads (worker, then event): files and a CGI
# program of a daemon that it forks, graceful restarts under load, SIGHUP, SIGTERM.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need curl "$python" apache2
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

# generations: how often it has said that one begins
generations() {
	grep -c 'resuming normal operations' "$work/error.log"
}

more_generations() {
	(($(generations) > $1))
}

# restart SIGNAL: a new generation answers afterwards.
restart() {
	local before
	before=$(generations)
	kill "-$1" "$server"
	eventually more_generations "$before" || die "$mpm: no new generation after SIG$1"
	pass "$mpm: a new generation after SIG$1"
}

TRANSFERS=1000
rounds=${FZ_ALL:+3} rounds=${rounds:-1}
for mpm in worker event; do
	port=$(free_port)
	configure $mpm "$port"
	rm -f "$work/error.log"
	begin "$mpm" "${fiberized[@]}" apache2 -DFOREGROUND -f "$work/apache.conf"
	server=$started
	wait_for_port "$server" "$port"

	# With a graceful restart in the middle.
	for ((i = 0; i < rounds; i++)); do
		rm -rf "$work/got"
		mkdir "$work/got"
		(fetch "$port") >"$work/fetched" &
		fetching=$!
		sleep 0.3
		restart USR1
		wait $fetching || { cat "$work/fetched"; exit 1; }
		pass "$mpm: $TRANSFERS files through a restart"
	done
	restart HUP
	for ((i = 0; i < 20; i++)); do
		got=$(curl --silent --show-error --fail \
			"http://127.0.0.1:$port/program?$i" 2>&1)
		[ "$got" = $i ] || die "$mpm: CGI program $i answered $got"
	done
	pass "$mpm: CGI programs"
	grep -E 'segfault|exit signal' "$work/error.log" && die "$mpm: a child crashed"
	stop "$server" 0
done
finish
