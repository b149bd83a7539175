#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/check/check.sh [all] - "fiberize check" on known, generated and damaged programs,
# and on programs in /usr/bin and /usr/sbin: a sample, or with "all" all of them.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
cd "$root" || exit 1
unset LD_LIBRARY_PATH

# says FILE FILTER WANTED: jq's FILTER of the report is WANTED
says()
{
	local name
	# In one line, whatever the file is called.
	name=$(printf '%s: %s' "${1##*/}" "$2" | tr -s '[:space:]' ' ' | tr -cd '[:print:]')
	same "$name" "$3" "$("$fiberize" check --json "$1" | jq -r "$2")"
}

# exits CODE FILE: by that code, with the verdict "cannot" unless it is 0
exits()
{
	run "$fiberize" check "$2"
	same "${2##*/}: exit status" "$1" "$code"
	[ "$1" = 0 ] || like "${2##*/}: verdict" '*verdict  *cannot: ?*' "$out$err"
}

# ---- known programs

# Another user than root, who may not read where we were built.  By env, because setpriv
# itself keeps capabilities until the next exec.
user=()
cp "$fiberize" "$build/libfiberize.so" "$work"
check=("$work/fiberize" --no-profiles check)
chmod 755 "$work" "$work/fiberize" "$work/libfiberize.so"
if [ "$(id -u)" = 0 ]; then
	user=(setpriv --reuid 65534 --regid 65534 --clear-groups -- env)
fi
known=0
while IFS='|' read -r file kind verdict reason; do
	case $file in
	'#'*)	continue ;;
	esac
	[ -e "$file" ] || continue
	known=$((known + 1))
	case $kind in
	# For root, the kernel makes nothing of that.
	set-*)	"${user[@]}" "${check[@]}" --json "$file" >"$work/json" ;;
	*)	"$fiberize" check --json "$file" >"$work/json" ;;
	esac
	like "$file" "$kind|$verdict|$reason*" \
		"$(jq -r '.kind + "|" + .verdict + "|" + .reason' "$work/json")"
done <tests/scripts/check/check_known.txt
yes 'known programs that are here' [ $known -ge 30 ]

# ---- whatever is installed: no crash, a code that exists, the right machine

if [ "${1-}" = all ]; then
	files=(/usr/bin/* /usr/sbin/*)
else
	files=()
	for file in /usr/bin/* /usr/sbin/*; do
		number=$((${number-0} + 1))
		[ $((number % 12)) -ne 0 ] || files+=("$file")
	done
fi
yes 'installed programs to look at' [ ${#files[@]} -ge 20 ]
wrong=
for file in "${files[@]}"; do
	"$fiberize" check --json "$file" >>"$work/all.json" 2>"$work/errors"
	status=$?
	case $status in
	0 | 11[6-9] | 12[067])	;;
	*)	wrong="$wrong $file: exit status $status" ;;
	esac
	[ ! -s "$work/errors" ] || wrong="$wrong $file: $(cat "$work/errors")"
done
same 'installed programs: a code and no complaint' '' "$wrong"
jq -r 'select(.file != null) | .file + "|" + (.machine // "none")' "$work/all.json" \
	>"$work/machines"
same 'installed programs: JSON' 0 $?
jq -rs 'map(select(.file != null) | .file)[]' "$work/all.json" | tr '\n' '\0' |
	LC_ALL=C xargs -0 readelf -h /dev/null 2>/dev/null |
	awk '/^File: / { file = substr($0, 7) }
	     / Machine: / { m = $0; sub(/.*Machine: */, "", m); print file "|" m }' |
	sed 's/Advanced Micro Devices X86-64/x86-64/; s/Intel 80386/x86/' >"$work/readelf"
yes 'readelf knows some' [ -s "$work/readelf" ]
same "installed programs: the machines that readelf says" '' \
	"$(diff "$work/machines" "$work/readelf" | head -n 5)"

