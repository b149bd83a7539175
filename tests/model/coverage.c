/* SPDX-License-Identifier: MIT */
/*
 * tests/model/coverage.c - which edges between basic blocks have the runs taken?  Only in the explorer of "make model-coverage",
 * whose runtime has a hook at each edge (clang's -fsanitize-coverage).  Scenarios run in processes of their own, which share the
 * marks.  At its end it writes the code addresses of all edges to the file $MODEL_EDGES, a line each: 1 or 0, and the address.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct edge { uintptr_t pc, flags; };

void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
void __sanitizer_cov_pcs_init(const struct edge *start, const struct edge *stop);

static unsigned char *taken;
static const struct edge *first, *end;

static void write_edges(void)
{
	const char *path = getenv("MODEL_EDGES");
	FILE *file = path ? fopen(path, "w") : NULL;

	for (const struct edge *e = first; file && e != end; e++)
		fprintf(file, "%d %#lx\n", taken[e - first], (unsigned long)e->pc);
	if (file)
		fclose(file);
}

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
	if (taken)
		return;
	taken = mmap(NULL, (size_t)(stop - start), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (taken == MAP_FAILED)
		abort();
	for (uint32_t i = 0; start + i != stop; i++)
		start[i] = i;
	atexit(write_edges);
}

void __sanitizer_cov_pcs_init(const struct edge *start, const struct edge *stop)
{
	first = start;
	end = stop;
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
	taken[*guard] = 1;
}
