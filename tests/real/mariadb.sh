#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/mariadb.sh - MariaDB, a thread per connection: sysbench's transactions from
# 32 connections, rows that are counted afterwards, queries that are killed and that time
# out, a crash (SIGKILL) from which it recovers, SIGTERM.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need mariadbd mariadb mariadb-install-db sysbench

ROWS=2000
make_database

start() {
	start_database "$1"
	server=$started
}

sql() {
	limited mariadb --no-defaults --socket="$work/data/socket" -u root \
		--batch --skip-column-names "$@" 2>&1
}

# expect PATTERN SQL-OPTIONS...
expect() {
	local want=$1 got
	shift
	got=$(sql "$@")
	# A pattern on purpose.
	# shellcheck disable=SC2053
	[[ $got == $want ]] || die "$*: $got, not $want"
	pass "${*: -1}"
}

bench() {
	limited sysbench oltp_read_write --db-driver=mysql --tables=2 \
		--table-size=$ROWS --mysql-host=127.0.0.1 --mysql-port="$port" \
		--mysql-user=bench --mysql-password=bench --mysql-db=bench "$@" \
		>"$work/sysbench.log" 2>&1 || die "sysbench $* failed"
	pass "sysbench $*"
}

start first
expect '' -e "CREATE DATABASE bench; CREATE USER bench@'%' IDENTIFIED BY 'bench';
	GRANT ALL ON bench.* TO bench@'%'"
bench prepare
# Each transaction deletes a row and inserts it again, and changes two others.
bench --threads=32 --time=0 --events=1500 run
grep -Eq 'total number of events: +1500' "$work/sysbench.log" || die "not all transactions ran"
expect "$ROWS" bench -e "SELECT COUNT(*) FROM sbtest1"
expect "$ROWS" bench -e "SELECT COUNT(*) FROM sbtest2"
[[ $(sql -e "CHECK TABLE bench.sbtest1") == *OK ]] || die "the table is damaged"
(expect '*1317*' -e "SELECT SLEEP(3000)") >"$work/killed" &
sleeping=$!
sleeps() {
	id=$(sql -e "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(3000)'")
	[ -n "$id" ]
}
eventually sleeps
expect '' -e "KILL QUERY $id"
wait $sleeping || { cat "$work/killed"; exit 1; }
pass 'a query that is killed'
expect '*1969*' -e "SET STATEMENT max_statement_time = 0.2 FOR SELECT SLEEP(2000)"
expect 0 -e "SELECT GET_LOCK('a', 5) - 1"

# It fails, since its server is gone.
(bench --threads=32 --time=3000 --events=0 run) >/dev/null 2>&1 &
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
finish
