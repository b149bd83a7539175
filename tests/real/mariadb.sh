#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/mariadb.sh - MariaDB, a thread per connection: sysbench's transactions from
# 32 connections, rows that are counted afterwards, queries that are killed and that time
# out, a crash (SIGKILL) from which it recovers, SIGTERM.
. "$(dirname "$0")/common.inc"
need mariadbd mariadb mariadb-install-db sysbench

ROWS=2000
mkdir "$work/data"
user=()
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$work"
	chown nobody "$work/data"
	user=(--user=nobody)
fi
mariadb-install-db --no-defaults "${user[@]}" --datadir="$work/data" \
	--auth-root-authentication-method=normal --skip-test-db >"$work/install.log" 2>&1 ||
	fail "mariadb-install-db failed"

start() {
	port=$(free_port)
	begin "$1" "${run[@]}" mariadbd --no-defaults "${user[@]}" --datadir="$work/data" \
		--socket="$work/data/socket" --port="$port" --bind-address=127.0.0.1 \
		--pid-file="$work/data/pid" --innodb-buffer-pool-size=64M \
		--thread-handling=one-thread-per-connection
	server=$started
	wait_for_port "$server" "$port"
}

sql() {
	timeout -k 2 60 mariadb --no-defaults --socket="$work/data/socket" -u root \
		--batch --skip-column-names "$@" 2>&1
}

# expect PATTERN SQL-OPTIONS...
expect() {
	local want=$1 got
	shift
	got=$(sql "$@")
	# A pattern on purpose.
	# shellcheck disable=SC2053
	[[ $got == $want ]] || fail "$*: $got, not $want"
}

bench() {
	timeout -k 2 120 sysbench oltp_read_write --db-driver=mysql --tables=2 \
		--table-size=$ROWS --mysql-host=127.0.0.1 --mysql-port="$port" \
		--mysql-user=bench --mysql-password=bench --mysql-db=bench "$@" \
		>"$work/sysbench.log" 2>&1 || fail "sysbench $* failed"
}

start first
expect '' -e "CREATE DATABASE bench; CREATE USER bench@'%' IDENTIFIED BY 'bench';
	GRANT ALL ON bench.* TO bench@'%'"
bench prepare
# Each transaction deletes a row and inserts it again, and changes two others.
bench --threads=32 --time=0 --events=1500 run
grep -Eq 'total number of events: +1500' "$work/sysbench.log" || fail "not all transactions ran"
expect "$ROWS" bench -e "SELECT COUNT(*) FROM sbtest1"
expect "$ROWS" bench -e "SELECT COUNT(*) FROM sbtest2"
[[ $(sql -e "CHECK TABLE bench.sbtest1") == *OK ]] || fail "the table is damaged"
expect '*1317*' -e "SELECT SLEEP(30)" &
sleeping=$!
for ((tries = 0; tries < 200; tries++)); do
	id=$(sql -e "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(30)'")
	[ -n "$id" ] && break
	sleep 0.05
done
expect '' -e "KILL QUERY $id"
wait $sleeping || exit 1
expect '*1969*' -e "SET STATEMENT max_statement_time = 0.2 FOR SELECT SLEEP(20)"
expect 0 -e "SELECT GET_LOCK('a', 5) - 1"

# It fails, since its server is gone.
bench --threads=32 --time=30 --events=0 run 2>/dev/null &
benching=$!
sleep 1
kill -KILL "$server"
wait "$server" 2>/dev/null
wait $benching
start recovered
expect "$ROWS" bench -e "SELECT COUNT(*) FROM sbtest1"
bench --threads=32 --time=0 --events=300 run
idle "$server"
stop "$server" 0
