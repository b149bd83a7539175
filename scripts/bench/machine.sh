#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/bench/machine.sh - prints on what a benchmark runs: time, commit, CPU, kernel, libc.
set -u
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit="$commit, modified"
echo "# $(date -u +%Y-%m-%dT%H:%M:%SZ), commit $commit"
echo "# $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
	"$(nproc) CPUs, Linux $(uname -r), $(ldd --version | head -n 1)"
