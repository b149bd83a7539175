# SPDX-License-Identifier: MIT
#
# scripts/dev/rooms.awk - functions about rooms.  awk reads the matrix of check-layers.sh as its first
# file, into rows[ROOM] = " ALLOWED ALLOWED ".

# The room to which a folder belongs, or "".
function room_of(dir,	parent)
{
	if (dir in rows)
		return dir
	# arch/CPU is part of arch.
	parent = dir
	sub(/\/[^\/]*$/, "", parent)
	if (parent == "arch")
		return "arch"
	return (parent "/*") in rows ? parent "/*" : ""
}

# May a file in `room` use `file`, which is in the room `other`?
function may(room, file, other,	top)
{
	top = other
	sub(/\/.*/, "", top)
	return room == other || index(rows[room], " " other " ") ||
	       index(rows[room], " " file " ") ||
	       (top != "preload" && index(rows[room], " " top " "))
}

function dir_of(path)
{
	if (!sub(/\/[^\/]*$/, "", path))
		return ""
	return path
}

function refuse(where, what)
{
	print "check-layers: " where ": " what ": pass it as an argument or by a hook, " \
		"or change the matrix in scripts/dev/check-layers.sh and say why"
	bad = 1
}

FILENAME == ARGV[1] {
	room = $1
	$1 = ""
	rows[room] = $0 " "
	next
}
