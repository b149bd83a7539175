#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/shells.sh - bash, make, git and python3's processes and signals: the same
# output and status as natively.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need "$python" bash make git

cat >"$work/script.sh" <<'END'
echo one | tr a-z A-Z | sed 's/O/0/' | while read -r x; do echo "got $x"; done
trap 'echo trapped USR1' USR1; kill -USR1 $$
trap 'echo trapped TERM; exit 7' TERM
sleep 0.05 & a=$!; (exit 3) & b=$!
wait $a; echo "a $?"; wait $b; echo "b $?"
for i in 1 2 3 4 5; do (echo "$((i * i))") & wait $!; done
# A background job ignores SIGINT, once bash has seen to that.
jobs; sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done
kill -INT $!; kill -TERM $!; wait $!; echo "killed $?"
x=$(for i in $(seq 50); do echo $i; done | tail -n 1); echo "$x"
diff <(seq 3) <(seq 3) && echo same
(trap '' PIPE; yes | head -n 1 >/dev/null; echo "${PIPESTATUS[*]}")
yes | head -n 1 >/dev/null; echo "${PIPESTATUS[*]}"
coproc cat; echo hello >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
kill -TERM $$
END

cat >"$work/processes.py" <<'END'
import multiprocessing, os, signal, subprocess, threading, time

def square(x):
    return x * x

def child(q, parent):
    q.put(os.getpid() != parent)

def main():
    got = []
    parent = os.getpid()
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for i in range(10)]
    for t in threads:
        t.start()
    signal.signal(signal.SIGUSR1, lambda s, f: got.append(int(s)))
    os.kill(parent, signal.SIGUSR1)
    time.sleep(0.01)
    print(got)
    signal.raise_signal(signal.SIGUSR1)
    print(got)
    signal.signal(signal.SIGALRM, lambda s, f: got.append("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    signal.pause()
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("alarm" in got)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR2)
    print(signal.sigpending(), signal.sigwait([signal.SIGUSR2]))
    print(subprocess.run(["sh", "-c", "cat; exit 5"], input=b"in", capture_output=True))
    p = subprocess.Popen(["sleep", "1000"])
    p.terminate()
    print(p.wait())
    p = subprocess.Popen("echo $0; exec 2>&1; echo err >&2", shell=True,
                         stdout=subprocess.PIPE, start_new_session=True)
    print(p.communicate(), p.returncode)
    for method in "fork", "spawn", "forkserver":
        c = multiprocessing.get_context(method)
        with c.Pool(3) as pool:
            print(method, pool.map(square, range(20)), flush=True)
        q = c.Queue()
        p = c.Process(target=child, args=(q, parent))
        p.start()
        print(q.get())
        p.join()
        print(p.exitcode)
    stop.set()
    for t in threads:
        t.join()
    try:
        subprocess.run(["sleep", "1000"], timeout=0.05)
    except subprocess.TimeoutExpired:
        print("timeout")

if __name__ == "__main__":
    main()
END

mkdir "$work/make"
cat >"$work/make/Makefile" <<'END'
all: $(addprefix out,1 2 3 4 5 6 7 8)
	@cat out*
out%:
	@echo $@ >$@; sleep 0.01
fails:
	@exit 3
END

git_work() {
	rm -rf "$work/repo"
	"$@" git init -q -b main "$work/repo" && cd "$work/repo" || return
	for i in 1 2 3; do
		echo "$i" >"file$i"
		"$@" git add . && "$@" git -c user.name=x -c user.email=x@y commit -q -m "commit $i"
	done
	"$@" git log --format=%s --stat
	"$@" git gc -q
	"$@" git fsck
	"$@" git clone -q . ../clone && "$@" git -C ../clone log --oneline | wc -l
	"$@" git grep -n 2
	rm -rf ../clone
	cd "$work" || return
}

all_of_it() {
	echo "-- bash"; "$@" bash "$work/script.sh" 2>&1; echo "status $?"
	echo "-- bash -c"; "$@" bash -c 'trap "echo bye" EXIT; (sleep 0.02; echo late) & wait; false | true; echo $?; set -o pipefail; false | true; exit $?' 2>&1; echo "status $?"
	echo "-- make"; rm -f "$work"/make/out*; "$@" make -s -j2 -C "$work/make" 2>&1; echo "status $?"
	"$@" make -s -j2 -C "$work/make" fails >/dev/null 2>&1; echo "status $?"
	echo "-- git"; git_work "$@" 2>&1
	echo "-- python"; PYTHONPATH=$work "$@" "$python" "$work/processes.py" 2>&1; echo "status $?"
}

# Process ids differ.
all_of_it | sed 's/[0-9]\{3,\}/PID/g' >"$work/native"
all_of_it "${fiberized[@]}" | sed 's/[0-9]\{3,\}/PID/g' >"$work/fibers"
cmp -s "$work/native" "$work/fibers" || {
	diff "$work/native" "$work/fibers" >"$work/diff.log"
	die "output differs"
}
has 'it works natively' "$work/native" '^forkserver \[0, 1, 4'
pass 'output as natively'
finish
