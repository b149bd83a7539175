# SPDX-License-Identifier: MIT
#
# tests/lib/same_frames.awk NATIVE FIBERS - compares what frames.awk has made of two backtraces of one
# program.  A line for each thread of NATIVE: "same THREAD", or "differs THREAD: " and why.
#
# A * among the frames of FIBERS stands for any frames of libc, which the library has replaced;
# not for frames of the program.

NR == FNR {
	natively[$1, ++native_count[$1]] = substr($0, length($1) + 2)
	if (native_count[$1] == 1)
		threads[++thread_count] = $1
	next
}
{ fibers[$1, ++fiber_count[$1]] = substr($0, length($1) + 2) }

function is_of_program(frame) { return frame ~ /:[0-9]+$/ }

function difference(t,		i, j, may_skip)
{
	i = 1
	for (j = 1; j <= fiber_count[t]; j++) {
		if (fibers[t, j] == "*") {
			may_skip = 1
			continue
		}
		while (may_skip && i <= native_count[t] && natively[t, i] != fibers[t, j] &&
		       !is_of_program(natively[t, i]))
			i++
		if (i > native_count[t] || natively[t, i] != fibers[t, j])
			return "natively <" natively[t, i] ">, under fiberize <" fibers[t, j] ">"
		may_skip = 0
		i++
	}
	while (may_skip && i <= native_count[t] && !is_of_program(natively[t, i]))
		i++
	return i > native_count[t] ? "" : "natively <" natively[t, i] ">, under fiberize nothing"
}

END {
	for (n = 1; n <= thread_count; n++) {
		why = difference(threads[n])
		print (why ? "differs " threads[n] ": " why : "same " threads[n])
	}
}
