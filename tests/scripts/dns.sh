#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dns.sh - 200 threads look up names at once, with a name server that
# takes 300 ms for each answer (tests/helpers/dns_double.c): natively, as fibers, on one
# processor, without redirection, and where redirection is refused.  All answers are
# those of the native run; redirected, nobody waits for another.  Last line:
# N passed, N failed.

# shellcheck source=tests/scripts/cases.inc
. "$(dirname "$0")/cases.inc"

# Our own name server, and nobody else to ask.
printf 'nameserver 127.0.0.1\noptions timeout:10 attempts:3\n' >"$work/resolv.conf"
printf 'hosts: dns\npasswd: files\ngroup: files\nservices: files\n' >"$work/nsswitch.conf"
export work build
cat >"$work/inside" <<'EOF'
for name in resolv.conf nsswitch.conf; do
	mount --bind "$work/$name" "$(readlink -f /etc/$name)" || exit 77
done
exec "$build/tests/helpers/dns_double" 300 "$@"
EOF

namespaces=-mn
[ "$(id -u)" = 0 ] || namespaces=-Urmn
if ! unshare $namespaces true 2>/dev/null; then
	echo 'namespaces are not allowed here'
	exit 77
fi
for name in resolv.conf nsswitch.conf; do
	[ -e "$(readlink -f /etc/$name)" ] || { echo "no /etc/$name here"; exit 77; }
done

# look MODE [VARIABLE=VALUE...] [WRAPPER...]: answers and time to $work/MODE.*
look()
{
	local mode=$1
	shift
	timeout 150 unshare $namespaces sh "$work/inside" env "$@" \
		"$build/tests/programs/names_many" 200 >"$work/$mode.out" 2>"$work/$mode.err"
}

preload=LD_PRELOAD=$build/libfiberize.so

look native
code=$?
native=$(tail -n 1 "$work/native.err")
[ -z "${native//[0-9]/}" ] || native=0
if [ $code = 0 ] && [ "$(grep -c ' 10\.0\.' "$work/native.out")" -gt 100 ] &&
		[ "$(grep -c ' fd00::' "$work/native.out")" -gt 30 ] &&
		[ "$(grep -c ' back$' "$work/native.out")" = 40 ]; then
	pass "native, $(cat "$work/native.err") ms"
else
	fail native "exit status $code, $(head -c 500 "$work/native.err" "$work/native.out")"
fi

for mode in default one noredirect refused; do
	case $mode in
	default)	words=("$preload") ;;
	one)		words=("$preload" FIBERIZE_PROCESSORS=1) ;;
	noredirect)	words=("$preload" FIBERIZE_REDIRECT=0) ;;
	refused)	words=("$preload" "$build/tests/helpers/forbid_exec_memory" seccomp) ;;
	esac
	# One after the other they would take a minute, and natively take a third of a second.
	limit=60000
	case $mode in
	default|one)	limit=$((1000 > 3 * native ? 1000 : 3 * native)) ;;
	esac
	# A busy machine may need more, but not each time.
	for _ in 1 2 3 4 5 6; do
		look $mode "${words[@]}"
		code=$?
		took=$(cat "$work/$mode.err")
		if [ $code != 0 ] || [ "$took" -lt $limit ]; then
			break
		fi
	done
	if [ $code != 0 ]; then
		fail "$mode" "exit status $code, $took"
	elif ! cmp -s "$work/native.out" "$work/$mode.out"; then
		fail "$mode" "other answers: $(diff "$work/native.out" "$work/$mode.out" | head -5)"
	elif [ "$took" -lt 300 ]; then
		fail "$mode" "done in $took ms, before any answer came"
	elif [ "$took" -lt $limit ]; then
		pass "$mode, $took ms"
	else
		fail "$mode" "$took ms, not under $limit"
	fi
done

finish
