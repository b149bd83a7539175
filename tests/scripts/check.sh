#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/check.sh [all] - "fiberize check": known programs, made ones, damaged ones,
# and what /usr/bin and /usr/sbin hold: a part of it, or with "all" the whole.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${FZ_BUILD:-$PWD/build}
fiberize=$build/fiberize
CC=${CC-gcc}
work=$(mktemp -d "${TMPDIR:-/tmp}/fz-check.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
unset LD_LIBRARY_PATH LD_PRELOAD
failed=0

fail()
{
	echo "check.sh: $*"
	failed=1
}

must()
{
	"$@" || { echo "check.sh: $* failed"; exit 1; }
}

# says FILE FILTER WANTED: jq's FILTER of the report is WANTED
says()
{
	local got
	got=$("$fiberize" check --json "$1" | jq -r "$2")
	[ "$got" = "$3" ] || fail "$1: $2 is <$got>, not <$3>"
}

# exits CODE FILE: by that code, with the verdict "cannot" unless it is 0
exits()
{
	"$fiberize" check "$2" >"$work/text" 2>&1
	local status=$?
	[ $status = "$1" ] || fail "check $2: exit status $status, not $1"
	[ "$1" = 0 ] || grep -q '^verdict  *cannot: .' "$work/text" ||
		fail "check $2: $(cat "$work/text")"
}

# ---- known programs

# Another user than root, who may not read where we were built.  By env, because setpriv
# itself keeps capabilities until the next exec.
user=()
cp "$fiberize" "$build/libfiberize.so" "$work"
check=("$work/fiberize" --no-profiles check)
chmod 755 "$work"
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
	got=$(jq -r '.kind + "|" + .verdict + "|" + .reason' "$work/json")
	case $got in
	"$kind|$verdict|$reason"*)	;;
	*)	fail "$file: <$got>, not <$kind|$verdict|$reason...>" ;;
	esac
done <tests/check/known.txt
[ $known -ge 30 ] || fail "only $known of the known programs are here"

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
[ ${#files[@]} -ge 20 ] || fail "only ${#files[@]} programs to look at"
for file in "${files[@]}"; do
	"$fiberize" check --json "$file" >>"$work/all.json" 2>"$work/errors"
	status=$?
	case $status in
	0 | 11[6-9] | 12[067])	;;
	*)	fail "$file: exit status $status" ;;
	esac
	[ ! -s "$work/errors" ] || fail "$file: $(cat "$work/errors")"
done
jq -r 'select(.file != null) | .file + "|" + (.machine // "none")' "$work/all.json" \
	>"$work/machines" || fail 'not JSON'
jq -rs 'map(select(.file != null) | .file)[]' "$work/all.json" | tr '\n' '\0' |
	LC_ALL=C xargs -0 readelf -h /dev/null 2>/dev/null |
	awk '/^File: / { file = substr($0, 7) }
	     / Machine: / { m = $0; sub(/.*Machine: */, "", m); print file "|" m }' |
	sed 's/Advanced Micro Devices X86-64/x86-64/; s/Intel 80386/x86/' >"$work/readelf"
[ -s "$work/readelf" ] || fail 'readelf says nothing'
diff "$work/machines" "$work/readelf" >"$work/diff" ||
	fail "other machines than readelf says: $(head "$work/diff")"

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
	'{"user_space":["sleep"],"request":["accept","read"],"readiness":[],"announced":[],"seen_late":[]}'
says "$work/threads" '.objects[0].threads[0]' pthread_create

# Without FSGSBASE each switch is a system call.
case $(uname -m)-$(grep -c -m1 -w fsgsbase /proc/cpuinfo) in
x86_64-0)	says "$work/threads" '.switch_ns > 0' true ;;
*)		says "$work/threads" .switch_ns 0
		"$fiberize" check "$work/threads" | grep -q '^switches' &&
			fail "a switch is a system call" ;;
