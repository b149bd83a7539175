#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/dev/gen-blocking.sh - the manual's table of every function that may block, from
# scripts/dev/blocking.list.
#
#	--man	the table
#	--check [BUILD]	the manual is up to date, and the list complete; else exit 1
#	--update	make the manual so
#
# The list is complete if it has
#  1 each cancellation point (scripts/dev/cancellation-points.list) that libc exports
#  2 each function of libc that makes a system call itself, unless that call is one of
#    those below that wait for nothing
#  3 each name of preload/symbols.def that parks or is announced
# and it is right if
#  4 libc exports each name, and each is there once
#  5 what is taken over is in preload/symbols.def, and nothing else is
#  6 the tests are there, and use the names
#
# The manual holds its table between .\" blocking begin and .\" blocking end
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
list=scripts/dev/blocking.list
points=scripts/dev/cancellation-points.list
def=preload/symbols.def
manual=scripts/package/fiberize.1

# System calls that wait for nothing but memory, a CPU, or a lock inside the kernel.
# What they are asked of a file system is about what is in memory already.
never='acct alarm arch_prctl bind brk capget capset chroot clock_adjtime
clock_getres clock_gettime clock_settime clone close_range create_module delete_module
init_module dup dup2 dup3 epoll_create epoll_create1 epoll_ctl eventfd2 execve execveat exit
exit_group fanotify_init fanotify_mark get_kernel_syms getcpu getcwd getegid geteuid getgid
getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getresgid getresuid
getrusage getsid getsockname getsockopt gettid getuid inotify_add_watch inotify_init
inotify_init1 inotify_rm_watch ioperm iopl kill listen lseek madvise memfd_create mincore
mlock mlock2 mlockall mmap modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_unlink
mremap msgctl msgget munlock munlockall munmap nfsservctl personality pidfd_getfd pidfd_open
pidfd_send_signal pipe pipe2 pivot_root pkey_alloc pkey_free pkey_mprotect prctl prlimit64
process_madvise process_mrelease process_vm_readv process_vm_writev ptrace query_module
quotactl reboot remap_file_pages rt_sigpending rt_sigprocmask rt_sigqueueinfo
rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setparam
sched_setscheduler semctl semget set_robust_list setdomainname setfsgid setfsuid setgid
setgroups sethostname setitimer setns setpgid setpriority setregid setresgid setresuid
setreuid setsid setsockopt setuid shmat shmctl shmdt shmget shutdown sigaltstack signalfd4
socket socketpair sysinfo tgkill timer_create timer_delete timer_getoverrun timer_gettime
timer_settime timerfd_create timerfd_gettime timerfd_settime times umask uname unshare uselib
ustat vfork vhangup'

# Functions that make a call of the other kind, but do not wait: tries, wake-ups.
harmless='_exit _Exit abort herror tcgetattr getcontext setcontext swapcontext mq_close
pthread_create pthread_mutex_init pthread_mutex_trylock pthread_mutex_setprioceiling
pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock pthread_cond_signal
pthread_cond_broadcast sem_post pthread_barrier_destroy syscall'

# Cancellation points by permission, which libc does not make use of.
not_waiting='getopt gethostname lseek posix_madvise pthread_cancel pthread_setcancelstate
pthread_setcanceltype pthread_testcancel'

