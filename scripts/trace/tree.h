/* SPDX-License-Identifier: MIT */
#ifndef TRACE_TREE_H
#define TRACE_TREE_H

/* scripts/trace/tree.h - libc's trees, tsearch(3), whose header has a struct entry of its own. */

#define entry search_entry
#include <search.h>
#undef entry

#endif
