#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/libc.sh [SUITE...] - the programs with other versions of glibc than the one
# that the library was built with: those of other Debian suites (default: trixie),
# unpacked below build/, and run by their own loader.  Also a libc that the library
# does not know.
#
#	FZ_LIBC_PROGRAMS	patterns of the programs to run; '*' is all of them

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/modes.inc
. "$root/tests/lib/modes.inc"
cd "$root" || exit 1
# What leans on libc most; less of it without FZ_ALL.
most='thread_basic thread_c* thread_l* *_basic cancel_* file_calls io_socket spawn_*'
[ -z "${FZ_ALL-}" ] || most='thread_* mutex_* cond_* sem_* cancel_* file_calls ipc_queues signal_basic io_socket io_datagram fork_basic spawn_*'
read -r -a wanted <<<"${FZ_LIBC_PROGRAMS-$most}"

# fetch SUITE: libc6 of that suite below build/libc/SUITE, by apt's own means
fetch()
{
	local base=$build/libc/$1 options
	[ ! -e "$base/done" ] || return 0
	rm -rf "$base"
	mkdir -p "$base/state/lists/partial" "$base/cache/archives/partial"
	printf 'deb [signed-by=%s] %s %s main\n' /usr/share/keyrings/debian-archive-keyring.gpg \
		"${DEBIAN_MIRROR-http://deb.debian.org/debian}" "$1" >"$base/sources.list"
	options=(-qq -o "Dir::State=$base/state" -o "Dir::Cache=$base/cache"
		-o "Dir::Etc::sourcelist=$base/sources.list" -o Dir::Etc::sourceparts=-
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
		-o APT::Sandbox::User=root)
	(
		cd "$base" || exit 1
		timeout -k 5 200 apt-get "${options[@]}" update &&
			timeout -k 5 100 apt-get "${options[@]}" download libc6 &&
			dpkg-deb -x libc6_*.deb files
	) >"$base/log" 2>&1 || return 1
	rm -rf "$base/state" "$base/cache"
	touch "$base/done"
}

# by_loader NAME PROGRAM PRELOAD: by the loader of $libc; into $work/NAME
by_loader()
{
	local words
	words=$(arguments "${2##*/}" matrix)
	# The arguments are words.
	# shellcheck disable=SC2086
	limited "$libc/$loader" \
		--library-path "$libc:$system:/usr$system" ${3:+--preload "$3"} \
		"$2" ${words//\{seed\}/1} >"$work/$1" 2>"$work/$1.err" </dev/null
	echo $? >"$work/$1.status"
}

# compare SUITE PROGRAM: its answers are the same, natively and as fibers
compare()
{
	by_loader native "$2" ''
	[ "$(cat "$work/native.status")" != 77 ] || return 0
	by_loader fibers "$2" "$library"
	as_natively "$1 ${2##*/}" "$work/native" "$work/fibers"
}

suite()
{
	local program name pattern
	fetch "$1" || { skip "$1" "cannot be fetched: $(tail -n 1 "$build/libc/$1/log")"; return; }
	libc=$(dirname "$(find "$build/libc/$1/files" -name libc.so.6 | head -n 1)")
	loader=$(basename "$(find "$libc" -name 'ld-linux*' | head -n 1)")
	system=$(ldd "$library" | awk '$1 == "libc.so.6" { print $3 }')
	system=${system%/*}
	[ -x "$libc/$loader" ] || { fail "$1" "no loader in $libc"; return; }
	# That they are fibers, and of which libc.
	FIBERIZE_VERBOSE=1 by_loader fibers "$programs/thread_basic" "$library"
	grep -q 'fiberize: version .* processors' "$work/fibers.err" ||
		fail "$1" "no fibers: $(head -n 3 "$work/fibers.err")"
	for program in "$programs"/*; do
		name=${program##*/}
		if [ ! -f "$program" ] || [ ! -x "$program" ]; then
			continue
		fi
		case $name in
		*.* | legacy_server)	continue ;;
		thread_burst)	[ -n "${FZ_ALL-}" ] || continue ;;
		esac
		for pattern in "${wanted[@]}"; do
			# A pattern is wanted.
			# shellcheck disable=SC2053
			if [[ $name == $pattern ]]; then
				compare "$1" "$program"
				break
			fi
		done
	done
}

# ---- a libc that says of itself what cannot be

# unknown NAME WANTED SOURCE: with that preloaded as well, the library stays dormant
unknown()
{
	printf '%s\n' "$3" >"$work/lies.c"
	"$CC" -D_GNU_SOURCE -shared -fPIC -w -o "$work/lies.so" "$work/lies.c" || { fail "$1" 'does not compile'; return; }
	run env LD_PRELOAD="$library:$work/lies.so" FIBERIZE_VERBOSE=1 "$programs/thread_basic"
	if [ "$(tail -n 1 "$work/out")" != EXIT-SUCCESS ]; then
		fail "$1" "$(tail -n 3 "$work/out" "$work/err")"
	elif ! grep -q "^fiberize: threads stay kernel threads: $2\$" "$work/err"; then
		fail "$1" "says $err"
	else
		pass "$1"
	fi
}

unknown 'a tid of 64 bits' 'this libc does not describe its thread control block' \
	'unsigned _thread_db_pthread_tid[3] = { 64, 1, 720 };'
unknown 'a tid elsewhere' "this libc's thread control block is not what it says" \
	'unsigned _thread_db_pthread_tid[3] = { 32, 1, 8 };'
unknown 'other bits for cancellation' 'this libc marks cancellation otherwise' \
	'int pthread_setcancelstate(int s, int *old) { if (old) *old = 0; return 0; }'
unknown 'another mutex' "this libc's mutexes are not what its headers say" \
	'#include <dlfcn.h>
	 static int real(const char *name, void *m)
	 { return ((int (*)(void *))dlsym(RTLD_NEXT, name))(m); }
	 int pthread_mutex_lock(int *m) { int e = real(__func__, m); m[3] += 8; return e; }
	 int pthread_mutex_unlock(int *m) { m[3] -= 8; return real(__func__, m); }'

unknown 'another condition variable' "this libc's condition variables are not what its headers say" \
	'int pthread_cond_init(int *c, void *a) { for (int i = 0; i < 12; i++) c[i] = 0; return 0; }'

# libc as the program: it comes before us, and none of its functions after.
libc=$(ldd "$library" | awk '$1 == "libc.so.6" { print $3 }')
"$libc" >"$work/native" 2>&1
run env LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 "$libc"
same 'libc itself: exit status' 0 "$code"
same 'libc itself: what it says' "$(cat "$work/native")" "$out"
same 'libc itself: why' 'fiberize: threads stay kernel threads: this libc lacks functions' \
	"$(tail -n 1 <<<"$err")"

[ $# -gt 0 ] || set -- trixie
for name; do
	suite "$name"
done
finish
