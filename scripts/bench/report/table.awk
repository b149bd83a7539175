# SPDX-License-Identifier: MIT
#
# scripts/bench/report/table.awk - for awk -f, with summary.awk and words.awk: prints the text of
# "fiberize bench".

function row(c, name)
{
	if (shown(c, name))
		printf "%-24s %-28s %-28s %s\n", label_of[name], cell(c, "native", name),
			cell(c, "fiberize", name), cell(c, "ratio", name)
}

END {
	printf "%d round%s of %s", rounds, (rounds > 1 ? "s" : ""), \
		(ENVIRON["fz_mode"] == "load" ? "the load" : ENVIRON["fz_duration"] " s")
	if (cases == 1 && connections_of[1])
		printf ", %s", case_label(1)
	if (ENVIRON["fz_server_cpus"] != "")
		printf "; program on CPU %s, load on CPU %s", \
			ENVIRON["fz_server_cpus"], ENVIRON["fz_load_cpus"]
	printf ": median (min..max)\n"
	for (c = 1; c <= cases; c++) {
		printf "\n%s%-24s %-28s %-28s %s\n", (cases > 1 ? case_label(c) "\n" : ""), "", \
			"native", "fiberize", "ratio"
		for (i = 1; i <= figure_count; i++)
			row(c, figures[i])
	}
	printf "\n%s\n", headline()
	for (c = 1; c <= cases; c++)
		print sentence(c)
	count = notes(note)
	for (i = 1; i <= count; i++)
		print note[i]
}
