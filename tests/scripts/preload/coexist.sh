#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/coexist.sh [GROUP...] - fiberize together with other libraries and tools, under
# resource limits, and in incomplete environments.  Groups: preload names debuggers sanitizers
# limits places.
#
# Words are split on purpose, and much is expanded by an inner shell:
# shellcheck disable=SC2086,SC2016

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
here=$helpers
chmod 755 "$work"
cd "$root" || exit 1

# What the last command said and complained of, too.
fails()
{
	fail "$@"
	said
}

# ---- libraries that are preloaded as well: ours comes first, whoever was first

group_preload()
{
	local name other program found
	for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 \
			libeatmydata.so.1 faketime/libfaketimeMT.so.1; do
		found=
		for other in /usr/lib/*-linux-gnu/"$name"; do
			[ -e "$other" ] && found=1 && break
		done
		[ -n "$found" ] || { fails "$name" 'not installed'; continue; }
		for program in thread_basic mutex_stress stress_churn cond_timed proxy_chain \
				fork_basic thread_tls_cxx; do
			succeeds "$name: $program" env LD_PRELOAD="$other" FAKETIME=+3d \
				"$fiberize" "$programs/$program"
		done
		has "$name: it is there" <(LD_PRELOAD=$other "$fiberize" cat /proc/self/maps) "${name##*/}"
	done
	# libfaketime leaves them when a process that has it executes another, also natively.
	for other in /dev/shm/*faketime_s[eh]m_*; do
		[ ! -e "$other" ] || [ -e "/proc/${other##*_}" ] || rm -f "$other"
	done
	LD_PRELOAD=$library:libm.so.6 "$fiberize" printenv LD_PRELOAD >"$work/out"
	has 'ours is moved to the front, once' "$work/out" "^${named_library/\$/\\$}:libm.so.6\$"
}

# ---- threads that stay native by their names

group_names()
{
	local list
	expect()
	{
		run "$fiberize" --native-threads "$1" "$here/named_threads"
		same "native threads: $1" "$2" "$(head -n 4 "$work/out")"
	}
	list=$(printf 'one: kernel thread\ntwo-a: kernel thread\ntwo-b: kernel thread\nthree: kernel thread')
	expect '@named_threads' "$list"
	expect '*' "$list"
	expect '@other*,x' "${list//kernel thread/fiber}"
	expect 'two-*,thr?e' "${list/kernel thread/fiber}"
	cat >"$work/omp.c" <<-'END'
		#include <dirent.h>
		#include <stdio.h>
		#include <unistd.h>
		int main(void)
		{
			int sum = 0;
		#pragma omp parallel for reduction(+ : sum) num_threads(4)
			for (int i = 0; i < 1000; i++)
				sum += i, usleep(10);
			printf("%d\nEXIT-SUCCESS\n", sum);
			return sum != 499500;
		}
	END
	$CC -O1 -fopenmp -o "$work/omp" "$work/omp.c" || fails OpenMP 'does not compile'
	succeeds 'OpenMP' env FIBERIZE_STATS=1 "$fiberize" "$work/omp"
}

# ---- debuggers and tracers

group_debuggers()
{
	local crash=$here/crash work_program=$here/work
	succeeds 'gdb: a program runs' sh -c 'gdb -batch -nx -ex "set environment LD_PRELOAD $1" \
		-ex run -ex "print \$_exitcode" "$2" 2>/dev/null | grep EXIT-SUCCESS' - "$library" "$work_program"
	run gdb -batch -nx -ex "set environment LD_PRELOAD $library" \
		-ex 'break where_it_happens' -ex run -ex bt -ex continue -ex bt "$crash"
	has 'gdb: a breakpoint in a fiber' "$work/out" 'Breakpoint 1, where_it_happens'
	has 'gdb: and its crash' "$work/out" 'received signal SIGSEGV'
	has 'gdb: with a backtrace' "$work/out" '#1 .* run (arg'
	run gdb -batch -nx -ex run -ex bt --args "$fiberize" "$crash"
	has 'gdb: around the launcher' "$work/out" '#0 .*where_it_happens'
	run "$fiberize" gdb -batch -nx -ex run -ex bt "$crash"
	has 'gdb: inside the launcher' "$work/out" '#0 .*where_it_happens'
	has 'gdb: and its program has fibers' "$work/out" 'fz_host_run_thread'
	(
		mkdir "$work/dumped" && cd "$work/dumped" || exit
		ulimit -c unlimited
		run "$fiberize" "$crash"
	) 2>/dev/null
	case $(cat /proc/sys/kernel/core_pattern) in
	core)
		if ls "$work/dumped/core"* >/dev/null 2>&1; then
			run gdb -batch -nx -ex bt "$crash" "$work"/dumped/core*
			has 'core dump: its backtrace' "$work/out" '#0 .*where_it_happens'
		else
			fails 'core dump' 'there is none'
		fi
		;;
	*)	skip 'core dump' 'the system puts them elsewhere' ;;
	esac
	succeeds 'strace: around the launcher' strace -f -o "$work/trace" "$fiberize" "$work_program"
	succeeds 'strace: inside the launcher' "$fiberize" strace -f -o "$work/trace" "$work_program"
	# A breakpoint that no thread but the first meets: ltrace 0.7.3 may lose a native program
	# in which a thread ends beside its breakpoint.
	run ltrace -f -e puts -o "$work/trace" env LD_PRELOAD="$library" \
		FIBERIZE_VERBOSE=1 "$work_program"
	has 'ltrace: left native' "$work/out" EXIT-SUCCESS
	has 'ltrace: a message, if asked' "$work/err" \
		'^fiberize: threads stay kernel threads: ltrace runs this program'
	if command -v perf >/dev/null; then
		succeeds 'perf record' perf record -q -o "$work/perf" "$fiberize" "$work_program"
	fi
	if command -v valgrind >/dev/null; then
		succeeds 'valgrind: left native' "$fiberize" valgrind -q "$work_program"
		has 'valgrind: a message, if asked' <(LD_PRELOAD=$library FIBERIZE_VERBOSE=1 \
			limited valgrind -q "$work_program" 2>&1) \
			'^fiberize: threads stay kernel threads: valgrind runs this program'
	fi
}

# ---- sanitizers: left native, with a message

group_sanitizers()
{
	local kind name
	for kind in address:AddressSanitizer thread:ThreadSanitizer; do
		name=${kind#*:} kind=${kind%:*}
		$CC -O1 -g -fsanitize=$kind -pthread -o "$work/$kind" -Itests/programs \
			tests/helpers/work.c || { fails "$name" 'does not compile'; continue; }
		succeeds "$name" "$fiberize" "$work/$kind"
		has "$name: the message" "$work/err" "^fiberize: $work/$kind: contains $name, .*natively\$"
		"$fiberize" --dry-run "$work/$kind" >"$work/out" 2>&1
		has "$name: dry run" "$work/out" "^env $work/$kind\$"
	done
	run env LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 ASAN_OPTIONS=verify_asan_link_order=0 \
		"$work/address"
	has 'AddressSanitizer, the bare library: dormant' "$work/err" \
		'^fiberize: threads stay kernel threads: a sanitizer is in this program'
	has 'AddressSanitizer, the bare library: runs' "$work/out" EXIT-SUCCESS
	$CC -O1 -fsanitize=undefined -pthread -o "$work/undefined" -Itests/programs \
		tests/helpers/work.c
	succeeds 'UndefinedBehaviorSanitizer runs as fibers' "$fiberize" "$work/undefined"
}

# ---- limits

# cgroup_limit CONTROLLER FILE VALUE: version 1's tree, or version 2's
cgroup_limit()
{
	local base=/sys/fs/cgroup/$1 file=$2 group
	if [ ! -e "$base" ]; then
		base=/sys/fs/cgroup
		[ "$1" != memory ] || file=memory.max
	fi
	group=$base/fz-coexist.$$
	if ! mkdir "$group" 2>/dev/null || ! echo "$3" 2>/dev/null >"$group/$file"; then
		rmdir "$group" 2>/dev/null
		skip "cgroup $1" 'none can be made here'
		return
	fi
	run sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - \
		"$group" "$fiberize" -p 2 "$here/work" 100
	has "cgroup $1 limited to $3" "$work/out" '^EXIT-SUCCESS$'
	eventually rmdir "$group" 2>/dev/null
}

# Sets uid to that of a user without processes: what RLIMIT_NPROC counts are all that he has,
# also those that have just ended; so nobody has it twice.
uid=$((10000 + $$ % 30000))
next_uid()
{
	uid=$((uid + 1))
	while grep -qs "^Uid:[[:space:]]*${uid}[[:space:]]" /proc/[0-9]*/status; do
		uid=$((uid + 1))
	done
}