esac
if [ "$(uname -m)" = x86_64 ]; then
	export FIBERIZE_WITHOUT=rwf-nowait,fsgsbase
	says "$work/threads" '.switch_ns > 0' true
	"$fiberize" check "$work/threads" >"$work/text"
	grep -q '^switches    a system call of [0-9]* ns each$' "$work/text" ||
		fail "what a switch costs: $(cat "$work/text")"
	dear=$(sed -n 's/^switches .* of \([0-9]*\) ns each$/\1/p' "$work/text")
	if [ "$dear" -lt 1000 ]; then dear='run it by fiberize'; else dear='measure by'; fi
	grep -q "^advice      $dear" "$work/text" || fail "advice: $(cat "$work/text")"
	unset FIBERIZE_WITHOUT
fi

says "$work/loop" '.verdict + ": " + .reason' 'will not gain: event loop'
says "$work/computes" .verdict 'will not gain'
says "$work/computes" .reason 'threads that compute (OpenMP)'
for file in uses by-rpath; do
	says "$work/$file" '.objects[] | select(.path | endswith("libraw.so")) |
		.raw_system_calls | tojson' '{"sites":1,"waiting":["futex"]}'
	says "$work/$file" '.objects[0].raw_system_calls.sites' 0
	says "$work/$file" '.not_found | tojson' '[]'
done
says "$work/lost" '.not_found | tojson' '["libraw.so"]'
says "$work/lost" .advice 'install what was not found: without, it does not start'
export LD_LIBRARY_PATH="$work/elsewhere:$work/lib/deep"
says "$work/lost" '.not_found | tojson' '[]'
unset LD_LIBRARY_PATH
says "$work/own" .reason 'it has a pthread_create of its own, which comes before ours'
says "$work/own" '.objects[0].own | tojson' '["pthread_create"]'
says "$work/go" '.kind' 'Go, dynamic'
says "$work/go" '.verdict + ": " + .reason' \
	'will not gain: Go: goroutines are what fiberize would make of its threads'
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

# A libc that lacks a version which the library needs.
printf 'void f(void) { }\n' >"$work/libc.c"
printf 'GLIBC_2.99 { global: f; };\n' >"$work/libc.map"
mkdir "$work/new" "$work/old"
must "$CC" -shared -nostdlib -Wl,-soname,libc.so.6,--version-script="$work/libc.map" \
	-o "$work/new/libc.so.6" "$work/libc.c"
printf 'void f(void); void g(void) { f(); }\n' >"$work/wants.c"
must "$CC" -shared -nostdlib -fPIC -o "$work/wants.so" "$work/wants.c" "$work/new/libc.so.6"
FIBERIZE_LIBRARY=$work/wants.so "$fiberize" "$work/threads" >"$work/text" 2>&1
status=$?
[ $status = 119 ] || fail "old libc: exit status $status"
grep -q 'has no GLIBC_2.99, which fiberize needs' "$work/text" || fail "$(cat "$work/text")"

if command -v musl-gcc >/dev/null; then
	must musl-gcc -o "$work/musl" "$work/threads.c"
	exits 119 "$work/musl"
	says "$work/musl" .kind musl
fi

# ---- set-user-ID and its like: what the kernel does with who calls is what is told

