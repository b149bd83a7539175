# SPDX-License-Identifier: MIT
#
# scripts/dev/symbols.awk - reads the tables of the interposed names, in this order:
#
#	awk -v tool=NAME -f scripts/dev/symbols.awk preload/topics.def preload/rungs.def preload/symbols.def
#
# Prints the rows of the tables, each with its line number, and fields separated by |:
#
#	topic|LINE|TOPIC|TITLE|TESTS
#	rung|LINE|RUNG|WORD|TEXT
#	symbol|LINE|NAME|RUNG|CANCEL|FAMILY|TOPIC|VERSION
#	alias|LINE|ALIAS|NAME
#	libc|LINE|NAME|RUNG|TOPIC
#	trait|LINE|NAME|TRAIT
#
# A wrong line is reported once on standard error, as "NAME: FILE:LINE: what is wrong, and what to
# do"; then the exit status is 1.

# The functions wrong_...() return what is wrong with a line, or "".

function wrong_name(name)
{
	if (name !~ /^[A-Za-z_][A-Za-z0-9_]*$/)
		return "\"" name "\" is not the name of a function; correct it"
	if (name in line_of)
		return name " is in line " line_of[name] " already; delete one of the two"
	line_of[name] = FNR
	return ""
}

function wrong_word(value, words, what)
{
	if (value == "" || !index(" " words " ", " " value " "))
		return "no such " what ": " value "; use one of: " words
	return ""
}

function wrong_topic(topic)
{
	if (!(topic in topics))
		return "no such topic: " topic "; use one of preload/topics.def, or add it there"
	used[topic] = 1
	return ""
}

function wrong_order(name, list,	before)
{
	before = last[list]
	last[list] = name
	return name > before ? "" : name " comes after " before "; sort the names (LC_ALL=C)"
}

# Stores the words between the brackets in f[1..count]; a string is one word, without its quotes.
function split_line(	text)
{
	text = $0
	if (!sub(/^FZ_[A-Z]*\(/, "", text) || !sub(/\)$/, "", text))
		return "not one call of a macro; write it in one line"
	for (count = 0; text != ""; ) {
		if (!match(text, /^("[^"]*"|[^",]+)(, *|$)/))
			return "not a list of words with commas between them; correct it"
		f[++count] = substr(text, 1, RLENGTH)
		text = substr(text, RLENGTH + 1)
		sub(/, *$/, "", f[count])
		gsub(/"/, "", f[count])
	}
	return ""
}

function topic_line()
{
	if (count != 3)
		return "not FZ_TOPIC(topic, title, tests); correct it"
	if (f[1] in topics)
		return "the topic " f[1] " is in line " topics[f[1]] " already; delete one of the two"
	topics[f[1]] = FNR
	topic_file = FILENAME
	print "topic|" FNR "|" f[1] "|" f[2] "|" f[3]
	return ""
}

function rung_line()
{
	if (count != 3)
		return "not FZ_RUNG(rung, word, text); correct it"
	if (f[1] in rungs)
		return "the rung " f[1] " is in line " rungs[f[1]] " already; delete one of the two"
	rungs[f[1]] = FNR
	print "rung|" FNR "|" f[1] "|" f[2] "|" f[3]
	return wrong_word(f[1], taken " " left, "rung")
}

function symbol_line(	i, wrong)
{
	if (count < 6)
		return "not FZ_SYMBOL(name, rung, cancel, family, topic, version, aliases...); correct it"
	wrong = wrong_name(f[1])
	for (i = 7; i <= count && wrong == ""; i++)
		wrong = wrong_name(f[i])
	if (wrong == "")
		wrong = wrong_order(f[1], "")
	if (wrong == "")
		wrong = wrong_word(f[2], taken, "rung of a function that is taken over")
	if (wrong == "")
		wrong = wrong_word(f[3], "CANCEL NO", "word for cancellation")
	if (wrong == "")
		wrong = wrong_word(f[4], families, "family")
	if (wrong == "" && f[2] !~ /^(TRACKED|SELF)$/)
		wrong = wrong_topic(f[5])
	else if (wrong == "" && f[5] != "NO")
		wrong = f[1] " never waits, being " f[2] "; its topic must be NO"
	if (wrong == "" && f[6] !~ /^(NULL|OPTIONAL|GLIBC_[0-9.]+)$/)
		wrong = "no such version: " f[6] "; use NULL, OPTIONAL or \"GLIBC_...\""
	print "symbol|" FNR "|" f[1] "|" f[2] "|" f[3] "|" f[4] "|" f[5] "|" f[6]
	for (i = 7; i <= count; i++)
		print "alias|" FNR "|" f[i] "|" f[1]
	return wrong
}

function libc_line(	i, wrong)
{
	if (count < 3)
		return "not FZ_LIBC(rung, topic, names...); correct it"
	wrong = wrong_word(f[1], left, "rung of a function that stays libc's")
	if (wrong == "")
		wrong = wrong_topic(f[2])
	for (i = 3; i <= count && wrong == ""; i++) {
		wrong = wrong_name(f[i])
		if (wrong == "")
			wrong = wrong_order(f[i], f[1] " " f[2])
		print "libc|" FNR "|" f[i] "|" f[1] "|" f[2]
	}
	return wrong
}

function trait_line(	i, wrong)
{
	if (count < 2)
		return "not FZ_TRAIT(trait, names...); correct it"
	wrong = wrong_word(f[1], traits, "trait")
	for (i = 2; i <= count && wrong == ""; i++) {
		wrong = wrong_order(f[i], "trait " f[1])
		print "trait|" FNR "|" f[i] "|" f[1]
	}
	return wrong
}

# Set rung_file here, so that it is known even if rungs.def has no row.
FILENAME ~ /rungs\.def$/ { rung_file = FILENAME }

BEGIN {
	taken = "USER RING READY ANNOUNCED BRIEF TRACKED SELF"
	left = "INSIDE LATE NEVER"
	families = "ALONE MUTEX COND OWN NO"
	traits = "EXECS LOOP PLUGINS PROCESSES SERVES THREADS"
}

/^FZ_/ {
	wrong = split_line()
	if (wrong != "")
		;
	else if (/^FZ_TOPIC\(/)
		wrong = topic_line()
	else if (/^FZ_RUNG\(/)
		wrong = rung_line()
	else if (/^FZ_SYMBOL\(/)
		wrong = symbol_line()
	else if (/^FZ_LIBC\(/)
		wrong = libc_line()
	else if (/^FZ_TRAIT\(/)
		wrong = trait_line()
	else
		wrong = "none of FZ_TOPIC, FZ_RUNG, FZ_SYMBOL, FZ_LIBC and FZ_TRAIT; correct it"
	if (wrong != "") {
		print tool ": " FILENAME ":" FNR ": " wrong >"/dev/stderr"
		bad = 1
	}
}

END {
	count = split(taken " " left, name, " ")
	for (i = 1; i <= count && !bad; i++)
		if (!(name[i] in rungs)) {
			print tool ": " rung_file ": has no FZ_RUNG(" name[i] ", word, text); add it" >"/dev/stderr"
			bad = 1
		}
	for (topic in topics)
		if (!bad && !(topic in used)) {
			print tool ": " topic_file ":" topics[topic] ": no function has the topic " \
				topic "; delete the line" >"/dev/stderr"
			bad = 1
		}
	exit bad
}