# as_nobody NPROC COMMAND...
as_nobody()
{
	local nproc=$1
	shift
	next_uid
	run setpriv --reuid "$uid" --clear-groups prlimit --nproc="$nproc" "$@"
}

# nproc_limit N: natively it needs 21.  With few it may fail as that does, not hang.
nproc_limit()
{
	local native said
	as_nobody "$1" "$work/work"
	native=$code
	said="exit status $native, says: $(head -c 500 "$work/err")"
	as_nobody "$1" env LD_PRELOAD="$work/libfiberize.so" FIBERIZE_PROCESSORS=2 "$work/work"
	if [ "$code" = 0 ] || { [ "$code" = "$native" ] && [ "$1" -lt 12 ]; }; then
		pass "RLIMIT_NPROC $1"
	else
		fails "RLIMIT_NPROC $1" "exit status $code, uid $uid; natively $said"
	fi
}

# room_for BACKEND PROCESSORS NPROC WHAT COMMAND...: natively that is just enough
room_for()
{
	local backend=$1 processors=$2 nproc=$3 what=$4
	shift 4
	next_uid
	succeeds "RLIMIT_NPROC, $backend: room for $what" setpriv --reuid "$uid" --clear-groups \
		prlimit --nproc="$nproc" env LD_PRELOAD="$work/libfiberize.so" \
		FIBERIZE_BACKEND="$backend" FIBERIZE_PROCESSORS="$processors" "$@"
}