# ---- made ones

cat >"$work/threads.c" <<'END'
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
static void *run(void *arg) { char c; return read(0, &c, 1) < 0 ? arg : 0; }
int main(void)
{
	pthread_t t;
	sleep(0);
	return accept(0, 0, 0) < 0 && pthread_create(&t, 0, run, 0);
}
END
cat >"$work/loop.c" <<'END'
#include <sys/epoll.h>
#include <unistd.h>
int main(void) { return epoll_wait(0, 0, 1, 0) < 0 && fork() == 0; }
END
cat >"$work/computes.c" <<'END'
int main(void)
{
	int sum = 0;
#pragma omp parallel for
	for (int i = 0; i < 3; i++)
		sum += i;
	return sum;
}
END
cat >"$work/raw.c" <<'END'
long futex(void *p)
{
	long ret;
#if defined(__x86_64__)
	__asm__ volatile("movl $202, %%eax\n\tsyscall" : "=&a"(ret) : "D"(p)
			 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = 98, x0 __asm__("x0") = (long)p;
	__asm__ volatile("mov x8, #98\n\tsvc #0" : "+r"(x0) : "r"(x8) : "memory");
	ret = x0;
#endif
	return ret;
}
END
cat >"$work/uses.c" <<'END'
long futex(void *p);
int main(void) { return (int)futex(0) + 0x050f00; }
END
cat >"$work/own.c" <<'END'
int pthread_create(void *t, void *a, void *(*f)(void *), void *arg)
{
	(void)t; (void)a; (void)f; (void)arg;
	return 11;
}
int main(void) { return pthread_create(0, 0, 0, 0); }
END
cat >"$work/go.c" <<'END'
__attribute__((section(".note.go.buildid"), used)) static const struct {
	unsigned namesz, descsz, type; char name[4], id[4];
} note = { 4, 4, 4, "Go", "abc" };
int main(void) { return 0; }
END
must "$CC" -pthread -o "$work/threads" "$work/threads.c"
must "$CC" -o "$work/loop" "$work/loop.c"
must "$CC" -fopenmp -o "$work/computes" "$work/computes.c"
mkdir -p "$work/lib/deep" "$work/elsewhere"
must "$CC" -O1 -shared -fPIC -o "$work/lib/deep/libraw.so" "$work/raw.c"
must "$CC" -O1 -o "$work/uses" "$work/uses.c" -L"$work/lib/deep" -lraw \
	-Wl,-rpath,"\$ORIGIN/lib/deep"
must "$CC" -O1 -o "$work/by-rpath" "$work/uses.c" -L"$work/lib/deep" -lraw \
	-Wl,--disable-new-dtags,-rpath,"\${ORIGIN}/lib/deep"
must "$CC" -O1 -o "$work/lost" "$work/uses.c" -L"$work/lib/deep" -lraw
must "$CC" -rdynamic -o "$work/own" "$work/own.c"
must "$CC" -o "$work/go" "$work/go.c"
must "$CC" -static -o "$work/static-go" "$work/go.c"

says "$work/threads" .verdict 'will gain'
says "$work/threads" '.objects[0].calls | tojson' \
	'{"user_space":["sleep"],"request":["accept","read"],"readiness":[],"announced":[],"brief":[],"inside_libc":[],"seen_late":[]}'
says "$work/threads" '.objects[0].threads[0]' pthread_create

# Without FSGSBASE each switch is a system call.
case $(uname -m)-$(grep -c -m1 -w fsgsbase /proc/cpuinfo) in
x86_64-0)	says "$work/threads" '.switch_ns > 0' true ;;
*)		says "$work/threads" .switch_ns 0
		run "$fiberize" check "$work/threads"
		same 'no switch is a system call' '' "$(grep '^switches' "$work/out")" ;;
