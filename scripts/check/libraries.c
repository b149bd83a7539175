/* SPDX-License-Identifier: MIT */
#include "libraries.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scripts/elf/file.h"

/* A limit on the number of objects. Only a damaged program reaches it. */
enum { OBJECTS_MAX = 4096 };

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#define PLATFORM "x86_64"
#define CACHE_FLAGS 0x0303
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#define PLATFORM "aarch64"
#define CACHE_FLAGS 0x0a03
#endif

/* ---- one candidate ------------------------------------------------------ */

/* Is there something at path that is no regular file? Then say so in o->odd. */
static void note_odd(struct object *o, const char *path)
{
	struct stat status;
	const char *kind = stat(path, &status) == 0 ? file_kind(status.st_mode) : NULL;

	if (!kind)
		return;
	free(o->odd);
	if (asprintf(&o->odd, "%s, %s", path, kind) < 0)
		abort();
}

/* Open path if it is a library for o's machine. If it is not, the loader goes on searching: return NULL. */
static struct object *try_file(struct object *o, const char *path)
{
	struct object *found = object_open(path);

	if (found && found->elf_class == ELFCLASS64 &&
	    found->header.e_machine == o->header.e_machine && found->header.e_type == ET_DYN) {
		found->needed_by = o;
		object_read_dynamic(found);
		return found;
	}
	object_close(found);
	note_odd(o, path);
	return NULL;
}

static struct object *try_directory(struct object *o, const char *directory, const char *name)
{
	struct object *found = NULL;
	char *path;

	if (asprintf(&path, "%s/%s", *directory ? directory : ".", name) < 0)
		return NULL;
	if (access(path, R_OK) == 0)
		found = try_file(o, path);
	free(path);
	return found;
}

/* ---- lists of directories ----------------------------------------------- */

/* Returns text with $ORIGIN, $LIB and $PLATFORM replaced for the object at path; the caller frees it. */
static char *expand(const char *text, const char *path)
{
	char *out = NULL, *real = realpath(path, NULL), *slash;
	size_t size = 0;
	FILE *stream = open_memstream(&out, &size);

	slash = real ? strrchr(real, '/') : NULL;
	if (slash)
		*slash = '\0';
	while (stream && *text) {
		const char *const words[][2] = { { "ORIGIN", slash ? real : "." },
						 { "LIB", "lib/" MULTIARCH },
						 { "PLATFORM", PLATFORM } };
		bool done = false;

		for (int i = 0; i < 3 && *text == '$' && !done; i++) {
			const char *rest = text + 1, *name = words[i][0];
			size_t length = strlen(name);
			bool brace = *rest == '{';

			if (strncmp(rest + brace, name, length) != 0 ||
			    (brace && rest[1 + length] != '}'))
				continue;
			fputs(words[i][1], stream);
			text = rest + length + 2 * brace;
			done = true;
		}
		if (!done)
			fputc(*text++, stream);
	}
	if (stream)
		fclose(stream);
	free(real);
	return out;
}

static struct object *try_list(struct object *o, const char *list, const char *separators,
			       const char *owner, const char *name)
{
	char *expanded = list ? expand(list, owner) : NULL, *rest = expanded, *directory;
	struct object *found = NULL;

	while (!found && !o->odd && rest && (directory = strsep(&rest, separators)))
		found = try_directory(o, directory, name);
	free(expanded);
	return found;
}

/* ---- the cache ---------------------------------------------------------- */

/* The format of /etc/ld.so.cache since glibc 2.2. */
struct cache_header {
	char magic[20];			/* "glibc-ld.so.cache1.1" */
	uint32_t entries, strings_size;
	uint32_t unused[5];
};

struct cache_entry {
	int32_t flags;
	uint32_t name, path;		/* offsets in the file */
	uint32_t os_version;
	uint64_t hwcap;
};

static const char *cache_string(const char *cache, size_t size, uint32_t offset)
{
	if (offset >= size || !memchr(cache + offset, '\0', size - offset))
		return NULL;
	return cache + offset;
}