# memory_limit as|data THREADS: what is just enough natively is enough but for the library
# itself, and with every amount more than that
memory_limit()
{
	local low=0 high=1000000 middle more backend
	while [ $((high - low)) -gt 100 ]; do
		middle=$(((low + high) / 2))
		run prlimit --stack=8388608 --"$1"=$((middle * 1024)) "$here/work" "$2"
		if [ "$code" = 0 ]; then
			high=$middle
		else
			low=$middle
		fi
	done
	for backend in uring epoll; do
		for more in 2000 8000 20000 40000 60000 75000 100000; do
			succeeds "limit $1, $backend: $2 threads and $more kB" prlimit \
				--stack=8388608 --"$1"=$(((high + more) * 1024)) \
				env LD_PRELOAD="$library" FIBERIZE_BACKEND=$backend \
				"$here/work" "$2"
		done
	done
}

# Threads that come and go where only small stacks are left, and messages.
memory_churn()
{
	cat >"$work/churn.c" <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		static pthread_barrier_t all;
		static void *run(void *arg) { pthread_barrier_wait(&all); return arg; }
		int main(void)
		{
			pthread_t t[19];
			for (int round = 0; round < 100; round++) {
				pthread_barrier_init(&all, 0, 20);
				for (int i = 0; i < 19; i++)
					if (pthread_create(&t[i], 0, run, 0))
						return 1;
				pthread_barrier_wait(&all);
				for (int i = 0; i < 19; i++)
					pthread_join(t[i], 0);
			}
			puts("EXIT-SUCCESS");
			return 0;
		}
	END
	$CC -pthread -o "$work/churn" "$work/churn.c" || fails 'limit data' 'does not compile'
	succeeds 'limit data: threads that come and go' prlimit --stack=8388608 \
		--data=120000000 env LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 "$work/churn"
	has 'limit data: says that stacks are smaller' "$work/err" \
		'^fiberize: the limit on memory .* leaves little: new threads get stacks of 512 KB'
	succeeds 'limit data: little, and threads' prlimit --stack=8388608 --data=60000000 \
		env LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 "$here/work" 3
	has 'limit data: little, and why' "$work/err" \
		'^fiberize: threads stay kernel threads: the limit on memory is low: ENOMEM$'
}

