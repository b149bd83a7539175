#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/real/python_http.sh - python3's ThreadingHTTPServer, fetched by curl.
. "$(dirname "$0")/common.inc"
need curl $python

make_files
make_file_server
port=$(free_port)
begin server "${run[@]}" $python "$work/file_server.py" "$port" "$work/files"
wait_for_port "$started" "$port"
fetch "$port"
stop "$started" 0
