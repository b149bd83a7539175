#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/check/check_secure.sh - "fiberize check" on programs that the kernel starts in a special
# way: set-user-ID and the like, and registered formats (binfmt_misc).

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

# Another user than root, who may not read where we were built.  By env, because setpriv
# itself keeps capabilities until the next exec.
user=()
cp "$fiberize" "$library" "$work"
check=("$work/fiberize" --no-profiles check)
chmod 755 "$work" "$work/fiberize" "$work/libfiberize.so"
if [ "$(id -u)" = 0 ]; then
	user=(setpriv --reuid 65534 --regid 65534 --clear-groups -- env)
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
	same "$name: AT_SECURE" $secure "$got"
	got=$("${@:1:$#-1}" "${check[@]}" --json "${@:$#}" 2>&1 |
		jq -r '"\(.code) \(.kind)"' 2>&1)
	same "$name: what check says" "$code $kind" "$got"
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
	confined=("${user[@]:0:6}" --no-new-privs -- env)
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
	as_kernel 'user, set-user-ID, no_new_privs' dynamic "${confined[@]}" "$work/secure-root"
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
			"${confined[@]}" "$work/secure-capable"
		as_kernel 'user, capabilities permitted, no_new_privs' dynamic \
			"${confined[@]}" "$work/secure-permitted"
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
cat >"$work/go.c" <<'END'
__attribute__((section(".note.go.buildid"), used)) static const struct {
	unsigned namesz, descsz, type; char name[4], id[4];
} note = { 4, 4, 4, "Go", "abc" };
int main(void) { return 0; }
END
must "$CC" -static -o "$work/static-go" "$work/go.c"
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
	(cd "$work" && limited unshare -Urm sh ./register "$@")
}
# is_misc FILE STATUS OUTPUT REPORT: what a run of it gives natively and by fiberize, and
# check tells
is_misc()
{
	local got
	if [ -n "$2" ]; then
		got=$(registered "./$1"; echo $?)
		same "binfmt_misc: $1 natively" "$3 0$newline$2" "$got"
		got=$(registered "$fiberize" "./$1"; echo $?)
		same "binfmt_misc: $1" "$3 1$newline$2" "$got"
	fi
	got=$(registered "${check[@]}" --json "./$1" |
		jq -r '"\(.code) \(.kind) \(.scripts | length)"' 2>&1)
	same "binfmt_misc: $1: what check says" "$4" "$got"
}
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
	skip binfmt_misc 'not in a namespace here'
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
	same 'binfmt_misc: switched off' 126 "$(registered sh -c \
		'echo 0 >/proc/sys/fs/binfmt_misc/status; exec "$@" --json ./x.by-name' - \
		"${check[@]}" | jq .code)"
fi

finish
