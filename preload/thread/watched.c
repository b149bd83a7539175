/* SPDX-License-Identifier: MIT */
#include "preload/thread/watched.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/config.h"
#include "preload/gate.h"

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

/* Read a small file, as far as it fits, as a string; empty if the file cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
	int fd = fz_real.open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : fz_real.read(fd, text, size - 1);

	text[n < 0 ? 0 : n] = '\0';
	if (fd >= 0)
		fz_real.close(fd);
}

bool fz_watched_from_outside(const char **ret_why)
{
	char text[1024], path[64], *line;

	/* ltrace keeps return addresses for each kernel thread, and loses track of the program. */
	*ret_why = "ltrace runs this program";
	read_text("/proc/self/status", text, sizeof(text));
	line = strstr(text, "\nTracerPid:");
	if (!line || atol(line + 11) == 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%ld/comm", atol(line + 11));
	read_text(path, text, sizeof(text));
	return strcmp(text, "ltrace\n") == 0;
}
