# SPDX-License-Identifier: MIT
#
# scripts/service/environment.awk - exits with 0 if a file of EnvironmentFile= sets LD_PRELOAD, otherwise with 1.  As
# systemd reads it: blanks around a name do not belong to it, and a value goes on in the next line behind a backslash, or where
# its quotes are open.

# Passes over a value, or what the line has of it.  Sets quote, and goes_on if the next line belongs to it as well.
function pass(text,	i, c)
{
	goes_on = 0
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (c == "\\" && quote != "'") {
			goes_on = i == length(text)
			begun = begun || quote == ""
			i++
		} else if (quote != "") {
			if (c == quote)
				quote = ""
		} else if (!begun && (c == "\"" || c == "'")) {
			quote = c
		} else if (c !~ /[ \t]/) {
			begun = 1
		}
	}
	goes_on = goes_on || quote != ""
}

goes_on {
	pass($0)
	next
}
# Before systemd 254 a comment went on behind a backslash, too.
/^[ \t]*([#;]|$)/ { next }
(at = index($0, "=")) {
	key = substr($0, 1, at - 1)
	gsub(/^[ \t]+|[ \t]+$/, "", key)
	if (key == "LD_PRELOAD")
		sets = 1
	begun = 0
	pass(substr($0, at + 1))
}

END { exit !sets }
