#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/service/services_page.sh - the page for somebody new, scripts/service/SERVICES.md: below a systemd of its own
# each of its commands is typed, in its order, and prints what the page says.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/booted.inc
. "$(dirname "$0")/../../lib/booted.inc"
# shellcheck source=tests/lib/typed.inc
. "$(dirname "$0")/../../lib/typed.inc"
need systemctl curl wrk
[ -x /usr/bin/python3 ] || { skip 'the page' '/usr/bin/python3 is not installed'; finish; }
can_boot || { skip 'the page' "$why"; finish; }

typed "$root/scripts/service/SERVICES.md" "$work/page"
commands=$(find "$work/page" -name '*.command' | wc -l)
yes 'the page has commands' [ "$commands" -ge 14 ]

# As if it was installed, and readable for all.
must mkdir "$work/fiberize"
must cp -r "$fiberize" "$library" "$build/libexec" "$work/fiberize"
cat >"$work/work" <<'WORK'
PATH=/srv/fiberize:$PATH
export XDG_STATE_HOME=$work/state
for command in "$work"/page/*.command; do
	name=${command%.command}
	sh "$command" >"$name.out" 2>"$name.err" </dev/null
	echo $? >"$name.code"
done
# What the page says in words.
fiberize --processors 2 enable hello >/dev/null
cat /etc/systemd/system/hello.service.d/* >"$work/again"
systemctl stop hello
rm /etc/systemd/system/hello.service
fiberize disable hello >/dev/null
find /etc/systemd/system -mindepth 1 >"$work/left"
rm /srv/fiberize/libfiberize.so
LD_PRELOAD=/srv/fiberize/libfiberize.so cat /proc/self/comm >"$work/forgotten" 2>&1
WORK
boot 200 "mount -t tmpfs tmpfs /srv && cp -r '$work/fiberize' /srv && chmod -R u=rwX,go=rX /srv" "work=$work" ||
	{ skip 'the page' "$why"; finish; }
same 'came to the end' END "$(tail -n 1 "$work/booted")"

last=
for command in "$work"/page/*.command; do
	name=${command%.command}
	text=$(head -n 1 "$command")
	[[ $text != 'fiberize disable'* ]] || last=99
	[[ $text = 'fiberize status'* ]] && wanted=${last:-0} || wanted=0
	same "$text: exit status" "$wanted" "$(cat "$name.code")"
	[ "$wanted" = "$(cat "$name.code")" ] || cat "$name.err" >&2
	as_told "$text: as the page says" "$name.wanted" "$name.out"
	same "$text: nothing else" '' "$(grep -v 'fiberize bench: ' "$name.err")"
done
status=$(grep -l 'fiberize status' "$work"/page/*.command | head -n 1)
has 'status: a backend, threads, and what bench has measured' "${status%.command}.out" \
	'^ *[0-9]* python3  *[^ ]*  *\(io_uring\|epoll\)  *[0-9]*  *[0-9]*  *[0-9]\.[0-9][0-9]?*  20'
has 'options before the command' "$work/again" '^Environment="FIBERIZE_PROCESSORS=2"$'
same 'disabled after the service was removed: nothing is left' '' "$(cat "$work/left")"
has 'a library that is gone: the loader says so' "$work/forgotten" 'libfiberize.so.*cannot be preloaded'
has 'a library that is gone: the program runs' "$work/forgotten" '^cat$'
finish