static struct object *search_cache(struct object *o, const char *cache, size_t size,
				   const char *name)
{
	struct cache_header header;
	struct cache_entry entry;
	struct object *found = NULL;

	if (size < sizeof(header))
		return NULL;
	memcpy(&header, cache, sizeof(header));
	if (memcmp(header.magic, "glibc-ld.so.cache1.1", sizeof(header.magic)) != 0 ||
	    header.entries > (size - sizeof(header)) / sizeof(entry))
		return NULL;
	for (uint32_t i = 0; i < header.entries && !found; i++) {
		const char *text;

		memcpy(&entry, cache + sizeof(header) + i * sizeof(entry), sizeof(entry));
		/* Skip variants for newer CPUs (hwcap): they need the same libraries as the plain one. */
		if (entry.flags != CACHE_FLAGS || entry.hwcap != 0)
			continue;
		text = cache_string(cache, size, entry.name);
		if (!text || strcmp(text, name) != 0)
			continue;
		text = cache_string(cache, size, entry.path);
		if (text)
			found = try_file(o, text);
	}
	return found;
}

static struct object *try_cache(struct object *o, const char *name)
{
	int fd = file_open("/etc/ld.so.cache");
	struct object *found = NULL;
	struct stat status;
	void *cache;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && status.st_size > 0) {
		cache = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (cache != MAP_FAILED) {
			found = search_cache(o, cache, (size_t)status.st_size, name);
			munmap(cache, (size_t)status.st_size);
		}
	}
	close(fd);
	return found;
}

/* ---- the search --------------------------------------------------------- */

static const char defaults[] = "/lib/" MULTIARCH ":/usr/lib/" MULTIARCH
			       ":/lib64:/usr/lib64:/lib:/usr/lib";

struct object *library_open(struct object *o, const char *name)
{
	struct object *found = NULL;
	char *path;

	free(o->odd);
	o->odd = NULL;
	if (strchr(name, '/')) {
		path = expand(name, o->path);
		found = path ? try_file(o, path) : NULL;
		free(path);
		return found;
	}
	/* DT_RUNPATH disables DT_RPATH of the object itself and of the objects that need it. */
	for (struct object *by = o; by && !found && !o->runpath; by = by->needed_by)
		if (!by->runpath)
			found = try_list(o, by->rpath, ":", by->path, name);
	if (!found && !o->odd)
		found = try_list(o, getenv("LD_LIBRARY_PATH"), ":;", o->path, name);
	if (!found && !o->odd)
		found = try_list(o, o->runpath, ":", o->path, name);
	if (!found && !o->odd)
		found = try_cache(o, name);
	if (!found && !o->odd)
		found = try_list(o, defaults, ":", o->path, name);
	return found;
}

static bool known(const struct libraries *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct object *o = l->objects[i];
		const char *slash = strrchr(o->path, '/');

		if ((o->soname && strcmp(o->soname, name) == 0) || strcmp(o->path, name) == 0 ||
		    strcmp(slash ? slash + 1 : o->path, name) == 0)
			return true;
	}
	for (size_t i = 0; i < l->missing_count; i++)
		if (strcmp(l->missing[i], name) == 0)
			return true;
	return false;
}

static void miss(struct libraries *l, const char *name, const char *odd)
{
	char **more = realloc(l->missing, (l->missing_count + 1) * sizeof(*more));

	if (odd && !l->odd)
		l->odd = strdup(odd);
	if (!more)
		return;
	l->missing = more;
	more[l->missing_count] = strdup(name);
	if (more[l->missing_count])
		l->missing_count++;
}

/* ---- what is loaded at run time ----------------------------------------- */

/* Is the directory (a path without symbolic links) one that the loader searches for all programs? */
static bool is_default(const char *directory)
{
	size_t length;

	for (const char *next = defaults; *next; next += length + (next[length] == ':')) {
		length = strcspn(next, ":");
		if (strlen(directory) == length && strncmp(directory, next, length) == 0)
			return true;
	}
	return false;
}

/* The directory of o, as a path without symbolic links; the caller frees it. */
static char *directory_of(const struct object *o)
{
	char *real = realpath(o->path, NULL), *slash = real ? strrchr(real, '/') : NULL;

	if (slash)
		*slash = '\0';
	return real;
}

bool library_is_own(const struct object *o)
{
	char *directory = o->needed_by ? directory_of(o) : NULL;
	bool own = !directory || !is_default(directory);

	free(directory);
	return own;
}

/* Look for name in directory and, unless that is one of the loader's own, in its direct subdirectories. */
static struct object *try_below(struct object *o, const char *directory, const char *name)
{
	struct object *found = try_directory(o, directory, name);
	DIR *stream = found || is_default(directory) ? NULL : opendir(directory);
	struct dirent *entry;
	char *path;

