# SPDX-License-Identifier: MIT
#
# scripts/service/unit.awk [named=NAME FILE]... - reads the [Service] sections of a unit's files, and [Manager] of those of systemd
# itself, in the order in which systemd reads them, each behind named=, how messages name it, and prints the settings that matter to a preloaded library, as lines
# "KEY<tab>VALUE":
#
#	preload			LD_PRELOAD in Environment=, or if that has none, manager_preload of the environment, or in
#				DefaultEnvironment= of systemd itself
#	preload_file		the last file that sets it, or empties Environment=
#	disable			FIBERIZE_DISABLE in Environment=
#	file			each EnvironmentFile=, in order, with its "-"
#	unset			LD_PRELOAD, if UnsetEnvironment= names it
#	filter_file		the last file that empties SystemCallFilter=
#	filter, filter_word	of SystemCallFilter=: "allow" or "deny", and each word, with a "!" if it takes back
#	exec			the first command of ExecStart=, without its prefixes; if that is env(1), the
#				program that env executes, which may be a name without a path
#	env_drops		the argument of that env(1) that removes LD_PRELOAD, if there is one
#	also			the key and program of each other command
#	...Paths, ...FileSystem	each path of all lines, with its prefixes and options
#	other keys		their last value

# Returns the character that an escape stands for; the argument is what is behind its backslash.  Sets escaped, how many
# characters of that belong to it.  A control character would end our line: it is left out.
function unescaped(escape,	digits, base, i, number)
{
	escaped = 1
	if (escape ~ /^x[0-9A-Fa-f][0-9A-Fa-f]/)
		base = 16
	else if (escape ~ /^[0-3][0-7][0-7]/)
		base = 8
	else
		return escape ~ /^s/ ? " " : escape ~ /^t/ ? "\t" : substr(escape, 1, 1)
	escaped = 3
	digits = substr(escape, base == 16 ? 2 : 1, 3)
	for (i = 1; i <= length(digits); i++)
		number = number * base + index("0123456789abcdef", tolower(substr(digits, i, 1))) - 1
	return number < 32 ? "" : sprintf("%c", number)
}

# Stores the words of a value in words[1..n], without quotes, as systemd splits it; returns n.
function split_words(text, words,	count, i, c, quote, word, open)
{
	count = 0
	open = 0
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (c == "\\") {
			word = word unescaped(substr(text, i + 1, 3))
			i += escaped
			open = 1
		} else if (quote != "" && c == quote) {
			quote = ""
		} else if (quote == "" && (c == "\"" || c == "'")) {
			quote = c
			open = 1
		} else if (quote == "" && (c == " " || c == "\t")) {
			if (open)
				words[++count] = word
			word = ""
			open = 0
		} else {
			word = word c
			open = 1
		}
	}
	if (open)
		words[++count] = word
	return count
}

function environment(value,	words, count, i)
{
	if (value == "") {
		has_preload = 0
		disable = ""
		preload_file = current
	}
	count = split_words(value, words)
	for (i = 1; i <= count; i++)
		if (index(words[i], "LD_PRELOAD=") == 1) {
			has_preload = 1
			preload = substr(words[i], 12)
			preload_file = current
		} else if (index(words[i], "FIBERIZE_DISABLE=") == 1) {
			disable = substr(words[i], 18)
		}
}

function default_environment(value,	words, count, i)
{
	count = split_words(value, words)
	if (!count)
		default_preload = ""
	for (i = 1; i <= count; i++)
		if (index(words[i], "LD_PRELOAD=") == 1)
			default_preload = substr(words[i], 12)
}

function filter(value,	words, count, i, denies)
{
	if (value == "") {
		filter_file = current
		kind = ""
		filter_count = 0
		return
	}
	denies = sub(/^~/, "", value)
	if (kind == "")
		kind = denies ? "deny" : "allow"
	count = split_words(value, words)
	# "!word" takes back what the filter says of word: it has ~ in a filter that allows, or none in one that denies.
	for (i = 1; i <= count; i++) {
		filter_words[++filter_count] = (denies == (kind == "deny") ? "" : "!") words[i]
	}
}

