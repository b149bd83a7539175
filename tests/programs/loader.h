/* SPDX-License-Identifier: MIT */
#ifndef LOADER_H
#define LOADER_H

/* tests/programs/loader.h - what the loader tells debuggers of itself. */

#include <link.h>
#include <stddef.h>

/* The loader's own record; _r_debug would be the program's copy. */
static struct r_debug *loader(void)
{
	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_DEBUG)
			return (struct r_debug *)d->d_un.d_ptr;
	return NULL;
}

#endif
