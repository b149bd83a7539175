/* SPDX-License-Identifier: MIT */
#include "modules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debuginfo.h"
#include "object.h"
#include "program.h"
#include "text.h"

/* libdwfl's callbacks have no argument for the process. */
static const struct source *source;

/* A limit on what is copied of all objects of the process, because the headers in its memory may promise any size. */
enum { COPIED_MOST = 256 << 20 };
static uint64_t copy_room;

/* ---- the file ------------------------------------------------------------------------- */

static bool find_begin(void *arg, const struct mapping *m)
{
	struct mapping *wanted = arg;

	if (m->begin != wanted->begin)
		return true;
	*wanted = *m;
	return false;
}

/*
 * Is fd the mapped file?  Some file systems (btrfs, overlayfs) show another device in /proc/PID/maps than
 * fstat() does, so the build id comes first.
 */
static bool is_mapped_file(int fd, const struct object *o, const struct mapping *m)
{
	const enum object_match match = object_match(o, fd);
	struct stat st;

	if (match != OBJECT_UNKNOWN)
		return match == OBJECT_IS_SAME;
	return fstat(fd, &st) == 0 && st.st_ino == m->inode && st.st_dev == m->device;
}

/* The descriptor of the file in which the object is, or -1. */
static int open_object(const char *name, const struct object *o)
{
	const int reader = source->program->reader;
	struct mapping m = { .begin = o->base };
	char *path;
	int fd;

	source->ops->each_mapping(source, find_begin, &m);
	if (!m.end)
		return -1;
	for (int way = 0; way < 3; way++) {
		const int size = way == 0 ? asprintf(&path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, reader,
						     m.begin, m.end) :
				 way == 1 ? asprintf(&path, "/proc/%d/root%s", reader, name) :
					    asprintf(&path, "%s", name);

		if (size < 0)
			return -1;
		fd = source_open_file(path);
		free(path);
		if (fd >= 0 && (way == 0 || is_mapped_file(fd, o, &m)))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

/* ---- libdwfl -------------------------------------------------------------------------- */

/* Of a module whose file cannot be had, *userdata becomes the text that says so. */
static char only_exported[] = "its file is gone, or another one by now, or cannot be opened: "
			      "only exported functions of it have names";
static char no_names[] = "its file is gone, or another one by now, or cannot be opened: "
			 "functions of it have no names, and stacks may end there";

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file_name,
		    Elf **elf)
{
	/* The vDSO is in no file. */
	const bool has_file = *name == '/';
	struct object object;
	bool is_cut;
	int fd = -1;

	(void)module;
	(void)elf;
	object_find(&object, source, base);
	if (has_file)
		fd = open_object(name, &object);
	/* Data is mapped, too, and code that the program has made: no file is missing then. */
	if (fd < 0 && object.in_memory) {
		fd = object_copy(&object, PT_LOAD, &copy_room, &is_cut);
		if (has_file)
			*userdata = fd < 0 ? no_names : only_exported;
	}
	*file_name = fd < 0 ? NULL : strdup(name);
	return fd;
}

/* The same for a core file, in which an object is only as far as it was dumped. */
static int find_elf_of_core(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file_name,
			    Elf **elf)
{
	struct object object;
	unsigned char id[64];
	size_t length;
	bool is_cut;
	int fd = *name == '/' ? source->ops->open_mapped(source, name) : -1;

	if (fd >= 0) {
		*file_name = strdup(name);
		return fd;
	}
	object_find(&object, source, base);
	length = object_build_id(&object, id, sizeof(id));
	if (length && dwfl_module_report_build_id(module, id, length, 0) == 0)
		fd = dwfl_build_id_find_elf(module, userdata, name, base, file_name, elf);
	if (fd >= 0 || *elf)
		return fd;
	fd = object_copy(&object, PT_LOAD, &copy_room, &is_cut);
	if (fd >= 0 && is_cut) {
		close(fd);
		fd = -1;
	}
	if (*name == '/')
		*userdata = fd < 0 ? no_names : only_exported;
	*file_name = NULL;
	return fd;
}

/* A part of the address space that is mapped from one file, and that is one object, or none. */
struct module {
	Dwfl *dwfl;
	char *path;			/* NULL: there is none yet */
	struct mapping first;
	uint64_t end;
	bool is_read;			/* object is */
	struct object object;
	bool has_failed;
};

/*
 * Is this mapping of the module's file of the same object?  A program may have mapped the file once more, to read it, or
 * loaded it twice.  If the object's headers are unknown, it goes on until another one begins.
 */
static bool goes_on(struct module *module, const struct mapping *m)
{
	struct object other;

	/* Most data has one mapping, so its headers are never read. */
	if (!module->is_read && !module->first.offset)
		object_find(&module->object, source, module->first.begin);
	module->is_read = true;
	if (module->object.in_memory)
		return object_has(&module->object, m);
	if (m->offset)
		return true;
	object_find(&other, source, m->begin);
	return !other.in_memory;
}

static void end_module(struct module *module)
{
	if (module->path && !dwfl_report_module(module->dwfl, module->path, module->first.begin, module->end))
		module->has_failed = true;
	free(module->path);
	module->path = NULL;
}

static bool take_mapping(void *arg, const struct mapping *m)
{
	struct module *module = arg;

	if (!m->path)
		return true;
	if (module->path && strcmp(module->path, m->path) == 0 && module->first.device == m->device &&
	    module->first.inode == m->inode && goes_on(module, m)) {
		module->end = m->end;
		return true;
	}
	end_module(module);
	module->path = strdup(m->path);
	module->first = *m;
	module->first.path = NULL;
	module->end = m->end;
	module->is_read = module->object.in_memory = false;
	if (!module->path)
		module->has_failed = true;
	return !module->has_failed;
}

/*
 * Neither dwfl_linux_proc_report() nor dwfl_core_file_report() will do: they take all mappings of a file for one object,
 * and the latter opens each name that the core file has, a FIFO too, and uses any file without a build id.
 */
const char *modules_report(Dwfl *dwfl)
{
	static struct module module;
	const char *why;

	module = (struct module){ .dwfl = dwfl };
	if (!source->ops->each_mapping(source, take_mapping, &module))
		return strerror(errno);
	end_module(&module);
	if (!module.has_failed && dwfl_report_end(dwfl, NULL, NULL) == 0)
		return NULL;
	why = dwfl_errmsg(-1);
	return why ? why : "no memory";
}

const char *modules_open(const struct source *s, Dwfl **ret_dwfl)
{
	static char *debug_path;
	static const Dwfl_Callbacks live_callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = debuginfo_find,
		.debuginfo_path = &debug_path,
	};
	static const Dwfl_Callbacks core_callbacks = {
		.find_elf = find_elf_of_core,
		.find_debuginfo = debuginfo_find,
		.debuginfo_path = &debug_path,
	};
	const char *why;
	Dwfl *dwfl;

	source = s;
	copy_room = COPIED_MOST;
	dwfl = dwfl_begin(s->core ? &core_callbacks : &live_callbacks);
	why = dwfl ? modules_report(dwfl) : dwfl_errmsg(-1);
	if (why)
		dwfl_end(dwfl);
	else
		*ret_dwfl = dwfl;
	return why;
}

struct saying {
	FILE *out;
	const char *prefix;
};

static int say_missing(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, void *arg)
{
	const struct saying *saying = arg;
	char *readable;

	(void)module;
	(void)base;
	if (!*userdata)
		return DWARF_CB_OK;
	readable = strdup(name);
	if (!readable)
		return DWARF_CB_OK;
	text_clean(readable);
	fprintf(saying->out, "%s%s: %s\n", saying->prefix, readable, (const char *)*userdata);
	free(readable);
	return DWARF_CB_OK;
}

void modules_say_missing(Dwfl *dwfl, FILE *out, const char *prefix)
{
	struct saying saying = { out, prefix };

	dwfl_getmodules(dwfl, say_missing, &saying, 0);
}
