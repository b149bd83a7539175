/* SPDX-License-Identifier: MIT */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "installed.h"
#include "say.h"

bool service_is_meant(char **words)
{
	if (strcmp(words[0], "enable") == 0 || strcmp(words[0], "disable") == 0)
		return true;
	if (strcmp(words[0], "status") != 0)
		return false;
	/* "fiberize status" without a service lists all processes. */
	for (words++; *words; words++)
		if (**words != '-' || strncmp(*words, "--root", 6) == 0)
			return true;
	return false;
}

_Noreturn void service(struct settings *s, char **words)
{
	static char variables[FZ_OPTION_COUNT][4096];
	char script[4096], count[16];
	size_t word_count = 0, used = 0, next = 0;
	const char *library = "", *loader_directory = NULL;
	char **all;

	while (words[word_count])
		word_count++;
	all = calloc(word_count + FZ_OPTION_COUNT + 9, sizeof(*all));
	if (!all)
		die(EXIT_OTHER, "no memory");
	/* Leave out --library: the unit gets the library's path in LD_PRELOAD. */
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++) {
		if (!s->value[i] || i == FZ_OPTION_ID_library)
			continue;
		if (s->value[i][strcspn(s->value[i], "\n")] ||
		    snprintf(variables[used], sizeof(variables[used]), "%s=%s", fz_options[i].variable,
			     s->value[i]) >= (int)sizeof(variables[used]))
			die(EXIT_USAGE, "%s: its value cannot be in a unit of systemd", fz_options[i].variable);
		used++;
	}
	/* Read the environment after that: its options are for this user, not for the service. */
	settings_from_environment(s);
	snprintf(script, sizeof(script), "%s/service.sh", installed_libexec());
	if (access(script, R_OK) != 0)
		die(EXIT_OTHER, "cannot find %s, a part of fiberize; is it installed completely?", script);
	snprintf(count, sizeof(count), "%zu", used);
	/* What was enabled can be disabled although the library has been removed. */
	if (strcmp(words[0], "disable") != 0) {
		library = installed_library(s->value[FZ_OPTION_ID_library])->path;
		loader_directory = installed_loader_directory(library);
	}
	all[next++] = (char *)"/bin/sh";
	all[next++] = script;
	all[next++] = words[0];
	all[next++] = (char *)installed_self();
	all[next++] = (char *)library;
	all[next++] = (char *)(loader_directory ? loader_directory : "");
	all[next++] = count;
	for (size_t i = 0; i < used; i++)
		all[next++] = variables[i];
	memcpy(all + next, words + 1, (word_count - 1) * sizeof(*all));
	execv(all[0], all);
	die(EXIT_OTHER, "/bin/sh cannot be started");
}
