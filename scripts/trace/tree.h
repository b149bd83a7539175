/* SPDX-License-Identifier: MIT */
#ifndef TRACE_TREE_H
#define TRACE_TREE_H

/*
 * scripts/trace/tree.h - includes the header of tsearch(3), and renames its "struct entry", whose name is
 * taken here.
 */

#define entry search_entry
#include <search.h>
#undef entry

#endif
