# SPDX-License-Identifier: MIT
#
# scripts/dev/names.awk - finds names in a room that another room defines and that the matrix does not
# allow.  A name is a macro, an inline function or a function.  Neither #include nor the objects show
# each use: a header may come by way of another header, and a macro or inline function leaves no call.
#
#	awk -f scripts/dev/rooms.awk -f scripts/dev/names.awk MATRIX \
#		step=functions FUNCTIONS step=define HEADER... step=use SOURCE...
#
# FUNCTIONS has lines NAME FILE.  Only names that begin with fz_ or FZ_ count.

step == "functions" {
	homes[$1] = homes[$1] " " $2
	next
}

FNR == 1 {
	room = room_of(dir_of(FILENAME))
	in_comment = 0
}

# Remove comments and strings.
{
	gsub(/"([^"\\]|\\.)*"/, "\"\"")
	gsub(/\/\*([^*]|\*[^\/])*\*\//, " ")
	if (in_comment && !sub(/^.*\*\//, ""))
		next
	in_comment = sub(/\/\*.*/, "")
}

/^[ \t]*#[ \t]*define[ \t]/ {
	sub(/^[ \t]*#[ \t]*define[ \t]+/, "")
	name = $0
	sub(/[^A-Za-z0-9_].*/, "", name)
	if (step == "define")
		homes[name] = homes[name] " " FILENAME
	else
		own[FILENAME, name] = 1
}

step == "define" {
	if (/^static .*fz_[a-z0-9_]+\(/) {
		match($0, /fz_[a-z0-9_]+\(/)
		name = substr($0, RSTART, RLENGTH - 1)
		homes[name] = homes[name] " " FILENAME
	}
	next
}

# Names of structs do not count, as they may be equal to names of functions. A .def file does not count, as
# the file that includes it defines the names in it.
FILENAME !~ /\.def$/ {
	gsub(/(struct|enum|union)[ \t]+[A-Za-z0-9_]+/, "")
	while (match($0, /[A-Za-z0-9_]+/)) {
		name = substr($0, RSTART, RLENGTH)
		$0 = substr($0, RSTART + RLENGTH)
		if (name !~ /^(fz|FZ)_/ || !(name in homes) || (FILENAME, name) in own)
			continue
		own[FILENAME, name] = 1
		count = split(homes[name], home, " ")
		allowed = 0
		for (i = 1; i <= count; i++)
			allowed += may(room, home[i], room_of(dir_of(home[i])))
		if (!allowed)
			refuse(FILENAME ":" FNR, room " may not use " name " of " home[1])
	}
}

END { exit bad }