cat >"$work/secure.c" <<'END'
#include <stdio.h>
#include <sys/auxv.h>
int main(void) { return printf("%lu\n", getauxval(AT_SECURE)) < 0; }
END
must "$CC" -o "$work/secure" "$work/secure.c"
# as_kernel NAME KIND COMMAND...: COMMAND runs a file so that check, started the same
# way, has that KIND for it, and the kernel agrees
as_kernel()
{
	local name=$1 kind=$2 code=0 secure=0 got
	shift 2
	case $kind in
	set* | file*)	code=120 secure=1 ;;
	esac
	got=$("$@" 2>&1)
	[ "$got" = $secure ] || fail "$name: AT_SECURE is <$got>, not $secure"
	got=$("${@:1:$#-1}" "${check[@]}" --json "${@:$#}" 2>&1 |
		jq -r '"\(.code) \(.kind)"' 2>&1)
	[ "$got" = "$code $kind" ] || fail "$name: check says <$got>, not <$code $kind>"
}
# secure_file NAME OWNER MODE [CAPABILITIES]
secure_file()
{
	must cp "$work/secure" "$work/secure-$1"
	must chown "$2" "$work/secure-$1"
	must chmod "$3" "$work/secure-$1"
	[ -z "${4-}" ] || setcap "$4" "$work/secure-$1"
}
PATH=$PATH:/usr/sbin:/sbin
as_kernel plain dynamic "$work/secure"
secure_file own "$(id -u):$(id -g)" 6755
as_kernel 'set-user-ID, one'\''s own' dynamic "$work/secure-own"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	limited=("${user[@]:0:6}" --no-new-privs -- env)
	secure_file root 0:0 4755
	secure_file other 65534:0 4755
	secure_file group 0:65534 2755
	secure_file lock 0:65534 2745
	secure_file hidden 0:0 4711
	as_kernel 'root, set-user-ID root' dynamic "$work/secure-root"
	as_kernel 'root, set-user-ID of another' set-user-ID "$work/secure-other"
	as_kernel 'root, set-group-ID' set-group-ID "$work/secure-group"
	as_kernel 'root, locked by the bit' dynamic "$work/secure-lock"
	as_kernel 'user, set-user-ID root' set-user-ID "${user[@]}" "$work/secure-root"
	as_kernel 'user, not readable' set-user-ID "${user[@]}" "$work/secure-hidden"
	as_kernel 'user, set-user-ID, own' dynamic "${user[@]}" "$work/secure-other"
	as_kernel 'user, set-group-ID, own' dynamic "${user[@]}" "$work/secure-group"
	as_kernel 'user, set-user-ID, no_new_privs' dynamic "${limited[@]}" "$work/secure-root"
	as_kernel 'group, set-group-ID' dynamic setpriv --regid 65534 --clear-groups -- \
		"$work/secure-group"
	if unshare -m true 2>/dev/null; then
		# The inner shell expands it.
		# shellcheck disable=SC2016
		as_kernel 'mounted nosuid' dynamic unshare -m sh -c 'mount --bind "$1" "$1" &&
			mount -o remount,bind,nosuid "$1" && shift && "$@"' - "$work" \
			"${user[@]}" "$work/secure-root"
		if unshare -U true 2>/dev/null; then
			as_kernel 'owner not in the namespace' dynamic \
				"${user[@]}" unshare -Ur "$work/secure-group"
		fi
	fi
	if secure_file capable 0:0 755 cap_net_raw+ep 2>/dev/null; then
		secure_file permitted 0:0 755 cap_net_raw+p
		secure_file inheritable 0:0 755 cap_net_raw+i
		as_kernel 'root, capabilities' dynamic "$work/secure-capable"
		for file in capable permitted; do
			as_kernel "user, capabilities, $file" 'file capabilities' \
				"${user[@]}" "$work/secure-$file"
		done
		as_kernel 'user, capabilities, no_new_privs' 'file capabilities' \
			"${limited[@]}" "$work/secure-capable"
		as_kernel 'user, capabilities permitted, no_new_privs' dynamic \
			"${limited[@]}" "$work/secure-permitted"
		as_kernel 'user, capabilities inheritable' dynamic \
			"${user[@]}" "$work/secure-inheritable"
		as_kernel 'user, capabilities inherited' 'file capabilities' \
			"${user[@]:0:6}" --inh-caps +net_raw -- env "$work/secure-inheritable"
		as_kernel 'user, capabilities beyond the bound' dynamic \
			"${user[@]:0:6}" --bounding-set -net_raw -- env "$work/secure-permitted"
	fi
fi

# ---- what the kernel has been told how to start (binfmt_misc): in a namespace of its own,
# which Linux has since 6.7

