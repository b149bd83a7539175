# SPDX-License-Identifier: MIT
#
# tests/lib/frames.awk - backtraces of "fiberize bt --each" or of frames.gdb.py in a form in which they
# can be compared:
#
#	THREAD FUNCTION [FILE:LINE]
#
# a line for each frame, of the threads with a name.  A place in the source is there if the file is
# SOURCE (-v SOURCE=name).  FUNCTION is the last part of the name, without arguments, versions and
# the prefixes of libc; * for one or more frames of libfiberize.so; the last one may be ??, behind
# which gdb guesses.  Frames that gdb concludes from tail calls count with -v TAILS=1.  The frames are left out that lead from the kernel to a thread's first function.

function last_part(name)
{
	sub(/@@?GLIBC.*/, "", name)
	sub(/operator\(\).*/, "CALL", name)
	while (match(name, /<[^<>]*>/))
		name = substr(name, 1, RSTART - 1) substr(name, RSTART + RLENGTH)
	while (match(name, /\([^()]*\)/))
		name = substr(name, 1, RSTART - 1) substr(name, RSTART + RLENGTH)
	sub(/( const)?(\[.*)?$/, "", name)
	sub(/^.*(::| )/, "", name)
	sub(/^(__GI_)?_*(libc_|IO_new_|IO_)?/, "", name)
	return name
}

/^(thread|Fiber) / {
	thread = ours = lost = ""
	if (match($0, /"[^"]*"/))
		thread = substr($0, RSTART + 1, RLENGTH - 2)
	next
}

# "  #1   0x... f(int) at file:1", "  #1   (inlined) f at file:1", "  #1   0x... f in object"
/^  #/ && thread != "" && !lost {
	if (/^ *#[0-9]+ +\(tail\)/ && !TAILS)
		next
	sub(/^ *#[0-9]+ +(0x[0-9a-f]+|\(inlined\)|\(tail\)) /, "")
	if (/ at (.*\/)?(runtime|preload|arch)\// || /libfiberize/) {
		if (!ours)
			print thread, "*"
		ours = 1
		next
	}
	place = ""
	if (match($0, /[^ \/]*:[0-9]+$/) && index(substr($0, RSTART), SOURCE ":") == 1)
		place = " " substr($0, RSTART)
	sub(/ (at|in) [^ ]*$/, "")
	name = last_part($0)
	if (name ~ /^(start_thread|clone3?|start|start_call_main|start_main(_impl)?)$/)
		next
	ours = 0
	lost = name == "??"
	print thread, name place
}
