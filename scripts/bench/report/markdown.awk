# SPDX-License-Identifier: MIT
#
# scripts/bench/report/markdown.awk - for awk -f, with summary.awk and words.awk: prints the report
# as Markdown.

# Text as a code span of Markdown, between more backticks than the text has in a row.
function code(text,    rest, fence)
{
	fence = "`"
	for (rest = text; match(rest, /`+/); rest = substr(rest, RSTART + RLENGTH))
		while (RLENGTH >= length(fence))
			fence = fence "`"
	gsub(/[\n\r]+/, " ", text)
	return fence (text ~ /^`|`$/ ? " " text " " : text) fence
}

END {
	printf "# fiberize bench: %s\n\n**%s**\n\n", code(ENVIRON["fz_title"]), headline()
	for (c = 1; c <= cases; c++)
		print "- " sentence(c)
	count = notes(note)
	for (i = 1; i <= count; i++)
		print (i == 1 ? "\n" : "") "- " note[i]
	for (c = 1; c <= cases; c++) {
		printf "\n## %s\n\n", case_label(c)
		print "| median (min..max) of " rounds " rounds | native | fiberize | ratio | verdict |"
		print "| --- | --- | --- | --- | --- |"
		for (i = 1; i <= figure_count; i++)
			if (shown(c, figures[i]))
				printf "| %s | %s | %s | %s | %s |\n", label_of[figures[i]], \
					cell(c, "native", figures[i]), cell(c, "fiberize", figures[i]), \
					cell(c, "ratio", figures[i]), \
					better_of[figures[i]] ? judged(c, figures[i]) : ""
	}
	printf "\n## How it was measured\n\n"
	count = facts(fact, value)
	for (i = 1; i <= count; i++)
		printf "- %s: %s\n", fact[i], code(value[i])
}
