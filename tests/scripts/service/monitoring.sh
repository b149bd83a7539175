#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/service/monitoring.sh - every tool says the same version; what "stat --prometheus" tells of threads that wait
# for a lock; the alerts, by promtool; the dashboard names figures that there are.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need jq promtool
package=$root/scripts/package

# ---- the version

version=$(sed -n 's/^VERSION := //p' "$root/Makefile")
for command in '' check bench ps bt stat top trace status 'status one' enable disable; do
	for flag in --version -V; do
		# shellcheck disable=SC2086 # words
		prints "version: ${command:-fiberize} $flag" "fiberize $version" "$fiberize" $command $flag
	done
done
prints 'version: inspect' "fiberize $version" "$build/libexec/inspect" --version
run env LD_PRELOAD="$library" FIBERIZE_VERBOSE=1 true
like 'version: the library' "*; version $version, *" "$err"
like 'version: it has a part in CHANGELOG.md' "*$newline## $version$newline*" "$(cat "$package/CHANGELOG.md")"

# ---- who waits for a lock

cat >"$work/waits.c" <<'PROGRAM'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;

static void *locks(void *arg)
{
	pthread_mutex_lock(&held);
	return arg;
}

static void *reads(void *arg)
{
	pthread_rwlock_rdlock(&written);
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_mutex_lock(&held);
	pthread_rwlock_wrlock(&written);
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, locks, NULL);
	pthread_create(&t, NULL, reads, NULL);
	puts("ready");
	fflush(stdout);
	pause();
}
PROGRAM
must "$CC" -O1 -pthread "$work/waits.c" -o "$work/waits"
"$fiberize" --stats="$work/waits.stats" "$work/waits" >"$work/said" &
pid=$!
at_exit kill -KILL "$pid"

figures()
{
	"$fiberize" stat --prometheus "$pid" >"$work/metrics"
}

# figure NAME{LABELS}: its value
figure()
{
	grep -F "$1 " "$work/metrics" | sed 's/.* //'
}

all_wait()
{
	figures 2>/dev/null
	[ "$(figure 'fiberize_threads_waiting{kind="mutex"}')" = 3 ] &&
		[ "$(figure 'fiberize_threads_waiting{kind="rwlock to read"}')" = 1 ]
}
must eventually grep -q ready "$work/said"
yes 'threads that wait are counted' eventually all_wait
yes 'promtool takes it' promtool check metrics <"$work/metrics"

longest()
{
	figures
	figure 'fiberize_longest_wait_seconds{kind="mutex"}'
}

uptime()
{
	cut -d' ' -f1 /proc/uptime
}

# Between two looks the figure grows by no more than the time from before the first until after the second, nor by less
# than from after the first until before the second; both are in hundredths.
before_first=$(uptime) first=$(longest) after_first=$(uptime)
grows()
{
	before_last=$(uptime) last=$(longest) after_last=$(uptime)
	awk -v a="$first" -v b="$last" 'BEGIN { exit !(b - a >= 1) }'
}
must eventually grows
# shellcheck disable=SC2154 # grows() sets them
yes 'how long they have waited' awk -v grown="$last-$first" -v most="$after_last-$before_first" \
	-v least="$before_last-$after_first" 'function of(difference, part) { split(difference, part, "-"); return part[1] - part[2] }
	BEGIN { exit !(of(grown) > of(least) - 0.02 && of(grown) < of(most) + 0.02) }'
same 'for a lock that nobody waits for' '0 0.000000' \
	"$(figure 'fiberize_threads_waiting{kind="rwlock to write"}') $(figure 'fiberize_longest_wait_seconds{kind="rwlock to write"}')"
like 'the version of the library' "*,version=\"$version\"} 1" "$(grep '^fiberize_process_info{' "$work/metrics")"
must "$fiberize" stat --prometheus "$work/waits.stats" >"$work/of_file"
has 'a file says whose it is' "$work/of_file" '^fiberize_process_info{'
same 'a file tells nothing of what waits now' 0 "$(grep -c -e waiting -e longest -e version "$work/of_file")"

# ---- alerts and dashboard

run promtool check rules "$package/alerts.yml"
same 'alerts: promtool check rules' 0 "$code"
run promtool test rules "$root/tests/fleet/alerts_test.yml"
same 'alerts: promtool test rules' 0 "$code${code#0}${out:+}"
[ "$code" = 0 ] || said
while read -r alert; do
	has "alerts: $alert is tested" "$root/tests/fleet/alerts_test.yml" "$alert"
done < <(sed -n 's/^ *- alert: //p' "$package/alerts.yml")
same 'dashboard: JSON, and each panel asks for something' true \
	"$(jq '(.panels | length > 0) and all(.panels[]; .title and all(.targets[]; .expr | length > 0))' "$package/dashboard.json")"
same 'dashboard: each panel has a number of its own' true "$(jq '[.panels[].id] | length == (unique | length)' "$package/dashboard.json")"
# Names that are written, and not printed: a figure that was renamed.
same 'alerts and dashboard: figures that there are' '' "$(
	{ jq -r '.panels[].targets[].expr' "$package/dashboard.json"; cat "$package/alerts.yml"; } |
		grep -oE 'fiberize_[a-z_]+' | sort -u | while read -r name; do
			grep -qE "^${name}[{ ]" "$work/metrics" || echo "$name"
		done)"
finish
