#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/forbidden.sh - io_uring forbidden by a seccomp filter, as in a
# container: fibers wait by epoll, the program's output does not change, and one line tells the
# reason. What --verbose tells besides.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
version=$(sed -n 's/^VERSION := //p' "$root/Makefile")

forbidden()
{
	limited "$helpers/forbid_io_uring" "$@" 2>"$work/err"
}

said='fiberize: io_uring cannot be used here: io_uring_setup: EPERM; fibers wait by epoll; see fiberize(1), CONTAINERS'
for name in thread_basic mutex_stress io_socket io_datagram signal_basic proxy_chain; do
	limited "$programs/$name" >"$work/native"
	echo $? >"$work/native.status"
	forbidden "$fiberize" "$programs/$name" >"$work/fibers"
	echo $? >"$work/fibers.status"
	as_natively "$name" "$work/native" "$work/fibers"
	same "$name: one line" "$said" "$(cat "$work/err")"
done

why='epoll (io_uring_setup: EPERM)'
program=$programs/mutex_stress
forbidden "$fiberize" -v -p 3 "$program" >/dev/null
same 'said when asked' "fiberize: version $version, 3 processors, $why" "$(tail -n +2 "$work/err")"
has 'before the first thread' "$work/err" '^fiberize: .*mutex_stress\[[0-9]*\]: dormant until the first '
forbidden "$fiberize" --stats "$program" >/dev/null
same 'and in the statistics' 1 "$(grep -c "^fiberize: mutex_stress\[[0-9]*\]: running, .*, $why\$" "$work/err")"

# As older container runtimes, and a kernel without memory for it.
for error in ENOSYS:38 ENOMEM:12 EACCES:13; do
	run "$helpers/forbid_io_uring" "-${error#*:}" "$fiberize" -v -p 2 "$program"
	same "${error%:*}: exit status" 0 "$code"
	same "${error%:*}: on epoll" \
		"fiberize: version $version, 2 processors, epoll (io_uring_setup: ${error%:*})" \
		"$(tail -n +2 "$work/err")"
done

message='fiberize: threads stay kernel threads: only io_uring is wanted (--backend uring), and it cannot be used here: io_uring_setup: EPERM'
forbidden "$fiberize" --backend uring "$program" >/dev/null
same 'insisted upon: native, said once' "$message" "$(cat "$work/err")"
forbidden env LD_PRELOAD="$build/libfiberize.so" FIBERIZE_BACKEND=uring "$program" >/dev/null
same 'the bare library is quiet' '' "$(cat "$work/err")"
forbidden env LD_PRELOAD="$build/libfiberize.so" "$program" >/dev/null
same 'the bare library is quiet on epoll' '' "$(cat "$work/err")"
forbidden "$fiberize" true
same 'no threads, nothing to say' '' "$(cat "$work/err")"

for backend in auto uring epoll; do
	case $backend in
	auto|uring) name=io_uring ;;
	epoll) name=epoll ;;
	esac
	run "$fiberize" -v -p 2 --backend $backend "$program"
	same "backend $backend" "fiberize: version $version, 2 processors, $name" "$(tail -n +2 "$work/err")"
done
run "$fiberize" -v -p 2 --without sync-cancel "$program"
same 'an old io_uring' "fiberize: version $version, 2 processors, epoll (this kernel's io_uring is too old (6.0 or newer is needed): ENOSYS)" "$(tail -n +2 "$work/err")"

# ---- why threads are kernel threads

run "$fiberize" -v --disable true
like 'switched off' 'fiberize: true[[]*]: dormant: switched off (FIBERIZE_DISABLE or /etc/fiberize/disable); version *, * processors, backend auto' "$err"
run "$fiberize" -v "$programs/openmp"
has 'OpenMP' "$work/err" '^fiberize: threads that libgomp[^ ]* makes stay kernel threads: '
has 'a thread that OpenMP helps' "$work/err" \
	'^fiberize: thread [0-9]* (openmp) becomes a kernel thread: it makes threads that '
run "$fiberize" -v "$programs/signal_wired"
has 'a mutex that the kernel must know' "$work/err" ') becomes a kernel thread: a robust or priority-'
has 'attributes that only a kernel thread has' "$work/err" '^fiberize: a new thread is a kernel thread, not a fiber: its attr'
cat >"$work/reasons.c" <<'PROGRAM'
#include <pthread.h>
#include <sched.h>

static void *nothing(void *arg)
{
	return arg;
}

static void *unshares(void *arg)
{
	pthread_t t[2];

	unshare(CLONE_FS);
	for (int i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, nothing, NULL);
		pthread_join(t[i], NULL);
	}
	return arg;
}

int main(void)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	pthread_t t;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	pthread_create(&t, &attr, nothing, NULL);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, unshares, NULL);
	return pthread_join(t, NULL);
}
PROGRAM
must "$CC" -D_GNU_SOURCE -pthread "$work/reasons.c" -o "$work/reasons"
run "$fiberize" -v "$work/reasons"
same 'each reason is said, once' 'its attributes its creator' \
	"$(sed -n 's/^fiberize: a new thread is a kernel thread, not a fiber: \(its [a-z]*\) .*/\1/p' <<<"$err" | paste -sd ' ')"
run "$fiberize" -v --native-threads '*' "$programs/thread_basic"
has 'by name' "$work/err" ') becomes a kernel thread: a name in --native-threads$'
same 'the name of a process that has made no thread' cat "$("$fiberize" --native-threads '*' cat /proc/self/comm)"
cat >"$work/late.c" <<'PROGRAM'
#include <pthread.h>
#include <sys/prctl.h>
static void *change(void *arg)
{
	pthread_setname_np(pthread_self(), "changer");
	prctl(PR_SET_TIMERSLACK, 1000);
	return arg;
}
int main(void)
{
	pthread_t t;
	return pthread_create(&t, 0, change, 0) || pthread_join(t, 0);
}
PROGRAM
must "$CC" -D_GNU_SOURCE -pthread -o "$work/late" "$work/late.c"
run "$fiberize" -v "$work/late"
has 'state of the kernel' "$work/err" '^fiberize: thread [0-9]* (changer) becomes a kernel thread: prctl$'

finish