# Words between single blanks.
never=${never//$'\n'/ } harmless=${harmless//$'\n'/ } not_waiting=${not_waiting//$'\n'/ }

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

found=0
finding()
{
	echo "gen-blocking: $*"
	found=1
}

# Lines TOPIC|RUNG|TESTS|NAME, of the list as it is.
awk -F'|' '
	/^#/ || /^$/ { next }
	/^[^\t]/ {
		for (i = 1; i <= 3; i++)
			gsub(/^ +| +$/, "", $i)
		head = $1 "|" $2 "|" $3
		next
	}
	{
		n = split($0, names, " ")
		for (i = 1; i <= n; i++)
			print head "|" names[i]
	}' $list >"$work/rows"
cut -d'|' -f4 "$work/rows" | sort >"$work/names"

# ALIAS NAME
sed -n 's/^FZ_ALIAS(\([A-Za-z0-9_]*\), *\([A-Za-z0-9_]*\))$/\1 \2/p' $def >"$work/aliases"
sed -n 's/^FZ_SYMBOL(\([A-Za-z0-9_]*\),.*$/\1/p' $def | sort >"$work/taken"
sed -n 's/^FZ_SYMBOL(\([A-Za-z0-9_]*\),.*\(PARK\|ANNOUNCE\).*$/\1/p' $def | sort >"$work/waiting"

man()
{
	awk -F'|' '
		function roff(text)
		{
			gsub(/-/, "\\-", text)
			return text
		}
		BEGIN {
			say["user"] = "answered in user space"
			say["ring"] = "a request on the ring"
			say["ready"] = "readiness on the ring, then the call"
			say["announced"] = "announced: the processor is handed off before the call"
			say["brief"] = "announced as brief: the processor is taken if the call lasts"
			say["inside"] = "not taken over; libc waits in one of the others"
			say["never"] = "not taken over; waits for nothing"
		}
		$1 != topic {
			topic = $1
			print ".TP"
			print ".IR \"" roff(topic) "\" \" (" say[$2] ($3 == "-" ? "" : "; tests: " $3) ")\""
		}
		{ print roff($4) }' "$work/rows"
}

# FILE with the lines between the two marks replaced.
fresh()
{
	text=$(man) awk '
	$0 == ".\\\" blocking begin" { print; print ENVIRON["text"]; inside = 1; found++ }
	$0 == ".\\\" blocking end" { inside = 0; closed++ }
	!inside { print }
	END { exit !(found == 1 && closed == 1) }' $manual
}

# Lines "NAME SYSTEM-CALL" for the functions of libc that make one themselves.
system_calls()
{
	# START SIZE NAME; libc's own business is GLIBC_PRIVATE.
	readelf -W --dyn-syms "$1" | awk '
		($4 == "FUNC" || $4 == "IFUNC") && $7 != "UND" && $8 !~ /GLIBC_PRIVATE/ {
			sub(/@.*/, "", $8)
			print $2, $3, $8
		}' | sort -u >"$work/at"
	echo '#include <asm/unistd.h>' | ${CC-gcc} -E -dM - |
		awk '$2 ~ /^__NR_/ { print substr($2, 6), $3 }' >"$work/numbers"
	objdump -d --no-show-raw-insn "$1" | awk -v at="$work/at" -v numbers="$work/numbers" '
		function number(hex,	i, n)
		{
			for (i = 1; i <= length(hex); i++)
				n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
			return n
		}
		BEGIN {
			while ((getline line <at) > 0) {
				split(line, f, " ")
				sub(/^0+/, "", f[1])
				names[f[1]] = names[f[1]] " " f[3]
				size[f[1]] = f[2]
			}
			while ((getline line <numbers) > 0) {
				split(line, f, " ")
				call[f[2]] = f[1]
			}
		}
		# objdump starts a function anew at each symbol that it knows.
		/^[0-9a-f]+ <.*>:$/ {
			start = $1
			sub(/^0+/, "", start)
			here = names[start]
			rax = ""
			next
		}
		/mov +\$0x[0-9a-f]+,%eax/ {
			rax = $0
			sub(/.*mov +\$0x/, "", rax)
			sub(/,%eax.*/, "", rax)
			rax = number(rax)
		}
		/xor +%eax,%eax/ { rax = 0 }
		# What follows the end is some static function.
		/\tsyscall/ && here != "" {
			address = $1
			sub(/:/, "", address)
			if (number(address) >= number(start) + size[start])
				next
			n = split(here, f, " ")
			for (i = 1; i <= n; i++)
				print f[i], (rax in call ? call[rax] : "unknown")
			rax = ""
		}' | sort -u
}

check()
{
	local build=${1-build} libc name

	libc=$(ldd "$build/libfiberize.so" | awk '$1 == "libc.so.6" { print $3 }')
	[ -e "$libc" ] || { finding "cannot find libc.so.6"; return; }
	nm -D --defined-only "$libc" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u >"$work/exported"
	# What counts as listed: the names, and their aliases.
	awk 'NR == FNR { listed[$1] = 1; print $1; next } $2 in listed { print $1 }' \
		"$work/names" "$work/aliases" | sort -u >"$work/listed"

	# 1
	for name in $(grep -v '^#' $points | sort | comm -12 - "$work/exported" |
		comm -23 - "$work/listed"); do
		case " $not_waiting " in
		*" $name "*)	continue ;;
		esac
		finding "$name is a cancellation point, and not in $list"
	done
	# 2
	if [ "$(uname -m)" = x86_64 ]; then
		system_calls "$libc" >"$work/calls"
		[ "$(wc -l <"$work/calls")" -gt 300 ] ||
			finding "cannot read the system calls of $libc"
		for name in $(awk -v never=" $never " '
			$2 != "unknown" && !index(never, " " $2 " ") { print $1 }' "$work/calls" |
			sort -u | comm -23 - "$work/listed"); do
			case " $harmless " in
			*" $name "*)	continue ;;
			esac
			case $name in
			__pthread_*|__libc_*)	continue ;;
			esac
			finding "$name calls $(awk -v n="$name" '$1 == n { print $2 }' \
				"$work/calls" | tr '\n' ' ')and is not in $list"
		done
	fi
	# 3
	for name in $(comm -23 "$work/waiting" "$work/names"); do
		finding "$name of $def is not in $list"
	done
	# 4
	for name in $(uniq -d "$work/names"); do
		finding "$name is in $list twice"
	done
	for name in $(comm -23 "$work/names" "$work/exported"); do
		finding "libc has no $name"
	done
	# 5, 6
	while IFS='|' read -r _ rung tests name; do
		case $rung in
		user|ring|ready|announced|brief)
			grep -qx -- "$name" "$work/taken" ||
				finding "$name: $rung, but not in $def" ;;
		inside|never)
			grep -qx -- "$name" "$work/waiting" &&
				finding "$name: $rung, but $def takes it over"
			continue ;;
		*)	finding "$name: no such rung: $rung" ;;
		esac
		# shellcheck disable=SC2086 # words
		uses "$build" "$name" $tests || finding "$name: not used by $tests"
	done <"$work/rows"
	[ "$(fresh)" = "$(cat $manual)" ] ||
		finding "$manual: not up to date; run scripts/dev/gen-blocking.sh --update"
}

# uses BUILD NAME TEST...: by its source, or by what header or compiler made of it.
uses()
{
	local build=$1 name=$2 test alias
	shift 2
	for test in "$@"; do
		[ -e "$(echo tests/programs/*/"$test.c")" ] || finding "there is no test $test"
		for alias in "$name" $(awk -v n="$name" '$2 == n { print $1 }' "$work/aliases"); do
			grep -qw -- "$alias" tests/programs/*/"$test.c" 2>/dev/null && return 0
			[ -e "$work/nm.$test" ] || nm -D --undefined-only \
				"$build/tests/programs/$test" 2>/dev/null |
				sed 's/.* //; s/@.*//' >"$work/nm.$test"
			grep -qx -- "$alias" "$work/nm.$test" && return 0
		done
	done
	return 1
}

case ${1-} in
--man)
	man
	;;
--check)
	check "${2-build}"
	exit $found
	;;
--update)
	text=$(fresh) || { echo "gen-blocking: $manual: its marks are missing"; exit 1; }
	[ "$text" = "$(cat $manual)" ] || printf '%s\n' "$text" >$manual
	;;
*)
	echo "usage: gen-blocking.sh --man | --check [BUILD] | --update" >&2
	exit 2
	;;
esac
