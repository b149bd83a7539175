/* SPDX-License-Identifier: MIT */
#include "preload/config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

#include "runtime/base/die.h"
#include "runtime/base/sys.h"

struct fz_config fz_config;

_Static_assert(sizeof(fz_config) == FZ_OPTION_COUNT * sizeof(uint64_t),
	       "each option's value has 64 bits");

static void set(const struct fz_option *o, uint64_t value)
{
	memcpy((char *)&fz_config + (size_t)(o - fz_options) * sizeof(value), &value, sizeof(value));
}

static void read_one(const char *entry)
{
	size_t length = strcspn(entry, "=");
	const struct fz_option *o = fz_option_of_variable(entry, length);
	char allowed[FZ_OPTION_TEXT];
	uint64_t value;

	if (!entry[length])
		return;
	if (!o) {
		fz_say("%s: no such option; ignored", entry);
	} else if (fz_option_parse(o, entry + length + 1, &value)) {
		set(o, value);
	} else {
		fz_option_allowed(o, allowed, sizeof(allowed));
		fz_say("%s: must be %s; ignored", entry, allowed);
	}
}

/* Does /etc/fiberize/disable exist? It switches the library off in each program that starts. */
static bool all_off(void)
{
	/* openat, because the loader has just used it: a seccomp filter may refuse other calls. */
	long fd = fz_syscall4(__NR_openat, AT_FDCWD, (long)"/etc/fiberize/disable", O_PATH | O_CLOEXEC, 0);

	if (!fz_sys_failed(fd))
		fz_syscall1(__NR_close, fd);
	return fd != -ENOENT && fd != -ENOTDIR;
}

void fz_config_read(char *const *envp)
{
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		set(&fz_options[i], fz_options[i].initial);
	/*
	 * AT_SECURE: the program has more rights than the user who set the environment. With --stats the
	 * program would make files where that user may not. The loader loads this library into such a
	 * program if /etc/ld.so.preload names libfiberize.so (everywhere.sh).
	 */
	if (getauxval(AT_SECURE)) {
		fz_config.disable = true;
		return;
	}
	for (; envp && *envp; envp++)
		/* FIBERIZE_LAUNCHED (preload/init.c) and FIBERIZE_PRELOADED (preload/stub) are no options. */
		if (strncmp(*envp, "FIBERIZE_", 9) == 0 &&
		    strncmp(*envp, "FIBERIZE_LAUNCHED=", 18) != 0 &&
		    strncmp(*envp, "FIBERIZE_PRELOADED=", 19) != 0)
			read_one(*envp);
	if (all_off())
		fz_config.disable = true;
}

const char *fz_variable(char *const *envp, const char *name)
{
	size_t length = strlen(name);

	for (; envp && *envp; envp++)
		if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
			return *envp + length + 1;
	return NULL;
}
