#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/cpus.sh - as many processors as CPUs that the process may use: the lowest quota of
# its control groups and all above them, rounded up, and the affinity; followed when they change.
# Version 1 in real groups where the machine lets us make them, version 2 in files that stand for
# them.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"

[ "$(nproc)" -ge 2 ] || { skip cpus 'there is one CPU'; finish; }

# How many are in use, by what the library said last.
processors() {
	tail -n +2 "$work/complaints" | sed -n 's/^fiberize: .*, \([0-9]*\) processors\?, .*/\1/p
		s/^fiberize: the CPU limit now allows \([0-9]*\) processors\?$/\1/p' | tail -n 1
}

uses() {
	[ "$(processors)" = "$1" ]
}

# ---- version 1

v1=/sys/fs/cgroup/cpu/fz-test-$$

real_groups() {
	local outer=$v1/cpu.cfs_quota_us inner=$v1/in/cpu.cfs_quota_us
	at_exit rmdir "$v1/in" "$v1"
	cat >"$work/enter" <<-EOF
		echo \$\$ >$v1/in/tasks
		exec env LD_PRELOAD=$library FIBERIZE_VERBOSE=1 "\$@"
	EOF
	start sh "$work/enter" "$helpers/crowd" 4 1
	yes 'no quota: as many as CPUs' eventually uses 2
	echo 50000 >"$inner"
	yes 'half a CPU: one processor' eventually uses 1
	echo 150000 >"$inner"
	yes 'one and a half: two' eventually uses 2
	echo 150000 >"$outer"
	echo -1 >"$inner"
	echo 100000 >"$outer"
	yes 'the quota of the group above' eventually uses 1
	run "$fiberize" ps "$pid"
	like 'ps tells the closed one' '* threads on 1 processor (1 closed: a CPU limit, or too little load): *' "$out"
	run "$fiberize" top --batch --count 2 "$pid"
	like 'top tells the closed one' '* on 1 processor (1 closed: a CPU limit, or too little load): *' "$out"
	has 'top names the closed one' "$work/out" '^ *1 closed '
	yes 'it still runs' kill -0 "$pid"
	stop

	start sh "$work/enter" "$helpers/crowd" 4 1
	same 'from the start' 1 "$(processors)"
	echo -1 >"$outer"
	yes 'raised later' eventually uses 2
	stop

	echo 100000 >"$outer"
	start sh "$work/enter" env FIBERIZE_PROCESSORS=2 "$helpers/crowd" 4 1
	same 'who says a number gets it' 2 "$(processors)"
	stop
}

# The processors that may be used are the first two, also on a machine with more.
two=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status | tr ',' '\n' |
	awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }' | head -n 2 | paste -sd,)
taskset -p -c "$two" $$ >/dev/null || die 'taskset failed'

if mkdir "$v1" "$v1/in" 2>/dev/null && [ -e "$v1/in/cpu.cfs_quota_us" ]; then
	real_groups
else
	rmdir "$v1" 2>/dev/null
	skip 'version 1' 'no group can be made here'
fi

# ---- version 2

cat >"$work/fake" <<'EOF'
mount -t tmpfs none /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/a/b || exit 77
mount --bind "$work/max" /sys/fs/cgroup/a || exit 77
mount -t tmpfs none /proc && mkdir /proc/self || exit 77
echo "0::$group" >/proc/self/cgroup
exec env LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 "$helpers/crowd" 4 1
EOF
export work library helpers group
namespaces=-m
[ "$(id -u)" = 0 ] || namespaces=-Urm

# quota GROUP TEXT: in one write
quota() {
	printf '%-16s' "$2" | dd of="$work/max/$1/cpu.max" conv=notrunc status=none
}

fake_groups() {
	mkdir -p "$work/max/b"
	quota b 'max 100000'
	quota . 'max 100000'
	group=/a/b
	start unshare $namespaces sh "$work/fake"
	yes 'version 2: no quota' eventually uses 2
	quota b '90000 100000'
	yes 'version 2: a quota' eventually uses 1
	quota b '100001 100000'
	yes 'version 2: rounded up' eventually uses 2
	quota . '20000 100000'
	yes 'version 2: of the group above' eventually uses 1
	quota . 'max 100000'
	yes 'version 2: none any more' eventually uses 2
	taskset -a -p -c "${two%,*}" "$pid" >/dev/null 2>&1
	yes 'the affinity' eventually uses 1
	stop
	group=/../elsewhere
	start unshare $namespaces sh "$work/fake"
	same 'a group that is not visible' 2 "$(processors)"
	stop
}

if unshare $namespaces true 2>/dev/null; then
	fake_groups
else
	skip 'version 2' 'namespaces are not allowed here'
fi

finish
