#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/microsocks.sh - curl through microsocks, one thread per connection.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need curl "$python" microsocks

serve_files
port=$(free_port)
begin server "${fiberized[@]}" microsocks -i 127.0.0.1 -p "$port"
server=$started
wait_for_port "$server" "$port"
fetch "$files_port" --noproxy '' --proxy "socks5://127.0.0.1:$port"
# No handler of its own: the signal's default action.
stop "$server" 143
stop "$files" 0
finish
