#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/service/fleet.sh - four servers behind HAProxy, two in python3 and two in Java, under load, natively and
# as fibers: one is killed and started again, one is drained and restarted with the library of another version.
# No more requests are lost than natively, of each class.  Meanwhile, as fibers, Prometheus has the figures of all four, by
# exporter_exporter: each expression of the dashboard that gets installed has data, the versions and the alert of
# the server that was gone are there.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/../../real/common.inc"
need curl haproxy java javac jq prometheus prometheus-exporter-exporter promtool "$python" wrk
next=$build/next/libfiberize.so
[ -e "$next" ] || die "$next is missing: run make fleet"
fleet=$root/tests/fleet
servers=(1 2 3 4)
declare -A pid ports
must javac -d "$work" "$fleet/Server.java"

# server N [WORD...]: starts it, behind these words
server()
{
	local n=$1
	shift
	case $n in
	1|2)	begin "web$n" "$@" "$python" "$fleet/server.py" "${ports[$n]}" ;;
	3|4)	begin "web$n" "$@" java -Xmx64m -XX:+UseSerialGC -cp "$work" Server "${ports[$n]}" ;;
	esac
	pid[$n]=$started
	echo "$started" >"$work/web$n.pid"
	wait_for_port "$started" "${ports[$n]}"
}

# ask WORD...: HAProxy's answer
ask()
{
	"$python" -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall((" ".join(sys.argv[2:]) + "\n").encode())
while True:
    more = s.recv(65536)
    if not more:
        break
    sys.stdout.write(more.decode())' "$work/control" "$@"
}

# column SERVER NAME: of HAProxy's table
column()
{
	ask show stat | awk -F, -v row="$1" -v name="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$1 == "web" && $2 == row { print $at[name] }'
}

is_up()
{
	[[ $(column "web$1" status) == UP* ]]
}

is_down()
{
	[[ $(column "web$1" status) == DOWN* ]]
}

is_idle()
{
	[ "$(column "web$1" scur)" = 0 ]
}

# served N MORE: has it served so many more requests than when this was first asked?
served()
{
	local now
	now=$(column "web$1" stot)
	from=${from:-$now}
	[ $((now - from)) -ge "$2" ]
}

# takes_part N: it gets requests again
takes_part()
{
	must eventually is_up "$1"
	from=
	must eventually served "$1" 50
}

end_of_wrk()
{
	kill -INT "$load" 2>/dev/null
	must eventually gone "$load"
}

# run_fleet NAME OLD NEXT: OLD and NEXT are variables with the words before each server's command
run_fleet()
{
	local name=$1 n
	local -n old=$2 new=$3

	for n in "${servers[@]}"; do
		ports[$n]=$(free_port)
		server "$n" "${old[@]}"
	done
	port=$(free_port)
	begin haproxy env CONTROL="$work/control" PORT="$port" PORT1="${ports[1]}" PORT2="${ports[2]}" \
		PORT3="${ports[3]}" PORT4="${ports[4]}" haproxy -db -f "$fleet/haproxy.cfg"
	balancer=$started
	wait_for_port "$balancer" "$port"
	for n in "${servers[@]}"; do
		must eventually is_up "$n"
	done
	[ "$name" = native ] || watch_begin
	begin "$name.load" wrk --threads 1 --connections 32 --duration 600 --timeout 60 \
		--script "$fleet/load.lua" "http://127.0.0.1:$port"
	load=$started
	for n in "${servers[@]}"; do
		takes_part "$n"
	done

	# One is killed; HAProxy notices, and whoever supervises it starts it again.
	kill -KILL "${pid[1]}"
	wait "${pid[1]}" 2>/dev/null
	must eventually is_down 1
	[ "$name" = native ] || watch_without 1
	server 1 "${old[@]}"
	takes_part 1

	# One is restarted with another version, in good order.
	ask set server web/web3 state drain >/dev/null
	must eventually is_idle 3
	kill -TERM "${pid[3]}"
	must eventually gone "${pid[3]}"
	server 3 "${new[@]}"
	ask set server web/web3 state ready >/dev/null
	takes_part 3

	[ "$name" = native ] || watch_end
	kill -0 "$load" 2>/dev/null || die "$name: the load ended before its time"
	end_of_wrk
	for n in econ eresp wretr wredis; do
		echo "balancer $n $(column BACKEND $n)"
	done >"$work/$name.balancer"
	echo "balancer hrsp_5xx $(column BACKEND hrsp_5xx)" >>"$work/$name.balancer"
	kill -TERM "$balancer" "${pid[@]}"
	wait "$balancer" "${pid[@]}" 2>/dev/null
}

# ---- what Prometheus sees

