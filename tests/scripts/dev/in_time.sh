#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/in_time.sh - tests/in_time.sh, which "make check-oci" and "make fleet" run: what it makes of scripts that
# pass, fail, are skipped and go on for ever.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

# script NAME COMMAND
script()
{
	printf '#!/bin/sh\n%s\n' "$2" >"$work/$1.sh"
	chmod 755 "$work/$1.sh"
}
# as_one NAME STATUS LAST SCRIPT...: LAST is a pattern for the last lines
as_one()
{
	local name=$1 status=$2 last=$3 scripts=() one
	shift 3
	for one; do
		scripts+=("$work/$one.sh")
	done
	run "$root/tests/in_time.sh" oci 300 "${scripts[@]}"
	same "$name: exit status" "$status" "$code"
	like "$name" "$last" "$out"
}
script good 'echo PASS one'
script bad 'echo FAIL one: reason; exit 1'
script absent 'echo "SKIP absent.sh: crun is not installed"; exit 77'
# shellcheck disable=SC2016 # for the script
script again 'echo again >>"$0.ran"; exit 77'
as_one 'all pass' 0 "PASS one${newline}PASS one${newline}oci: 2 of 2 scripts passed, 0 failed, 0 skipped; [0-9]* s of at most 300 s" good good
as_one 'one is skipped' 0 "*oci: 2 of 3 scripts passed, 0 failed, 1 skipped; *${newline}oci: skipped: absent: crun is not installed" good absent good
as_one 'one fails, the others run' 1 '*FAIL one: reason*PASS one*oci: 1 of 3 scripts passed, 1 failed, 1 skipped; *' bad absent good
as_one 'all are skipped' 77 '*oci: 0 of 1 scripts passed, 0 failed, 1 skipped; *' absent
for own in 10 124 137 177; do
	script "own$own" "exit $own"
	as_one "$own of its own is no limit" 1 "PASS one${newline}oci: 1 of 2 scripts passed, 1 failed, 0 skipped; *" "own$own" good
done
# It waits for nobody, so that the limit alone ends it.
# shellcheck disable=SC2016
script endless 'echo $$ >"$0.pid"; exec sleep 1000'
run "$root/tests/in_time.sh" oci 1 "$work/endless.sh" "$work/again.sh"
same 'the limit' '1:oci: FAIL: the limit of 1 s for all of it was reached in endless.sh' "$code:$out"
yes 'the limit: nothing is left running' [ ! -e "/proc/$(cat "$work/endless.sh.pid")" ]
yes 'the limit: no other script is run' [ ! -e "$work/again.sh.ran" ]
finish
