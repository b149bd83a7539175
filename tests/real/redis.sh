#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/redis.sh - redis-server with its background threads and children, as natively.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need redis-server redis-cli redis-benchmark

# commands PORT: answers are the same on every run.
commands() {
	local port=$1 i pushers=()
	{
		for ((i = 0; i < 500; i++)); do
			echo "set key:$i value-$i"
			echo "rpush list:$((i % 7)) $i"
			echo "zadd ranks $((i * 37 % 101)) member-$i"
			echo "hset hash:$((i % 11)) field-$i $i"
		done
		echo "mget key:1 key:77 key:none"
		echo "lrange list:3 0 -1"
		echo "zrange ranks 0 -1 withscores"
		echo "hgetall hash:5"
		echo "lpop key:1"
		echo "eval 'return redis.call(\"incrby\", \"n\", ARGV[1])' 0 41"
		echo "unlink list:1"
		echo "flushall async"
		echo "dbsize"
	} | redis-cli -p "$port"
	# One who waits for each of these.
	for ((i = 0; i < 10; i++)); do
		redis-cli -p "$port" blpop "queue:$i" 0 >"$work/popped.$i" &
		pushers+=($!)
	done
	for ((i = 0; i < 10; i++)); do
		redis-cli -p "$port" rpush "queue:$i" "item-$i" >/dev/null
	done
	wait "${pushers[@]}"
	cat "$work"/popped.*
	redis-benchmark -p "$port" -q -n 5000 -c 50 -P 4 -t set,get,lpush,spop,mset \
		>/dev/null || echo "redis-benchmark failed with $?"
	redis-cli -p "$port" save
	redis-cli -p "$port" bgrewriteaof
	finished "$port" aof_rewrite_in_progress
	redis-cli -p "$port" bgsave
	finished "$port" rdb_bgsave_in_progress
	redis-cli -p "$port" info persistence | tr -d '\r' | grep -E '^(rdb|aof)_last_.*status'
	redis-cli -p "$port" config get appendonly
	redis-cli -p "$port" mget key:1 key:__rand_int__
}

# is_zero PORT FIELD
is_zero() {
	redis-cli -p "$1" info persistence | grep -q "^$2:0"
}

# finished PORT FIELD
finished() {
	eventually is_zero "$@" || echo "$2 does not end"
}

answers() {
	redis-cli -p "$1" ping | grep -q PONG
}

# serve NAME COMMAND...: what it answered goes to $work/NAME.
serve() {
	local name=$1 port server
	shift
	port=$(free_port)
	mkdir "$work/$name.data"
	begin "$name" "$@" redis-server --port "$port" --bind 127.0.0.1 --save '' \
		--appendonly yes --dir "$work/$name.data"
	server=$started
	wait_for_port "$server" "$port"
	commands "$port" >"$work/$name" 2>&1
	stop "$server" 0
	# What it wrote can be read again.
	begin "$name-again" redis-server --port "$port" --bind 127.0.0.1 --save '' \
		--appendonly yes --dir "$work/$name.data"
	server=$started
	wait_for_port "$server" "$port"
	eventually answers "$port" || die "$name: no PONG"
	redis-cli -p "$port" llen mylist >>"$work/$name"
	stop "$server" 0
}

serve native
serve server "${fiberized[@]}"
cmp -s "$work/native" "$work/server" || {
	diff "$work/native" "$work/server" | head -n 20 >"$work/diff.log"
	die "answers differ"
}
pass 'answers as natively'
finish