cat >"$work/show.c" <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	int ours = 0;
	while (maps && fgets(line, sizeof(line), maps))
		ours |= strstr(line, "libfiberize.so") != NULL;
	return printf("%s %d\n", argc > 1 ? strrchr(argv[1], '/') + 1 : "", ours) < 0;
}
END
must "$CC" -o "$work/show" "$work/show.c"
cat >"$work/register" <<'END'
formats=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc none $formats 2>/dev/null || exit 77
cp show fixed
# register NAME KIND OFFSET MAGIC MASK INTERPRETER FLAGS
for line in "name:E::by-name::$PWD/show:" "off:E::off::$PWD/show:" "gone:E::gone::$PWD/no-such:" \
	"fixed:E::fixed::$PWD/fixed:F" "credentials:E::credentials::$PWD/show:C" \
	"script:E::by-script::$PWD/run-show:" "loop:E::loop::$PWD/x.loop:" \
	"magic:M:2:zQ\\x01:\\xff\\xff\\x0f:$PWD/static-go:"; do
	printf '%s' ":$line" >$formats/register || exit 77
done
echo 0 >$formats/off
rm fixed
"$@" 2>&1
END
# registered COMMAND...: where these formats are
registered()
{
	(cd "$work" && timeout -k 2 60 unshare -Urm sh ./register "$@")
}
# is_misc FILE STATUS OUTPUT REPORT: what a run of it gives natively and by fiberize, and
# check tells
is_misc()
{
	local got
	got=$(registered "./$1"; echo $?)
	[ -z "$2" ] || [ "$got" = "$3 0$newline$2" ] || fail "binfmt_misc: $1 natively: $got"
	[ -z "$2" ] || got=$(registered "$fiberize" "./$1"; echo $?)
	[ -z "$2" ] || [ "$got" = "$3 1$newline$2" ] || fail "binfmt_misc: $1: $got"
	got=$(registered "${check[@]}" --json "./$1" |
		jq -r '"\(.code) \(.kind) \(.scripts | length)"' 2>&1)
	[ "$got" = "$4" ] || fail "binfmt_misc: $1: check says <$got>, not <$4>"
}
newline='
'
printf '#!%s\n' "$work/show" >"$work/run-show"
chmod +x "$work/run-show"
for name in x.by-name x.off x.gone x.fixed x.credentials x.by-script x.loop x; do
	printf '\001\002\000\003' >"$work/$name"
	chmod +x "$work/$name"
done
printf 'x\nzQ\361\000' >"$work/magic"
printf 'x\nzQ\362\000' >"$work/no-magic"
chmod +x "$work/magic" "$work/no-magic"
cp "$work/secure" "$work/elf.by-name"
registered true
if [ $? = 77 ]; then
	echo 'check.sh: no binfmt_misc in a namespace here: not tried'
else
	is_misc x.by-name 0 x.by-name '0 dynamic 1'
	is_misc x.by-script 0 run-show '0 dynamic 2'
	is_misc elf.by-name 0 elf.by-name '0 dynamic 1'
	is_misc x.credentials 0 x.credentials '0 dynamic 1'
	is_misc x.fixed 0 x.fixed '0 unreadable 1'
	is_misc x.off '' '' '126 not a program 0'
	is_misc x '' '' '126 not a program 0'
	is_misc no-magic '' '' '0 dynamic 1'	# the shell's
	is_misc magic '' '' '116 Go, static 1'
	is_misc x.gone '' '' '127 missing 1'
	is_misc x.loop '' '' '126 damaged script 5'
	# The inner shell expands it.
	# shellcheck disable=SC2016
	registered sh -c 'echo 0 >/proc/sys/fs/binfmt_misc/status; exec "$@" --json ./x.by-name' - \
		"${check[@]}" | jq -e '.code == 126' >/dev/null || fail 'binfmt_misc: switched off'
fi

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
awk "BEGIN { exit !($look - $other < ($other > 5 ? $other : 5)) }" || fail "$look ms per look, $other for any program"

# ---- damaged ones

tests/scripts/fuzz.sh 2000 >"$work/fuzz" || { cat "$work/fuzz"; failed=1; }

exit $failed
