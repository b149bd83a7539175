/* SPDX-License-Identifier: MIT */
#include "preload/thread/watched.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/config.h"
#include "preload/proc.h"

bool fz_watched_from_inside(char *const *envp, const char **ret_why)
{
	static const char *const sanitizers[] = { "__asan_init", "__hwasan_init", "__msan_init",
						  "__tsan_init", "__lsan_init" };
	const char *preloaded = fz_variable(envp, "LD_PRELOAD");

	*ret_why = "a sanitizer is in this program";
	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(*sanitizers); i++)
		if (dlsym(RTLD_DEFAULT, sanitizers[i]))
			return true;
	*ret_why = "valgrind runs this program";
	if (preloaded && strstr(preloaded, "vgpreload_core"))
		return true;
	*ret_why = "shadow stacks are on";
	return fz_arch_shadow_stack();
}

bool fz_watched_from_outside(const char **ret_why)
{
	char text[1024], path[64], *pid;

	/* ltrace keeps return addresses for each kernel thread, and loses track of the program. */
	*ret_why = "ltrace runs this program";
	pid = fz_proc_read("/proc/self/status", "\nTracerPid:", text, sizeof(text));
	if (!pid || atol(pid) == 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%ld/comm", atol(pid));
	fz_proc_read(path, "", text, sizeof(text));
	return strcmp(text, "ltrace\n") == 0;
}
