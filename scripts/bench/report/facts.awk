# SPDX-License-Identifier: MIT
#
# scripts/bench/report/facts.awk - for awk -f, with summary.awk: the facts on how a measurement was
# made (command, machine, time ...), for the reports that are files.

# Stores the name of each fact in name[1..n] and its value in value[1..n]. Returns n.
function facts(name, value,    n, c, load_of)
{
	n = split("", name)
	name[++n] = "command"; value[n] = ENVIRON["fz_command"]
	split(ENVIRON["fz_loads"], load_of, "\n")
	for (c = 1; c <= cases; c++) {
		name[++n] = "load" (cases > 1 ? ", " case_label(c) : "")
		value[n] = load_of[c]
	}
	name[++n] = "CPU"
	value[n] = ENVIRON["fz_cpu"] ", " ENVIRON["fz_cpus"] " CPUs, " ENVIRON["fz_machine"]
	if (ENVIRON["fz_server_cpus"] != "") {
		name[++n] = "CPUs of the program"; value[n] = ENVIRON["fz_server_cpus"]
		name[++n] = "CPUs of the load"; value[n] = ENVIRON["fz_load_cpus"]
	}
	name[++n] = "kernel"; value[n] = ENVIRON["fz_kernel"]
	name[++n] = "fiberize"; value[n] = ENVIRON["fz_version"] ", commit " ENVIRON["fz_commit"]
	name[++n] = "date"; value[n] = ENVIRON["fz_date"]
	return n
}
