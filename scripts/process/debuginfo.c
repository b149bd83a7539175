/* SPDX-License-Identifier: MIT */
#include "debuginfo.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source.h"

/*
 * The CRC of .gnu_debuglink is that of zlib: the polynomial 0x04c11db7, bits reversed.  No huge file is read: it may
 * have holes, and be of any size.
 */
static bool has_crc(int fd, uint32_t wanted)
{
	enum { GIB_MOST = 4 };
	static uint32_t table[256];
	static uint8_t buffer[64 * 1024];
	uint32_t crc = UINT32_MAX;
	struct stat st;
	ssize_t got;
	off_t at = 0;

	if (fstat(fd, &st) != 0 || st.st_size >> 30 >= GIB_MOST)
		return false;
	for (uint32_t i = 0; !table[255] && i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
	}
	for (; (got = pread(fd, buffer, sizeof(buffer), at)) > 0; at += got)
		for (ssize_t i = 0; i < got; i++)
			crc = table[(crc ^ buffer[i]) & 255] ^ crc >> 8;
	return got == 0 && ~crc == wanted;
}

int debuginfo_find(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file,
		   const char *link, GElf_Word crc, char **ret_file)
{
	/* Where gdb looks: beside the object, in .debug there, and below the directory for debug information. */
	static const char *const places[][2] = { { "", "" }, { "", "/.debug" }, { "/usr/lib/debug", "" } };
	const char *slash = file ? strrchr(file, '/') : NULL;
	int fd;

	/* Without the names, it looks for the build id only. */
	fd = dwfl_standard_find_debuginfo(module, userdata, name, base, NULL, NULL, 0, ret_file);
	if (fd >= 0 || !slash || *file != '/' || !link || strchr(link, '/'))
		return fd;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (asprintf(ret_file, "%s%.*s%s/%s", places[i][0], (int)(slash - file), file, places[i][1], link) < 0) {
			*ret_file = NULL;
			return -1;
		}
		fd = source_open_file(*ret_file);
		if (fd >= 0 && has_crc(fd, crc))
			return fd;
		if (fd >= 0)
			close(fd);
		free(*ret_file);
		*ret_file = NULL;
	}
	return -1;
}
