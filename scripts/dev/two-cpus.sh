#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/two-cpus.sh - prints two CPUs that this process may use, as SERVER:LOAD for
# "fiberize bench --cpus".  Exits 1, with no output, if there is only one.
set -eu
list=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
echo "$list" | tr ',' '\n' | awk -F- '
	{ for (i = $1; i <= $NF; i++) cpu[n++] = i }
	END {
		if (n < 2)
			exit 1
		print cpu[0] ":" cpu[1]
	}'