esac
if [ "$(uname -m)" = x86_64 ]; then
	export FIBERIZE_WITHOUT=rwf-nowait,fsgsbase
	says "$work/threads" '.switch_ns > 0' true
	run "$fiberize" check "$work/threads"
	has 'what a switch costs' "$work/out" '^switches    a system call of [0-9]* ns each$'
	dear=$(sed -n 's/^switches .* of \([0-9]*\) ns each$/\1/p' "$work/out")
	if [ "$dear" -lt 1000 ]; then dear='run it by fiberize'; else dear='measure by'; fi
	has 'advice where a switch costs' "$work/out" "^advice      $dear"
	unset FIBERIZE_WITHOUT
fi

says "$work/loop" '.verdict + ": " + .reason' 'will not gain: event loop'
says "$work/computes" .verdict 'will not gain'
says "$work/computes" .reason 'its threads are CPU-bound (OpenMP)'
for file in uses by-rpath; do
	says "$work/$file" '.objects[] | select(.path | endswith("libraw.so")) |
		.raw_system_calls | tojson' '{"sites":1,"waiting":["futex"]}'
	says "$work/$file" '.objects[0].raw_system_calls.sites' 0
	says "$work/$file" '.not_found | tojson' '[]'
done
says "$work/lost" '.not_found | tojson' '["libraw.so"]'
says "$work/lost" .advice 'install what was not found: the program does not start without it'
export LD_LIBRARY_PATH="$work/elsewhere:$work/lib/deep"
says "$work/lost" '.not_found | tojson' '[]'
unset LD_LIBRARY_PATH
says "$work/own" .reason 'it defines pthread_create itself, so fiberize does not see its threads'
says "$work/own" '.objects[0].own | tojson' '["pthread_create"]'
says "$work/go" '.kind' 'Go, dynamic'
says "$work/go" '.verdict + ": " + .reason' \
	'will not gain: Go: its goroutines are what fibers are: threads of its own in user space'
exits 0 "$work/go"
says "$work/static-go" '.kind' 'Go, static'
exits 116 "$work/static-go"
exits 127 "$work/no-such"
exits 126 "$work"

