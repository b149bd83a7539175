/* SPDX-License-Identifier: MIT */
#include "preload/stub/host.h"

#include <asm/unistd.h>
#include <link.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/stub/text.h"

#define WEAK __attribute__((weak))

extern const char *gnu_get_libc_version(void) WEAK;
extern unsigned long getauxval(unsigned long type) WEAK;
extern struct r_debug _r_debug WEAK;
/* Every version of glibc's loader has this symbol; libraries that imitate glibc on musl lack it. */
extern char _rtld_global_ro[] WEAK;

extern void __asan_init(void) WEAK;
extern void __hwasan_init(void) WEAK;
extern void __msan_init(void) WEAK;
extern void __tsan_init(void) WEAK;

/* The linker makes a _DYNAMIC in each object; this one is the stub's. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

bool fz_stub_on_glibc(void)
{
	return gnu_get_libc_version && getauxval && &_r_debug && _rtld_global_ro;
}

bool fz_stub_sanitized(void)
{
	return __asan_init || __hwasan_init || __msan_init || __tsan_init;
}

static struct link_map *own_map(void)
{
	struct link_map *map = _r_debug.r_map;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	return map;
}

void fz_stub_step_back(void)
{
	struct link_map *own = own_map(), *last = own;

	/* The program must stay the first; nor is there anything to do if this library is the last. */
	if (!own || !own->l_prev || !own->l_next)
		return;
	while (last->l_next)
		last = last->l_next;
	own->l_prev->l_next = own->l_next;
	own->l_next->l_prev = own->l_prev;
	last->l_next = own;
	own->l_prev = last;
	own->l_next = NULL;
}

unsigned fz_stub_libc_minor(void)
{
	const char *minor = fz_text_after(gnu_get_libc_version(), "2.");
	unsigned number = 0;

	for (; minor && *minor >= '0' && *minor <= '9' && number < 1000; minor++)
		number = number * 10 + (unsigned)(*minor - '0');
	return number;
}

unsigned long fz_stub_auxiliary(unsigned long type)
{
	return getauxval(type);
}

const char *fz_stub_own_path(void)
{
	struct link_map *map = own_map();

	return map ? map->l_name : NULL;
}

const char *fz_stub_variable(char **envp, const char *name)
{
	for (; *envp; envp++) {
		const char *value = fz_text_after(*envp, name);

		if (value && *value == '=')
			return value + 1;
	}
	return NULL;
}

void fz_stub_say(char **envp, const char *name, const char *what)
{
	const char *verbose = fz_stub_variable(envp, "FIBERIZE_VERBOSE");
	char line[256];
	struct fz_text_buffer b = { line, line + sizeof(line) - 1, false };

	if (!verbose || strcmp(verbose, "1") != 0)
		return;
	fz_text_put(&b, "fiberize: ");
	fz_text_put(&b, name);
	fz_text_put(&b, "[");
	fz_text_put_number(&b, (unsigned long)fz_syscall0(__NR_getpid));
	fz_text_put(&b, "]: not by libfiberize-preload.so: ");
	fz_text_put(&b, what);
	/* b.end is one byte before the end of `line`, so there is room for the newline. */
	*b.at++ = '\n';
	fz_syscall3(__NR_write, 2, (long)line, b.at - line);
}
