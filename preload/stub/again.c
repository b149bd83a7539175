/* SPDX-License-Identifier: MIT */
#include "preload/stub/again.h"

#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <string.h>

#include "arch/arch.h"
#include "preload/stub/host.h"

#define MARK "FIBERIZE_PRELOADED="
#define PRELOAD "LD_PRELOAD="

static bool failed(long ret)
{
	return ret < 0 && ret > -4096;
}

/* Returns the last entry of this name, which is the one that the loader uses; NULL if there is none. */
static char **last_entry(char **envp, const char *name)
{
	char **last = NULL;

	for (; *envp; envp++)
		if (fz_text_after(*envp, name))
			last = envp;
	return last;
}

/* ---- the second run ------------------------------------------------------- */

bool fz_again_arrived(char **envp)
{
	char **mark = last_entry(envp, MARK), **preload = last_entry(envp, PRELOAD);
	const char *rest;
	unsigned long pid = 0;
	char *name, *end;

	if (!mark)
		return false;
	rest = fz_text_after(*mark, MARK);
	for (; *rest >= '0' && *rest <= '9'; rest++)
		pid = pid * 10 + (unsigned long)(*rest - '0');
	name = (char *)rest + 1;
	if (*rest != '/' || pid != (unsigned long)fz_syscall0(__NR_getpid))
		return false;
	for (end = name; *end && *end != '/';)
		end++;
	if (*end && preload && fz_text_after(end + 1, PRELOAD))
		*preload = end + 1;
	*end = '\0';
	fz_syscall2(__NR_prctl, PR_SET_NAME, (long)name);
	/*
	 * The variable becomes empty, but its entry stays: programs look for the auxiliary vector behind the last
	 * entry, so the array must not become shorter.
	 */
	(*mark)[sizeof(MARK) - 1] = '\0';
	return true;
}

/* ---- the exec ------------------------------------------------------------- */

/*
 * Returns a path that executes this program again: the one that it was executed by, or /proc/self/exe if the
 * former is another file, such as a script. NULL: there is no /proc.
 */
static const char *program(const char *path)
{
	static const char itself[] = "/proc/self/exe";
	struct stat named, running;

	if (failed(fz_syscall4(__NR_newfstatat, AT_FDCWD, (long)itself, (long)&running, 0)))
		return NULL;
	if (failed(fz_syscall4(__NR_newfstatat, AT_FDCWD, (long)path, (long)&named, 0)) ||
	    named.st_dev != running.st_dev || named.st_ino != running.st_ino)
		return itself;
	return path;
}

static void put_preload(struct fz_text_buffer *b, const char *library, const char *before)
{
	fz_text_put(b, PRELOAD);
	fz_text_put(b, library);
	if (*before)
		fz_text_put(b, ":");
	fz_text_put(b, before);
}

static void put_mark(struct fz_text_buffer *b, const char *before)
{
	char name[16] = "";

	fz_syscall2(__NR_prctl, PR_GET_NAME, (long)name);
	fz_text_put(b, MARK);
	fz_text_put_number(b, (unsigned long)fz_syscall0(__NR_getpid));
	fz_text_put(b, "/");
	fz_text_put(b, name);
	fz_text_put(b, "/" PRELOAD);
	fz_text_put(b, before);
}

/* Has the environment a variable of the same name as this entry? */
static bool is_set(char **envp, const char *entry)
{
	for (; *envp; envp++) {
		size_t i = 0;

		while (entry[i] != '=' && (*envp)[i] == entry[i])
			i++;
		if (entry[i] == '=' && (*envp)[i] == '=')
			return true;
	}
	return false;
}

const char *fz_again(const struct fz_rules *r, const char *library, char **argv, char **envp)
{
	char **old = last_entry(envp, PRELOAD), **environment, *preload;
	const char *before = old ? fz_text_after(*old, PRELOAD) : "";
	const char *path = program(r->path);
	size_t count = 0, size, used = 0;
	struct fz_text_buffer b;
	long memory;

	if (!path)
		return "there is no /proc/self/exe";
	while (envp[count])
		count++;
	/* The array has the old variables, the options, LD_PRELOAD, the mark and a NULL. The texts follow it. */
	size = (count + FZ_OPTION_COUNT + 3) * sizeof(*environment) + 2 * strlen(before) + strlen(library) + 256;
	memory = fz_syscall6(__NR_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(memory))
		return "there is no memory";
	environment = (char **)memory;
	b = (struct fz_text_buffer){ (char *)(environment + count + FZ_OPTION_COUNT + 3), (char *)memory + size, false };
	preload = b.at;
	put_preload(&b, library, before);
	for (; used < count; used++)
		environment[used] = envp + used == old ? preload : envp[used];
	if (!old)
		environment[used++] = preload;
	environment[used] = fz_text_next(&b);
	put_mark(&b, before);
	used++;
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		if (r->variables[i] && !is_set(envp, r->variables[i]))
			environment[used++] = r->variables[i];
	environment[used] = NULL;
	if (!b.full)
		fz_syscall3(__NR_execve, (long)path, (long)argv, (long)environment);
	fz_syscall2(__NR_munmap, memory, (long)size);
	return "the program cannot be executed again";
}