# A strange name, and a script that is followed.
mkdir "$work/sub"
name=$(printf '%s/sub/"q\\ \tt\n\377\303\244' "$work")
cp "$work/threads" "$name"
says "$name" .verdict 'will gain'
says "$name" '.program | length' $((${#work} + 14))
printf '#!/usr/bin/env -S X=1 %s -x\n' "$work/threads" >"$work/script"
chmod +x "$work/script"
says "$work/script" '.file' "$work/threads"
says "$work/script" '.scripts | tojson' "[\"$work/script\"]"
printf '#!/usr/bin/env --split-string=%s -x\n' "$work/threads" >"$work/script"
says "$work/script" '.file' "$work/threads"
printf '#!/usr/bin/env -S PATH=/no/such threads\n' >"$work/script"
says "$work/script" '.kind + .verdict' 'dynamicwill not gain'

printf '%s\n' '#include <sys/socket.h>' '#include <unistd.h>' \
	'int main(void) { return accept(0, 0, 0) < 0 && fork() < 0; }' >"$work/forks.c"
must "$CC" -o "$work/forks" "$work/forks.c"
says "$work/forks" '.verdict + ": " + .reason' 'will not gain: processes instead of threads'

# ---- wrappers, libraries that are loaded at run time

# shellcheck disable=SC2016
printf '#!/bin/sh\nA=1 B="/bin/cat /bin/ls"\n[ "$1" ] && exec 3>&1\nexec -a x env C=1 %s "$@"\n' \
	"'$work/threads'" >"$work/wrapper"
printf '#!/bin/sh\nif true; then %s/wrapper; else /bin/cat /bin/ls; fi # /bin/ls\n' "$work" \
	>"$work/wrapper2"
printf '#!/bin/sh\nexec %s/wrapper3\n' "$work" >"$work/wrapper3"
# shellcheck disable=SC2016
printf '#!/bin/sh\nexec "$PROGRAM"\n%s x\n' "$work/static-go" >"$work/wrapper4"
chmod +x "$work"/wrapper*
threads="it starts $work/threads: it makes threads, and serves connections"
says "$work/wrapper" '.verdict + ": " + .reason' "will gain: $threads"
says "$work/wrapper" '.starts | map(.program + " " + .verdict) | tojson' "[\"$work/threads will gain\"]"
says "$work/wrapper2" '.verdict + ": " + .reason' "may gain: it starts $work/wrapper: $threads"
says "$work/wrapper2" '.starts | map(.program) | tojson' "[\"$work/wrapper\",\"/bin/cat\"]"
says "$work/wrapper3" '.verdict + (.starts | tojson)' 'will not gain[]'
says "$work/wrapper4" '.verdict + ": " + (.reason | split(":")[:2] | join(":"))' \
	"may gain: it becomes a program whose name only the run shows, so one cannot tell"
# shellcheck disable=SC2016
for line in 'exec "$JAVA" -jar x.jar' 'exec $D/tinyproxy' "exec \\" 'exec nice -n 5 "$SERVER"' \
	"exec $work/static-go || exec \$1" 'exec nohup "$P" -c /etc/passwd >/dev/null'; do
	printf '#!/bin/sh\n%s\n' "$line" >"$work/wrapper5"
	chmod +x "$work/wrapper5"
	says "$work/wrapper5" .verdict 'may gain'
done
for line in "exec nice -n 5 $work/threads -d" "exec /usr/bin/setsid '$work/threads'" \
	"exec timeout -s KILL .5 nohup ionice -c best-effort setsid env A=1 taskset ff $work/threads"; do
	printf '#!/bin/sh\n%s\n' "$line" >"$work/wrapper5"
	says "$work/wrapper5" '.verdict + ": " + .reason' "will gain: $threads"
done
printf '#!/bin/sh\nexec 3<&0 >log\nexec &>log\nexec # a comment\n%s x\n' "$work/static-go" >"$work/wrapper5"
says "$work/wrapper5" '.verdict + ": " + (.reason | split(":")[:2] | join(":"))' \
	"will not gain: it starts $work/static-go: cannot"
cat >"$work/becomes.c" <<END
#include <unistd.h>
int main(int argc, char **argv) { (void)argc; execv("$work/threads", argv); return 1; }
END
must "$CC" -o "$work/becomes" "$work/becomes.c"
says "$work/becomes" '.verdict + ": " + .reason' "will gain: $threads"
run "$fiberize" check "$work/becomes"
has 'what it starts, in the text' "$work/out" "^starts      $work/threads: will gain: it makes threads"

cat >"$work/loads.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/modules/libengine.so", argc > 1 ? argv[1] : ".");
	return !dlopen(path, RTLD_NOW);
}
END
mkdir "$work/modules"
must "$CC" -o "$work/loads" "$work/loads.c"
says "$work/loads" '.verdict + ": " + .reason' \
	'may gain: it loads libraries at run time, so one cannot tell whether it makes threads'
must "$CC" -shared -fPIC -pthread -o "$work/modules/libengine.so" "$work/threads.c"
says "$work/loads" '.verdict + ": " + .reason' \
	"may gain: it can load $work/modules/libengine.so, which makes threads"
says "$work/loads" '.objects | map(select(.at_run_time) | .path) | tojson' \
	"[\"$work/modules/libengine.so\"]"
has 'what it may load, in the text' <("$fiberize" check "$work/loads") \
	"^may load    $work/modules/libengine.so$"

# A tracer's advice agrees with its verdict.
says /bin/true .advice 'run it as it is'
for file in /usr/bin/gdb /usr/bin/strace /usr/bin/perf; do
	[ ! -e $file ] || says $file .advice \
		'run it as it is; or by fiberize, for the programs that it starts'
done

# ---- names

# Each function that waits is where the manual's table has it, and variants are where the function is.
awk '/^\.\\" calls begin/ { on = 1; next } /^\.\\" calls end/ { on = 0 }
	on && /^\.IR / { rung = $0; sub(/.*" \(/, "", rung); sub(/[;)].*/, "", rung) }
	on && /^[a-z_]/ && rung !~ /never/ { print $1 "|" rung }' scripts/package/libfiberize.7 |
	LC_ALL=C sort >"$work/table"
yes 'the table has functions' [ "$(wc -l <"$work/table")" -ge 300 ]
sed 's/|.*//' "$work/table" | awk '
	{ print "extern char " $1 "_[] __asm__(\"" $1 "\");"; names[NR] = $1 "_" }
	END { print "char *all[] = {"; for (i = 1; i <= NR; i++) print names[i] ","; print "};" }' \
	>"$work/all.c"
must "$CC" -shared -fPIC -o "$work/modules/liball.so" "$work/all.c"
must "$CC" -o "$work/names" "$work/computes.c" -L"$work/modules" -Wl,--no-as-needed -lall \
	-Wl,--unresolved-symbols=ignore-all -Wl,-rpath,"$work/modules"
"$fiberize" check --json "$work/names" | jq -r '.objects[] | select(.path | endswith("liball.so")) |
	.calls | to_entries[] | .key as $rung | .value[] | . + "|" + ($rung | gsub("_"; " "))' |
	LC_ALL=C sort >"$work/rungs"
same 'each function is on the rung that the manual has' '' "$(diff "$work/table" "$work/rungs" | head)"

cat >"$work/variants.c" <<'END'
extern char a[] __asm__("__fgets_chk"), b[] __asm__("fopen64"), c[] __asm__("__isoc99_fscanf"),
	d[] __asm__("__vfprintf_chk"), e[] __asm__("__nothing_chk"),
	f[] __asm__("_ZNSt6thread15_M_start_threadESt10unique_ptr"),
	g[] __asm__("_ZN7QThread5startENS_8PriorityE");
char *all[] = { a, b, c, d, e, f, g };
END
must "$CC" -shared -fPIC -o "$work/modules/libvariants.so" "$work/variants.c"
must "$CC" -o "$work/variants" "$work/computes.c" -L"$work/modules" -Wl,--no-as-needed -lvariants \
	-Wl,--unresolved-symbols=ignore-all -Wl,-rpath,"$work/modules"
says "$work/variants" '.objects[] | select(.path | endswith("libvariants.so")) |
	(.calls.inside_libc + .threads) | tojson' \
	'["__fgets_chk","__isoc99_fscanf","__vfprintf_chk","fopen64","QThread::start","std::thread"]'

# ---- io_uring is forbidden here

forbidden=$("$helpers/forbid_io_uring" "$fiberize" check "$work/threads")
like 'forbidden: the verdict' '*verdict     may gain: it makes threads, and serves *epoll*' "$forbidden"
like 'forbidden: why' '*backend     epoll: io_uring cannot be used here: io_uring_setup: EPERM*' "$forbidden"
like 'forbidden: advice' '*advice      allow io_uring (fiberize(1), CONTAINERS)*' "$forbidden"
same 'forbidden: JSON' 'epoll io_uring_setup: EPERM' "$("$helpers/forbid_io_uring" "$fiberize" \
	check --json "$work/threads" | jq -r '.backend + " " + .io_uring')"
same 'forbidden, and only io_uring is wanted' 'none: will not gain' "$("$helpers/forbid_io_uring" \
	"$fiberize" --backend uring check --json "$work/threads" | jq -r '.backend + ": " + .verdict')"
same 'epoll is wanted' 'epoll null' "$("$fiberize" --backend epoll check --json "$work/threads" |
	jq -r '.backend + " " + (.io_uring | tojson)')"
same 'an old kernel' epoll "$(FIBERIZE_WITHOUT=sync-cancel "$fiberize" check --json "$work/threads" |
	jq -r .backend)"

# A libc that lacks a version which the library needs.
printf 'void f(void) { }\n' >"$work/libc.c"
printf 'GLIBC_2.99 { global: f; };\n' >"$work/libc.map"
mkdir "$work/new" "$work/old"
must "$CC" -shared -nostdlib -Wl,-soname,libc.so.6,--version-script="$work/libc.map" \
	-o "$work/new/libc.so.6" "$work/libc.c"
printf 'void f(void); void g(void) { f(); }\n' >"$work/wants.c"
must "$CC" -shared -nostdlib -fPIC -o "$work/wants.so" "$work/wants.c" "$work/new/libc.so.6"
refused 'a libc that is too old' 119 '*has no GLIBC_2.99, which fiberize needs*' \
	env FIBERIZE_LIBRARY="$work/wants.so" "$fiberize" "$work/threads"

if command -v musl-gcc >/dev/null; then
	must musl-gcc -o "$work/musl" "$work/threads.c"
	exits 119 "$work/musl"
	says "$work/musl" .kind musl
fi

# ---- a system that does not run

tree=$work/tree
mkdir -p "$tree/bin"
ldd "$work/threads" | grep -o '/[^ ]*' | xargs cp --parents -t "$tree" "$library" || fail 'root' 'cp has failed'
must cp "$work/threads" "$tree/bin/only-there"
printf '#!/bin/only-there\n' >"$tree/bin/script"
must chmod 755 "$tree/bin/script"
ln -s /bin/script "$tree/bin/link"
# below FILTER PROGRAM: what jq makes of the report
below()
{
	"$fiberize" --library "$library" check --root "$tree" --json "$2" | jq -r "$1"
}
same 'root: a program that is only there' '/bin/only-there dynamic' "$(below '"\(.program) \(.kind)"' only-there)"
same 'root: its script, by an absolute link' '0 /bin/only-there' "$(below '"\(.code) \(.objects[0].path)"' link)"
mkdir -p "$tree/etc"
mkfifo "$tree/etc/ld.so.cache"
same 'root: a FIFO for a cache' 0 \
	"$(timeout 60 "$fiberize" --library "$library" check --root "$tree" only-there >/dev/null; echo $?)"
same 'root: no program of this system' 127 "$(below .code "$work/threads")"
rm "$tree$(readelf -lW /bin/sh | sed -n 's/.*program interpreter: \(.*\)]/\1/p')"
same 'root: its loader' 'missing loader' "$(below .kind only-there)"
refused 'root: no directory' 2 '*--root /nonexistent: No such file*' "$fiberize" check --root=/nonexistent true
refused 'root: no value' 2 '*--root: needs a value*' "$fiberize" check --root
refused 'root: of processes' 2 '*--root: cannot be used with --running*' "$fiberize" check --root / --running
refused 'root: no library' 115 '*/libfiberize.so: no such library*' \
	"$fiberize" --library /no/libfiberize.so check --root "$tree" true

# ---- it must not keep the user waiting: the CPU time beyond that of any program, of
# which others on the machine may make more, and hardly less

TIMEFORMAT='%U %S'
# least COMMAND...: of 8 times five runs, the milliseconds of one
least()
{
	local round i
	for ((round = 0; round < 8; round++)); do
		time for ((i = 0; i < 5; i++)); do
			"$@" >/dev/null
		done
	done 2>&1 | awk '{ ms = ($1 + $2) * 1000 / 5; if (NR == 1 || ms < least) least = ms }
		END { print least }'
}
look=$(least "$fiberize" --dry-run /usr/bin/gdb)
other=$(least /bin/true)
yes "a look takes $look ms of CPU time, any program $other" \
	awk "BEGIN { exit !($look - $other < ($other > 5 ? $other : 5)) }"

finish
