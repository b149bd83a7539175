#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/dns.sh - 200 threads look up names at once, with a name server that answers
# none of them before all have asked (tests/helpers/dns_double.c): natively, as fibers, on one
# processor, without redirection, and where redirection is refused.  No thread may wait for
# another, and all answers are those of the native run.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

# Our own name server, and nobody else to ask.
printf 'nameserver 127.0.0.1\noptions timeout:30 attempts:5\n' >"$work/resolv.conf"
printf 'hosts: dns\npasswd: files\ngroup: files\nservices: files\n' >"$work/nsswitch.conf"
export work helpers
cat >"$work/inside" <<'EOF'
for name in resolv.conf nsswitch.conf; do
	mount --bind "$work/$name" "$(readlink -f /etc/$name)" || exit 77
done
exec "$helpers/dns_double" 200 "$@"
EOF

namespaces=-mn
[ "$(id -u)" = 0 ] || namespaces=-Urmn
if ! unshare $namespaces true 2>/dev/null; then
	skip dns 'namespaces are not allowed here'
	finish
fi
for name in resolv.conf nsswitch.conf; do
	[ -e "$(readlink -f /etc/$name)" ] || { skip dns "no /etc/$name here"; finish; }
done

# look MODE [VARIABLE=VALUE...] [WRAPPER...]: answers to $work/MODE
look()
{
	local mode=$1
	shift
	run unshare $namespaces sh "$work/inside" env "$@" "$programs/names_many" 200
	mv "$work/out" "$work/$mode"
	echo "$code" >"$work/$mode.status"
}

look native
same 'natively' '0 yes' "$code $([ "$(grep -c ' 10\.0\.' "$work/native")" -gt 100 ] &&
	[ "$(grep -c ' fd00::' "$work/native")" -gt 30 ] &&
	[ "$(grep -c ' back$' "$work/native")" = 40 ] && echo yes)${err:+: $err}"

for mode in default one noredirect refused; do
	case $mode in
	default)	words=() ;;
	one)		words=(FIBERIZE_PROCESSORS=1) ;;
	noredirect)	words=(FIBERIZE_REDIRECT=0) ;;
	refused)	words=("$helpers/forbid_exec_memory" seccomp) ;;
	esac
	look $mode LD_PRELOAD="$library" "${words[@]}"
	as_natively "$mode" "$work/native" "$work/$mode"
	same "$mode: nothing on standard error" '' "$err"
done

finish