# Returns the program of the command that begins with words[first], without its prefixes, or the program that env(1)
# executes.  Sets drops.
function program_of(words, first, count,	i, word)
{
	sub(/^[-@:+!|]*/, "", words[first])
	drops = ""
	if (words[first] !~ /\/env$/)
		return words[first]
	for (i = first + 1; i <= count; i++) {
		word = words[i]
		if (word ~ /^(-|-i|--ignore-environment)$/ || word ~ /^(-u|--unset=)LD_PRELOAD$/ ||
		    (word ~ /^(-u|--unset)$/ && words[i + 1] == "LD_PRELOAD") || word ~ /^LD_PRELOAD=/)
			drops = word ~ /^(-u|--unset)$/ ? word " LD_PRELOAD" : word
		# The next word is the argument of this option.
		if (word ~ /^(-u|--unset|-C|--chdir)$/)
			i++
		else if (word !~ /^-/ && word !~ /=/)
			break
	}
	return i <= count ? words[i] : ""
}

# Several commands are separated by a word ";".
function execute(key, value,	words, count, i, first, program)
{
	if (value == "") {
		if (key == "ExecStart")
			command = env_drops = ""
		also_count[key] = 0
		return
	}
	count = split_words(value, words)
	for (i = first = 1; i <= count + 1; i++) {
		if (i <= count && words[i] != ";")
			continue
		program = i > first ? program_of(words, first, i - 1) : ""
		first = i + 1
		if (program == "")
			continue
		if (key == "ExecStart" && command == "") {
			command = program
			env_drops = drops
		} else {
			also[key, ++also_count[key]] = program
		}
	}
}

# A setting whose lines add up, one path a word.
function add_paths(key, value,	words, count, i)
{
	if (value == "")
		path_count[key] = 0
	count = split_words(value, words)
	for (i = 1; i <= count; i++)
		paths[key, ++path_count[key]] = words[i]
}

function assign(key, value)
{
	if (key == "Environment")
		environment(value)
	else if (key == "EnvironmentFile" && value == "")
		file_count = 0
	else if (key == "EnvironmentFile")
		files[++file_count] = value
	else if (key == "UnsetEnvironment")
		unset = value == "" ? 0 : unset || (" " value " ") ~ /[ "']LD_PRELOAD[ ="']/
	else if (key == "SystemCallFilter")
		filter(value)
	else if (key ~ /^Exec(Condition|Start|StartPre|StartPost|Reload|Stop|StopPost)$/)
		execute(key, value)
	else if (key ~ /(Paths|FileSystem)$/)
		add_paths(key, value)
	else
		other[key] = value
}

function take(line,	at, key)
{
	if (line ~ /^\[/) {
		section = line
		sub(/[ \t]+$/, "", section)
		return
	}
	at = index(line, "=")
	if (!at)
		return
	key = substr(line, 1, at - 1)
	line = substr(line, at + 1)
	sub(/[ \t]+$/, "", key)
	sub(/^[ \t]+/, "", line)
	sub(/[ \t]+$/, "", line)
	if (section == "[Service]")
		assign(key, line)
	else if (section == "[Manager]" && key == "DefaultEnvironment")
		default_environment(line)
}

# A continuation that nothing follows in the file belongs to it all the same.
function end_file()
{
	if (rest != "")
		take(rest)
	rest = ""
}

FNR == 1 {
	end_file()
	current = named
	section = ""
	# A byte order mark.
	sub(/^\357\273\277/, "")
}

{
	sub(/^[ \t]+/, "")
	sub(/\r$/, "")
}
/^[#;]/ || (/^$/ && rest == "") { next }
# Two backslashes stand for one.
match($0, /\\+$/) && RLENGTH % 2 {
	rest = rest substr($0, 1, length($0) - 1) " "
	next
}
{
	take(rest $0)
	rest = ""
}

END {
	end_file()
	# This counts more than DefaultEnvironment=.
	if (ENVIRON["manager_preload"] != "")
		default_preload = ENVIRON["manager_preload"]
	if (has_preload || default_preload != "")
		print "preload\t" (has_preload ? preload : default_preload)
	if (preload_file != "")
		print "preload_file\t" preload_file
	if (disable != "")
		print "disable\t" disable
	for (i = 1; i <= file_count; i++)
		print "file\t" files[i]
	if (unset)
		print "unset\tLD_PRELOAD"
	if (filter_file != "")
		print "filter_file\t" filter_file
	if (kind != "")
		print "filter\t" kind
	for (i = 1; i <= filter_count; i++)
		print "filter_word\t" filter_words[i]
	if (command != "")
		print "exec\t" command
	for (key in also_count)
		for (i = 1; i <= also_count[key]; i++)
			print "also\t" key "\t" also[key, i]
	for (key in path_count)
		for (i = 1; i <= path_count[key]; i++)
			print key "\t" paths[key, i]
	if (env_drops != "")
		print "env_drops\t" env_drops
	for (key in other)
		print key "\t" other[key]
}
