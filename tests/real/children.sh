#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/children.sh - FIBERIZE_CHILDREN=0: what a program executes runs without
# the library, and keeps whatever else is preloaded.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../lib/judge.inc"
python=/usr/bin/python3
need "$python"
ln -s "$library" "$work/libother.so"

# How often the library is mapped executable in a child, by each way to make one.
cat >"$work/ways.py" <<'END'
import ctypes, os, subprocess, threading
threading.Thread(target=lambda: None).start()
look = "grep -c 'r-xp.*libfiberize' /proc/self/maps || true; echo ${LD_PRELOAD-none}"
print("self", open("/proc/self/maps").read().count("libfiberize") > 0)
print("system", flush=True); os.system(look)
print("popen", os.popen(look).read().split(), flush=True)
print("subprocess", subprocess.check_output(look, shell=True).split(), flush=True)
print("env", subprocess.check_output(["/bin/sh", "-c", look], env=dict(os.environ)).split(), flush=True)
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo spawned; " + look], os.environ)
os.waitpid(pid, 0)
pid = os.fork()
if pid == 0:
    os.execve("/bin/sh", ["sh", "-c", "echo forked; " + look], os.environ)
os.waitpid(pid, 0)
END

# An environment that the program has built is passed on as it is.
cat >"$work/built.py" <<'END'
import os, sys, threading
threading.Thread(target=lambda: None).start()
look = "grep -c 'r-xp.*libfiberize' /proc/self/maps; grep -c 'r-xp.*libm.so' /proc/self/maps; env | grep -v ^_= | sort"
env = {"LD_PRELOAD": sys.argv[1], "PATH": os.environ["PATH"], "FIRST": "1", "PWD": "/"}
os.chdir("/")
os.waitpid(os.posix_spawn("/bin/bash", ["bash", "-c", look], env), 0)
pid = os.fork()
if pid == 0:
    os.execve("/bin/bash", ["bash", "-c", look], env)
os.waitpid(pid, 0)
os.environ["LD_PRELOAD"] = sys.argv[2]
os.system("grep -c 'r-xp.*libfiberize' /proc/self/maps; echo $LD_PRELOAD")
del os.environ["LD_PRELOAD"]
os.system("grep -c 'r-xp.*libfiberize' /proc/self/maps; echo $LD_PRELOAD")
END

ways() {
	run env "$@" "$python" "$work/ways.py"
	echo "$out$err"
}

# $1: what each is to say of maps and LD_PRELOAD.
expect() {
	printf 'self True\nsystem\n%s\n%s\n' "$1" "$2"
	printf "popen ['%s', '%s']\nsubprocess [b'%s', b'%s']\nenv [b'%s', b'%s']\n" \
		"$1" "$2" "$1" "$2" "$1" "$2"
	printf 'spawned\n%s\n%s\nforked\n%s\n%s\n' "$1" "$2" "$1" "$2"
}

libm=$(ldd "$library" | awk '$1 == "libc.so.6" { print $3 }')
libm=${libm%/*}/libm.so.6
same 'by default' "$(expect 1 "$library")" "$(ways "LD_PRELOAD=$library")"
same 'alone' "$(expect 0 none)" "$(ways "LD_PRELOAD=$library" FIBERIZE_CHILDREN=0)"
same 'behind another' "$(expect 0 "$libm")" \
	"$(ways "LD_PRELOAD=$libm:$library" FIBERIZE_CHILDREN=0)"
same 'before another' "$(expect 0 "$libm")" \
	"$(ways "LD_PRELOAD=$library $libm" FIBERIZE_CHILDREN=0)"
same 'by another name' "$(expect 0 none)" \
	"$(ways "LD_PRELOAD=$work/libother.so" FIBERIZE_CHILDREN=0)"
same 'by the stub' "$(expect 0 "$libm")" \
	"$(ways "LD_PRELOAD=$build/libfiberize-preload.so:$libm" FIBERIZE_CHILDREN=0)"
# shellcheck disable=SC2016 # the loader expands it
same 'by what the loader expands' "$(expect 0 none)" \
	"$(ways "LD_PRELOAD=$build/"'${LIB}/libfiberize.so' FIBERIZE_CHILDREN=0)"

for preloaded in "$libm" "$library:$libm"; do
	want=$(limited "$python" "$work/built.py" "$preloaded" "$libm" 2>&1)
	for children in 0 1; do
		same "an environment of its own, FIBERIZE_CHILDREN=$children, $preloaded" "$want" \
			"$(limited env "LD_PRELOAD=$library" FIBERIZE_CHILDREN=$children \
				$python "$work/built.py" "$preloaded" "$libm" 2>&1)"
	done
done
like 'natively, too' "*LD_PRELOAD=$library:$libm*" "$want"
finish