query()
{
	curl --silent --fail --get --data-urlencode "query=$1" "http://127.0.0.1:$prometheus_port/api/v1/query"
}

# count_of EXPRESSION: how many series; values are numbers
count_of()
{
	query "$1" | jq '[.data.result[]?.value[1] | select(. != "NaN")] | length' 2>/dev/null || echo 0
}

has_series()
{
	local n
	n=$(count_of "$1")
	[ "${n:-0}" -ge "$2" ]
}

watch_begin()
{
	local n
	exporter_port=$(free_port)
	prometheus_port=$(free_port)
	{
		echo modules:
		for n in "${servers[@]}"; do
			printf '  web%s:\n    method: exec\n    timeout: 30s\n    exec:\n      command: /bin/sh\n' "$n"
			# shellcheck disable=SC2016 # the exporter's shell expands it
			printf '      args: [-c, '\''exec "$0" stat --prometheus "$(cat "$1")"'\'', %s, %s]\n' \
				"$fiberize" "$work/web$n.pid"
		done
	} >"$work/exporter.yml"
	cat >"$work/prometheus.yml" <<-END
	global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
	rule_files: [$root/scripts/package/alerts.yml]
	scrape_configs:
	- job_name: fiberize
	  metrics_path: /proxy
	  static_configs:
	  - targets: [web1, web2, web3, web4]
	  relabel_configs:
	  - {source_labels: [__address__], target_label: __param_module}
	  - {source_labels: [__address__], target_label: instance}
	  - {target_label: __address__, replacement: "127.0.0.1:$exporter_port"}
	END
	run promtool check config "$work/prometheus.yml"
	same 'the configuration of Prometheus' 0 "$code"
	begin exporter prometheus-exporter-exporter -config.file "$work/exporter.yml" \
		-web.listen-address "127.0.0.1:$exporter_port"
	wait_for_port "$started" "$exporter_port"
	begin prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
		--web.listen-address="127.0.0.1:$prometheus_port"
	prometheus=$started
	wait_for_port "$prometheus" "$prometheus_port"
	yes 'Prometheus has the figures of all four' eventually has_series fiberize_process_info 4
}

# watch_without N: it is gone
watch_without()
{
	yes 'an alert says which server is gone' eventually has_series \
		"ALERTS{alertname=\"FiberizeNotInUse\",instance=\"web$1\"}" 1
	same 'and only that one' 1 "$(count_of 'ALERTS{alertname="FiberizeNotInUse"}')"
}

watch_end()
{
	local version expression title
	version=$("$fiberize" --version)
	version=${version#fiberize }
	yes 'the server that was upgraded has the new version' eventually has_series \
		"fiberize_process_info{instance=\"web3\",version=\"$version+next\"}" 1
	yes 'the others have the old one' eventually has_series "fiberize_process_info{version=\"$version\"}" 3
	yes 'an alert waits for the end of the upgrade' eventually has_series \
		'ALERTS{alertname="FiberizeVersionsDiffer",alertstate="pending"}' 1
	while IFS=$'\t' read -r title expression; do
		expression=${expression//\$__rate_interval/10s}
		expression=${expression//\$instance/.*}
		yes "dashboard: $title: has data" eventually has_series "$expression" 1
	done < <(jq -r '.panels[] | .title as $t | .targets[] | [$t, .expr] | @tsv' \
		"$root/scripts/package/dashboard.json")
	same 'all rules were evaluated' 0 "$(curl --silent "http://127.0.0.1:$prometheus_port/api/v1/rules" |
		jq '[.data.groups[].rules[] | select(.health != "ok")] | length')"
	stop "$prometheus" 0
}

# ---- both

# shellcheck disable=SC2034 # by name
natively=()
run_fleet native natively natively
# shellcheck disable=SC2034 # by name
as_fibers=("$fiberize" --stats="$work/web.%p.stats" --) upgraded=("$fiberize" --library "$next" --stats="$work/web.%p.stats" --)
run_fleet fibers as_fibers upgraded

for class in connect read write timeout status wrong; do
	before=$(sed -n "s/^lost $class //p" "$work/native.load.log")
	fibers=$(sed -n "s/^lost $class //p" "$work/fibers.load.log")
	if [ -n "$before" ] && [ -n "$fibers" ] && [ "$fibers" -le "$before" ]; then
		pass "requests lost, $class: natively $before, as fibers $fibers"
	else
		fail "requests lost, $class" "natively <$before>, as fibers <$fibers>"
	fi
done
for run in native fibers; do
	yes "$run: there was a load" grep -q '^requests [1-9]' "$work/$run.load.log"
	grep -hE '^(requests|p99|balancer)' "$work/$run.load.log" "$work/$run.balancer" | paste -sd' ' | sed "s/^/$run: /"
done
finish
