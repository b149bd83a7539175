/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_TREE_H
#define INSPECT_TREE_H

/* scripts/inspect/tree.h - libc's trees, tsearch(3), whose header has a struct entry of its own. */

#define entry search_entry
#include <search.h>
#undef entry

#endif