group_limits()
{
	local n native backend
	for n in 24 64 256; do
		succeeds "RLIMIT_NOFILE $n" sh -c "ulimit -n $n; exec \"\$@\"" - "$fiberize" "$here/work" 5
	done
	for n in as data; do
		memory_limit $n 1
		memory_limit $n 20
	done
	memory_churn
	for n in 300000 1000000; do
		succeeds "RLIMIT_AS $n kB" sh -c "ulimit -v $n; exec \"\$@\"" - "$fiberize" "$here/work"
	done
	for n in 128 8192 unlimited; do
		succeeds "RLIMIT_STACK $n kB" sh -c "ulimit -s $n; exec \"\$@\"" - "$fiberize" "$here/work"
	done
	succeeds 'RLIMIT_MEMLOCK 0' sh -c 'ulimit -l 0; exec "$@"' - "$fiberize" "$here/work"
	for n in data=300000000 sigpending=0 msgqueue=0 core=0 rttime=1000; do
		succeeds "limit $n" prlimit --$n "$fiberize" "$here/work"
	done
	if [ "$(id -u)" = 0 ]; then
		cp "$library" "$here/work" "$work"
		chmod 755 "$work/work" "$work/libfiberize.so"
		for n in 1 2 3 4 8 12 100; do
			nproc_limit $n
		done
		# Natively there is room for just these threads.
		for backend in uring epoll; do
			for n in 1 2 3 4 5 7 10; do
				room_for $backend 2 $((n + 1)) "$n threads" "$work/work" $n
			done
		done
		# Threads and processes, for which we make room, if natively there is just enough.
		cat >"$work/forks.c" <<-'END'
			#include <pthread.h>
			#include <spawn.h>
			#include <stdio.h>
			#include <stdlib.h>
			#include <sys/wait.h>
			#include <unistd.h>
			extern char **environ;
			static int pipes[2];
			static void *run(void *arg) { char c; return read(pipes[0], &c, 1) == 1 ? arg : 0; }
			int main(int argc, char **argv)
			{
				char *cat[] = { "cat", 0 };
				int count = atoi(argv[1]), threads = atoi(argv[2]);
				pthread_t t[10];
				pid_t p[10];
				(void)argc;
				if (pipe(pipes))
					return 1;
				for (int i = 0; i < threads; i++)
					if (pthread_create(&t[i], 0, run, 0))
						return 2;
				for (int i = 0; i < count; i++) {
					if (i % 2 && posix_spawnp(&p[i], "cat", 0, 0, cat, environ))
						return 3;
					if (i % 2 == 0 && (p[i] = fork()) < 0)
						return 4;
					if (p[i] == 0)
						_exit(usleep(100000));
				}
				for (int i = 0; i < count; i++)
					waitpid(p[i], 0, 0);
				if (write(pipes[1], "0123456789", (size_t)threads) != threads)
					return 5;
				for (int i = 0; i < threads; i++)
					pthread_join(t[i], 0);
				puts("EXIT-SUCCESS");
				return 0;
			}
		END
		$CC -pthread -o "$work/forks" "$work/forks.c" || fails RLIMIT_NPROC 'does not compile'
		for backend in uring epoll; do
			for n in '1 1' '2 2' '3 2' '4 2' '5 3'; do
				room_for $backend 1 $((${n% *} + ${n#* } + 1)) \
					"processes and threads $n" "$work/forks" $n
			done
		done
		# With room for one thread, and not for ours, that one works as it would have.
		cat >"$work/one.c" <<-'END'
			#include <pthread.h>
			#include <stdio.h>
			static void *run(void *arg) { return arg; }
			int main(void)
			{
				pthread_t t;
				int err = pthread_create(&t, 0, run, 0);
				printf("%d\n", err ? err : pthread_join(t, 0));
				return 0;
			}
		END
		$CC -pthread -o "$work/one" "$work/one.c" || fails RLIMIT_NPROC 'does not compile'
		for n in 1 2 3 4; do
			as_nobody $n "$work/one"
			native="$code, $out"
			as_nobody $n env LD_PRELOAD="$work/libfiberize.so" FIBERIZE_VERBOSE=1 "$work/one"
			same "RLIMIT_NPROC $n, one thread" "$native" "$code, $out"
			has "RLIMIT_NPROC $n: says why" "$work/err" \
				'^fiberize: threads stay kernel threads: no kernel threads for the library: EAGAIN$'
		done
	fi
	# Stack overflow: the thread is named, and the process dies as it would have.
	rm -f "$work"/core*
	run sh -c 'cd "$0" && ulimit -c unlimited; exec "$@"' "$work" \
		env LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 "$programs/signal_overflow" dies
	same 'stack overflow: SIGSEGV' 139 "$code"
	has 'stack overflow: who' "$work/err" \
		'thread [0-9]* (digger) has overflowed its stack of 262144 bytes'
	if [ "$(cat /proc/sys/kernel/core_pattern)" = core ]; then
		set -- "$work"/core*
		yes 'stack overflow: core' [ -s "$1" ]
	fi
	cgroup_limit pids pids.max 16
	cgroup_limit memory memory.limit_in_bytes 33554432
	succeeds '40 processes at once' sh -c '
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 \
			21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; do
			"$@" >"$0/many.$i" &
			pids="${pids-} $!"
		done
		for pid in $pids; do
			wait $pid || exit 1
		done
		cat "$0"/many.* | tail -n 1' "$work" "$fiberize" "$here/work"
}

# ---- places where much is missing

group_places()
{
	local jail=$work/jail file pid
	if ! unshare -m true 2>/dev/null; then
		skip places 'no mount namespaces here'
		return
	fi
	succeeds 'no /proc' unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' - \
		"$fiberize" "$here/work"
	unshare -m sh -c 'mount -t tmpfs none /proc && cd / && PWD=/ && export PWD && exec "$@"' - \
		"$fiberize" sh -c 'printenv PWD && printenv a.b; echo "$?"' >"$work/out" 2>"$work/err"
	same 'no /proc: the environment' "/ 1" "$(tr '\n' ' ' <"$work/out" | sed 's/ $//')$(cat "$work/err")"
	# There, the launcher's number is that of another process.
	env OWN=another sleep 1000 &
	pid=$!
	must eventually has_executed $pid sleep
	unshare -pfm sh -c 'mount --bind "/proc/$1" /proc/1 && shift && OWN=own exec "$@"' - $pid \
		"$fiberize" printenv OWN >"$work/out" 2>"$work/err"
	same "another PID namespace's /proc: the environment" own "$(cat "$work/out" "$work/err")"
	{ kill $pid && wait $pid; } 2>/dev/null
	succeeds 'no /sys' unshare -m sh -c 'mount -t tmpfs none /sys && exec "$@"' - \
		"$fiberize" "$here/work"
	succeeds 'read-only root' unshare -m sh -c '
		mount --make-rprivate / && mount --bind / / && mount -o remount,bind,ro / && exec "$@"' - \
		"$fiberize" "$here/work"
	mkdir "$work/empty"
	succeeds 'chroot after start' "$fiberize" "$here/work" chroot "$work/empty"

	# The program, libc, its loader and the library; nothing else.
	mkdir -p "$jail"
	for file in "$here/work" "$library" $(ldd "$here/work" "$library" |
		grep -o '/[^ ]*\.so[^ :]*' | sort -u); do
		mkdir -p "$jail/$(dirname "$file")"
		cp -L "$file" "$jail/$file"
	done
	succeeds 'a jail with nothing else in it, natively' \
		chroot "$jail" "$here/work"
	run chroot "$jail" /usr/bin/env true
	same 'the jail is one: it has no env(1)' 127 "$code"
	cat >"$work/enter.c" <<-'END'
		#include <stdlib.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			(void)argc;
			if (chroot(argv[1]) || chdir("/"))
				return 2;
			setenv("LD_PRELOAD", argv[2], 1);
			setenv("FIBERIZE_VERBOSE", "1", 1);
			execv(argv[3], argv + 3);
			return 3;
		}
	END
	$CC -o "$work/enter" "$work/enter.c" || fails jail 'does not compile'
	succeeds 'a jail: it runs' "$work/enter" "$jail" "$library" "$here/work"
	has 'a jail: as fibers' "$work/err" '^fiberize: version .* processors'
}

[ $# -gt 0 ] || set -- preload names debuggers sanitizers limits places
for group; do
	"group_$group"
done
finish
