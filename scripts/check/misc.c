/* SPDX-License-Identifier: MIT */
#include "misc.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

struct entry {
	char *interpreter;		/* all strings point into the text of the entry */
	const char *flags, *extension, *magic, *mask;
	unsigned long offset;
	bool enabled;
};

/* The rest of line if it begins with keyword and a blank, else NULL. */
static char *behind(char *line, const char *keyword)
{
	size_t length = strlen(keyword);

	return strncmp(line, keyword, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

static void parse(char *text, struct entry *ret)
{
	char *line, *value;

	memset(ret, 0, sizeof(*ret));
	while ((line = strsep(&text, "\n"))) {
		if (strcmp(line, "enabled") == 0)
			ret->enabled = true;
		else if ((value = behind(line, "interpreter")))
			ret->interpreter = value;
		else if ((value = behind(line, "flags:")))
			ret->flags = value;
		else if ((value = behind(line, "extension")))
			ret->extension = value;
		else if ((value = behind(line, "offset")))
			ret->offset = strtoul(value, NULL, 10);
		else if ((value = behind(line, "magic")))
			ret->magic = value;
		else if ((value = behind(line, "mask")))
			ret->mask = value;
	}
}

static bool hex_byte(const char **text, unsigned *ret)
{
	int length = 0;

	if (!**text || sscanf(*text, "%2x%n", ret, &length) != 1 || length != 2)
		return false;
	*text += 2;
	return true;
}

static bool matches(const struct entry *e, const char *path, const char *start)
{
	const char *magic = e->magic, *mask = e->mask, *dot = strrchr(path, '.');
	unsigned wanted, bits = 0xff;
	size_t i = e->offset;

	if (e->extension)		/* the kernel shows it with its dot */
		return dot && strcmp(dot, e->extension) == 0;
	if (!magic || !start)
		return false;
	while (hex_byte(&magic, &wanted)) {
		if ((mask && !hex_byte(&mask, &bits)) || i >= START_SIZE ||
		    (((unsigned char)start[i++] ^ wanted) & bits))
			return false;
	}
	return !*magic;
}

/* Read a file in a folder as text; size includes the terminating zero. */
static bool read_text(int folder, const char *name, char *ret, size_t size)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t n = 0;

	if (fd < 0)
		return false;
	while (length < size - 1 && (n = read(fd, ret + length, size - 1 - length)) > 0)
		length += (size_t)n;
	close(fd);
	ret[length] = '\0';
	return n == 0;
}

/* Open the folder of binfmt_misc; a descriptor, or -1 if it is not mounted. */
static int open_folder(void)
{
	struct statfs status;
	/* Opening without O_PATH would make systemd mount the folder. */
	int place = open("/proc/sys/fs/binfmt_misc", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

	if (place >= 0 && fstatfs(place, &status) == 0 && status.f_type == BINFMTFS_MAGIC)
		fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place >= 0)
		close(place);
	return fd;
}

bool misc_find(const char *path, const char *start, struct misc *ret)
{
	int fd = open_folder();
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	char text[8192];		/* enough for an entry: the kernel registers at most 1920 bytes */
	bool found = false;
	struct dirent *name;
	struct entry e;

	if (!folder)
		return false;
	if (!read_text(fd, "status", text, sizeof(text)) || strcmp(text, "enabled\n") != 0) {
		closedir(folder);
		return false;
	}
	/*
	 * The kernel searches the entry registered last first, and readdir() returns the entries
	 * in that order, too.
	 */
	while (!found && (name = readdir(folder))) {
		if (name->d_type != DT_REG || strcmp(name->d_name, "register") == 0 ||
		    strcmp(name->d_name, "status") == 0 ||
		    !read_text(fd, name->d_name, text, sizeof(text)))
			continue;
		parse(text, &e);
		found = e.enabled && e.interpreter && matches(&e, path, start);
	}
	if (found) {
		ret->interpreter = strdup(e.interpreter);
		ret->credentials = e.flags && strchr(e.flags, 'C');
		ret->fixed = e.flags && strchr(e.flags, 'F');
		found = ret->interpreter != NULL;
	}
	closedir(folder);
	return found;
}