	while (stream && !found && (entry = readdir(stream))) {
		if (*entry->d_name == '.' || strchr(entry->d_name, '.') ||
		    asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
			continue;
		found = try_directory(o, path, name);
		free(path);
	}
	if (stream)
		closedir(stream);
	return found;
}

/* Look for name in the directory D of o and in D/../lib, and in their direct subdirectories. */
static struct object *try_next_to(struct object *o, const char *name)
{
	char *directory = directory_of(o), *beside = NULL, *real = NULL;
	struct object *found = directory ? try_below(o, directory, name) : NULL;

	if (!found && directory && asprintf(&beside, "%s/../lib", directory) >= 0) {
		real = realpath(beside, NULL);
		free(beside);
		found = real ? try_below(o, real, name) : NULL;
	}
	free(real);
	free(directory);
	return found;
}

/* Does text end like the name of a library: in .so, or in .so and a version (.so.1.2)? */
static bool is_library_name(const char *text)
{
	const char *end = text + strlen(text);

	while (end > text && (isdigit((unsigned char)end[-1]) || end[-1] == '.'))
		end--;
	return end - text > 3 && strncmp(end - 3, ".so", 3) == 0 && end[-4] != '/' &&
	       strpbrk(text, " ,;:=*?()<>\"'") == NULL;
}

struct named {
	struct libraries *libraries;
	struct object *by;
};

/*
 * Add the library that text names, if it is found. text is a string of an object that calls
 * dlopen(). A program may put a directory before the string at run time, so if the loader would not
 * find it as it is, the library is searched near the object by the last part of its name.
 */
static void look_at_name(const char *text, void *arg)
{
	const struct named *n = arg;
	struct libraries *l = n->libraries;
	const char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text;
	struct object *found = NULL;

	if (!is_library_name(text) || strchr(name, '%') || known(l, name) ||
	    l->count >= OBJECTS_MAX)
		return;
	if (!strchr(text, '%') && (!slash || *text == '/'))
		found = library_open(n->by, text);
	if (!found)
		found = try_next_to(n->by, name);
	if (found)
		l->objects[l->count++] = found;
}

static void look_for_dlopen(const char *name, void *arg)
{
	if (strcmp(name, "dlopen") == 0 || strcmp(name, "dlmopen") == 0)
		*(bool *)arg = true;
}

static void find_named(struct libraries *l)
{
	for (size_t i = 0; i < l->needed_count; i++) {
		struct named named = { l, l->objects[i] };
		bool loads = false;

		if (!library_is_own(l->objects[i]))
			continue;
		object_each_import(l->objects[i], look_for_dlopen, &loads);
		if (loads)
			object_each_string(l->objects[i], look_at_name, &named);
	}
}

static void find_needed(struct libraries *l)
{
	for (size_t i = 0; i < l->count; i++) {
		struct object *o = l->objects[i];

		for (size_t n = 0; n < o->needed_count && l->count < OBJECTS_MAX; n++) {
			struct object *found;

			if (l->missing_count >= OBJECTS_MAX)
				return;
			if (known(l, o->needed[n]))
				continue;
			found = library_open(o, o->needed[n]);
			if (found)
				l->objects[l->count++] = found;
			else
				miss(l, o->needed[n], o->odd);
		}
	}
}

void libraries_find(struct object *program, struct libraries *ret)
{
	*ret = (struct libraries){ .objects = calloc(OBJECTS_MAX, sizeof(*ret->objects)) };
	if (!ret->objects)
		return;
	ret->objects[ret->count++] = program;
	find_needed(ret);
	ret->needed_count = ret->count;
	find_named(ret);
}

void libraries_free(struct libraries *l)
{
	for (size_t i = 1; i < l->count; i++)
		object_close(l->objects[i]);
	for (size_t i = 0; i < l->missing_count; i++)
		free(l->missing[i]);
	free(l->objects);
	free(l->missing);
	free(l->odd);
}

bool library_is_libc(const struct object *o)
{
	static const char *const names[] = { "libc.so.6", "libpthread.so.0", "librt.so.1",
					     "libdl.so.2", "libanl.so.1", "libresolv.so.2" };

	if (!o->soname)
		return false;
	if (strncmp(o->soname, "ld-linux", 8) == 0)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(o->soname, names[i]) == 0)
			return true;
	return false;
}
