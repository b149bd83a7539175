# SPDX-License-Identifier: MIT
#
# scripts/bench/report/charts.awk - for awk -f, with summary.awk: writes the data of the charts to
# DIRECTORY/chart.N, and prints for each chart a line with the arguments of gnuplot -c, separated by
# tabs. Variable: directory.

function chart(script, title, rows, width)
{
	charts++
	file = directory "/chart." charts
	line = script "\t" file "\t" file ".svg\tchart" charts "\t" title "\t" rows "\t" width
}

# A short name of a case.
function chart_label(c)
{
	return rate_of[c] ? connections_of[c] ", at " rate_of[c] "/s" : case_label(c)
}

# A chart of one figure: two bars for each case.
function bars(name,    c, rows)
{
	for (c = 1; c <= cases; c++)
		rows += shown(c, name) && collect(c, "native", name, v) && \
			collect(c, "fiberize", name, v)
	if (!rows)
		return
	chart("bars.gp", label_of[name] (better_of[name] > 0 ? " (more is better)" : \
		" (less is better)"), rows, 190 * rows)
	for (c = 1; c <= cases; c++) {
		if (!shown(c, name) || !collect(c, "native", name, v))
			continue
		text = middle "\t" low "\t" high "\t" short(middle)
		if (!collect(c, "fiberize", name, v))
			continue
		printf "%s\t%s\t%s\t%s\t%s\t%s\n", chart_label(c), text, middle, low, high, \
			short(middle) >file
	}
	close(file)
	print line
}

# A chart of ratios: that of each figure in each case, with its interval.
function ratios(    c, i, word, rows)
{
	for (c = 1; c <= cases; c++)
		for (i = 1; i <= figure_count; i++)
			rows += better_of[figures[i]] && shown(c, figures[i]) && \
				judged(c, figures[i]) != ""
	chart("ratios.gp", "fiberize / native: the median of the ratios and its interval", rows, 860)
	for (c = 1; c <= cases; c++)
		for (i = 1; i <= figure_count; i++) {
			if (!better_of[figures[i]] || !shown(c, figures[i]))
				continue
			word = judged(c, figures[i])
			if (word != "")
				printf "%s: %s\t%s\t%s\t%s\t%s\n", chart_label(c), \
					label_of[figures[i]], middle, low, high, word >file
		}
	close(file)
	print line
}

END {
	ratios()
	for (k = 1; k <= figure_count; k++)
		if (better_of[figures[k]])
			bars(figures[k])
}
