#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/tinyproxy.sh - curl through tinyproxy, one thread per connection.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need curl "$python" tinyproxy

serve_files
port=$(free_port)
cat >"$work/tinyproxy.conf" <<END
Port $port
Listen 127.0.0.1
Timeout 60
MaxClients 200
LogLevel Error
LogFile "$work/tinyproxy.log"
END
begin server "${fiberized[@]}" tinyproxy -d -c "$work/tinyproxy.conf"
server=$started
wait_for_port "$server" "$port"
fetch "$files_port" --noproxy '' --proxy "http://127.0.0.1:$port"
stop "$server" 0
stop "$files" 0
finish
