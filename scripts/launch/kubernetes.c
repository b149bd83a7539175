/* SPDX-License-Identifier: MIT */
#include "kubernetes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "installed.h"
#include "say.h"
#include "usage.h"

_Noreturn void kubernetes(const struct settings *s, char **words)
{
	char script[4096], **all;
	size_t count = 0;

	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		if (s->value[i])
			die(EXIT_USAGE, "%s: cannot be used with kubernetes; set it in a profile (kubernetes --profiles NAMESPACE)",
			    usage_flag(fz_options[i].name));
	while (words[count])
		count++;
	all = calloc(count + 4, sizeof(*all));
	if (!all)
		die(EXIT_OTHER, "no memory");
	snprintf(script, sizeof(script), "%s/kubernetes.sh", installed_libexec());
	if (access(script, R_OK) != 0)
		die(EXIT_OTHER, "cannot find %s, a part of fiberize; is it installed completely?", script);
	all[0] = (char *)"/bin/sh";
	all[1] = script;
	all[2] = (char *)FZ_VERSION;
	memcpy(all + 3, words, count * sizeof(*all));
	execv(all[0], all);
	die(EXIT_OTHER, "/bin/sh cannot be started");
}
