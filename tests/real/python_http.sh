#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/python_http.sh - python3's ThreadingHTTPServer, fetched by curl.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need curl "$python"

make_files
make_file_server
port=$(free_port)
begin server "${fiberized[@]}" "$python" "$work/file_server.py" "$port" "$work/files"
wait_for_port "$started" "$port"
fetch "$port"
stop "$started" 0
finish
