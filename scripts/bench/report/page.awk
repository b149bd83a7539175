# SPDX-License-Identifier: MIT
#
# scripts/bench/report/page.awk - for awk -f, with summary.awk, words.awk and facts.awk: prints the
# report as one HTML page that needs no other file. Variable: directory, which has the charts.

function html(text)
{
	gsub(/&/, "\\&amp;", text)
	gsub(/</, "\\&lt;", text)
	gsub(/>/, "\\&gt;", text)
	gsub(/"/, "\\&quot;", text)
	gsub(/[\001-\010\013-\037\177]/, "?", text)
	return text
}

# Print a chart (SVG) inside the page. The lines before <svg are left out: they name a document type.
function figure_of(file,    line, begun)
{
	print "<figure>"
	while ((getline line <file) > 0) {
		begun = begun || line ~ /^<svg/
		if (begun)
			print line
	}
	close(file)
	print "</figure>"
}

function head()
{
	print "<!DOCTYPE html>"
	print "<html lang=\"en\"><head><meta charset=\"utf-8\">"
	print "<meta name=\"viewport\" content=\"width=device-width\">"
	print "<title>fiberize bench: " html(ENVIRON["fz_title"]) "</title>"
	print "<style>"
	print "body { font: 16px/1.5 sans-serif; color: #222; max-width: 60em; margin: 2em auto; padding: 0 1em; }"
	print "#headline { font-size: 1.4em; font-weight: bold; padding: .6em; border-left: .4em solid #6b7280; background: #f3f4f6; }"
	print "#headline.faster { border-color: #15803d; } #headline.slower { border-color: #b91c1c; }"
	print "#headline.mixed { border-color: #b45309; }"
	print "table { border-collapse: collapse; margin: 1em 0; } caption { text-align: left; font-weight: bold; }"
	print "th, td { border-bottom: 1px solid #ddd; padding: .2em .8em; text-align: left; vertical-align: top; }"
	print "td { font-variant-numeric: tabular-nums; } code { overflow-wrap: anywhere; }"
	print "figure { margin: 1em 0; } svg { max-width: 100%; height: auto; }"
	print ".faster { color: #15803d; } .slower { color: #b91c1c; } #headline { color: #222; }"
	print "</style></head><body>"
}

function table_of(c,    i, name, side, word)
{
	print "<table data-case=\"" c "\"><caption>" case_label(c) ", " rounds " round" \
		(rounds > 1 ? "s" : "") ": median (min..max)</caption>"
	print "<tr><th></th><th>native</th><th>fiberize</th><th>ratio</th><th>verdict</th></tr>"
	for (i = 1; i <= figure_count; i++) {
		name = figures[i]
		if (!shown(c, name))
			continue
		printf "<tr><th>%s</th>", label_of[name]
		for (side = 1; side <= 3; side++)
			printf "<td data-figure=\"%s\" data-side=\"%s\">%s</td>", name, \
				columns[side], cell(c, columns[side], name)
		word = better_of[name] ? judged(c, name) : ""
		printf "<td class=\"%s\">%s</td></tr>\n", word, word
	}
	print "</table>"
}

END {
	split("native fiberize ratio", columns)
	head()
	print "<h1>fiberize bench: <code>" html(ENVIRON["fz_title"]) "</code></h1>"
	print "<p id=\"headline\" class=\"" verdict_of_all() "\">" headline() "</p>"
	print "<ul id=\"words\">"
	for (c = 1; c <= cases; c++)
		print "<li>" html(sentence(c)) "</li>"
	print "</ul>"
	count = notes(note)
	if (count) {
		print "<p>To keep in mind:</p>\n<ul id=\"notes\">"
		for (i = 1; i <= count; i++)
			print "<li>" html(note[i]) "</li>"
		print "</ul>"
	}
	print "<h2>Charts</h2>"
	for (i = 1; i <= charts; i++)
		figure_of(directory "/chart." i ".svg")
	print "<h2>Figures</h2>"
	for (c = 1; c <= cases; c++)
		table_of(c)
	print "<h2>How it was measured</h2>"
	print "<p><b>native</b> is the program as it is, <b>fiberize</b> the same program under " \
		"fiberize. In each round both ran one after the other under the same load, and a " \
		"ratio is fiberize divided by native within a round. A verdict says that the middle " \
		"of the ratios is on one side of 1 with 93 % certainty.</p>"
	print "<dl>"
	count = facts(fact, value)
	for (i = 1; i <= count; i++)
		print "<dt>" fact[i] "</dt><dd><code>" html(value[i]) "</code></dd>"
	print "</dl></body></html>"
}
