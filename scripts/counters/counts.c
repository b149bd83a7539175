/* SPDX-License-Identifier: MIT */
#include "counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scripts/process/say.h"
#include "scripts/process/tasks.h"
#include "scripts/process/text.h"

const char *const outcome_names[FZ_OUTCOMES] = {
	[FZ_OUTCOME_PARKED] = "parked", [FZ_OUTCOME_ANNOUNCED] = "announced",
	[FZ_OUTCOME_LATE] = "late", [FZ_OUTCOME_WIRED] = "wired",
};

void counts_open(struct counts_source *s, const char *word)
{
	s->file = NULL;
	if (word[strspn(word, "0123456789")])
		s->file = word;
	else
		target_open(&s->target, word, false);
}

/* ---- the bytes ---------------------------------------------------------------------- */

/* Read the first size bytes of the counters, from the file or the process. False if that fails. */
static bool read_bytes(const struct counts_source *s, int fd, uint64_t base, void *buffer, size_t size)
{
	ssize_t n;

	if (!s->file)
		return target_read(&s->target, base, buffer, size);
	n = pread(fd, buffer, size, 0);
	return n == (ssize_t)size;
}

/* whole: the version could be read, too. */
static void judge(const struct counts_source *s, const struct fz_counters *head, bool whole)
{
	const char *name = s->file ? s->file : s->target.source.name;

	if (memcmp(head->magic, FZ_COUNTERS_MAGIC, sizeof(head->magic)) != 0)
		die(EXIT_NOT_FIBERIZED, "%s: no counters of libfiberize.so", name);
	if (whole && head->version != FZ_COUNTERS_VERSION)
		die(EXIT_VERSION, "%s: counters in version %u, and this tool reads %d: use the fiberize that "
		    "came with that libfiberize.so", name, head->version, FZ_COUNTERS_VERSION);
}

/* Is the library dormant? Without --stats the counters have no contents before the first thread is made. */
static bool are_dormant(const struct counts_source *s, const struct fz_counters *head)
{
	return !s->file && (s->target.is_loading || !head->version);
}

/* Read and check all counters. The caller frees them. NULL if the process has ended. */
static struct fz_call_counters *read_all(const struct counts_source *s)
{
	const bool is_there = s->file || !s->target.is_loading;
	uint64_t base = s->file || !is_there ? 0 : target_root(&s->target, ENTRY_counters);
	const int fd = s->file ? open(s->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	struct fz_call_counters *all = calloc(1, sizeof(*all));
	const size_t head = sizeof(all->counted);
	size_t size = offsetof(struct fz_call_counters, block);
	char why[DORMANT_MOST];
	bool good;

	if (!all)
		die(EXIT_OTHER, "no memory");
	if (s->file && fd < 0)
		die(EXIT_OTHER, "%s: %s; a process id or a file of --stats is needed", s->file,
		    strerror(errno));
	/* Read the first fields alone: magic and version tell whether the rest can be used. */
	good = is_there && read_bytes(s, fd, base, all, offsetof(struct fz_counters, size));
	/* If the process has ended or executed another program, the bytes mean nothing. */
	good = good && (s->file || target_runs(&s->target));
	if (are_dormant(s, &all->counted) && target_dormant(&s->target, why) && target_runs(&s->target))
		die(0, "%s: %s, so the library is dormant", s->target.source.name, why);
	if (good || s->file)
		judge(s, &all->counted, good);
	good = good && read_bytes(s, fd, base, all, head);
	if (good && all->counted.calls) {
		uint32_t used = all->counted.blocks_used;

		size += (used < FZ_BLOCKS_MOST ? used : FZ_BLOCKS_MOST) * sizeof(*all->block);
		good = read_bytes(s, fd, base, all, size);
	}
	if (fd >= 0)
		close(fd);
	good = good && (s->file || target_runs(&s->target));
	if (!good && s->file)
		die(EXIT_NOT_FIBERIZED, "%s: the file is cut short", s->file);
	if (good)
		return all;
	free(all);
	return NULL;
}

/* ---- from bytes to counts ----------------------------------------------------------- */

static void add_times(struct fz_times *to, const struct fz_times *from)
{
	for (size_t i = 0; i < FZ_TIME_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
	to->sum += from->sum;
}

static void add_block(struct counts *c, const struct fz_block *b)
{
	for (size_t i = 0; i < FZ_COUNTED_WAITS; i++)
		c->waits[i].count += b->waits[i];
	add_times(&c->to_run, &b->to_run);
	add_times(&c->to_complete, &b->to_complete);
}

static struct fz_call_counts sum_of(const struct fz_call_counters *all, uint32_t blocks, size_t row)
{
	struct fz_call_counts sum = { 0 };

	for (uint32_t i = 0; i < blocks; i++) {
		const struct fz_call_counts *one = &all->block[i].calls[row];

		sum.by_fibers += one->by_fibers;
		sum.passed += one->passed;
		for (size_t n = 0; n < FZ_OUTCOMES; n++)
			sum.outcome[n] += one->outcome[n];
	}
	return sum;
}

/* Make a text from another process safe to print. It may lack its terminating zero. */
static void end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	text_clean(text);
}

static void take_calls(struct counts *c, const struct fz_call_counters *all)
{
	uint32_t blocks = all->counted.blocks_used, rows = all->counted.calls;

	blocks = blocks < FZ_BLOCKS_MOST ? blocks : FZ_BLOCKS_MOST;
	rows = rows < FZ_COUNTED_CALLS ? rows : FZ_COUNTED_CALLS;
	for (uint32_t i = 0; i < blocks; i++)
		add_block(c, &all->block[i]);
	for (size_t i = 0; i < FZ_COUNTED_WAITS; i++) {
		memcpy(c->waits[i].name, all->waits[i], sizeof(all->waits[i]));
		end_text(c->waits[i].name, sizeof(c->waits[i].name));
	}
	/* Row 0 stands for no call. */
	for (size_t i = 1; i < rows; i++) {
		struct call_counts *call = &c->calls[c->call_count];
		uint64_t became = 0;

		call->counts = sum_of(all, blocks, i);
		if (!call->counts.by_fibers && !call->counts.passed)
			continue;
		memcpy(call->name, all->calls[i].name, sizeof(all->calls[i].name));
		memcpy(call->rung, all->calls[i].rung, sizeof(all->calls[i].rung));
		end_text(call->name, sizeof(call->name));
		end_text(call->rung, sizeof(call->rung));
		for (size_t n = 0; n < FZ_OUTCOMES; n++)
			became += call->counts.outcome[n];
		/* The counters change while they are read, so the difference may be negative. */
		call->at_once = call->counts.by_fibers > became ? call->counts.by_fibers - became : 0;
		c->call_count++;
	}
}

static void read_version(const struct counts_source *s, struct counts *c)
{
	size_t size;

	if (s->file)
		return;
	size = s->target.entries[ENTRY_version].size;
	target_read(&s->target, target_value(&s->target, ENTRY_version), c->version,
		    size < sizeof(c->version) ? size : sizeof(c->version) - 1);
	end_text(c->version, sizeof(c->version));
}

static uint64_t resident_bytes(const struct counts_source *s)
{
	unsigned long pages = 0;
	char path[64];
	FILE *file;

	if (s->file)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", target_reader(&s->target));
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*s %lu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool counts_read(const struct counts_source *s, struct counts *c)
{
	struct fz_call_counters *all = read_all(s);
	uint64_t gone;

	if (!all)
		return false;
	memset(c, 0, sizeof(*c));
	c->head = all->counted;
	/* Only a process with --stats says its name itself. */
	if (!s->file && !*c->head.program)
		task_line(s->target.source.pid, s->target.source.pid, "comm", c->head.program, sizeof(c->head.program));
	end_text(c->head.program, sizeof(c->head.program));
	end_text(c->head.backend, sizeof(c->head.backend));
	for (size_t i = 0; i < FZ_COUNTED_REASONS; i++)
		end_text(c->head.wired[i].why, sizeof(c->head.wired[i].why));
	for (size_t p = 0; p <= FZ_PROCESSORS_MOST; p++)
		for (size_t i = 0; i < FZ_PROCESSOR_COUNTERS; i++)
			c->sums[i] += c->head.processor[p].count[i];
	gone = c->sums[FZ_COUNT_fibers_ended] + c->head.total[FZ_TOTAL_fibers_wired];
	c->fibers = c->sums[FZ_COUNT_fibers_created] + c->sums[FZ_COUNT_fibers_recycled];
	c->fibers = c->fibers > gone ? c->fibers - gone : 0;
	read_version(s, c);
	c->resident = resident_bytes(s);
	c->has_calls = all->counted.calls != 0;
	if (c->has_calls)
		take_calls(c, all);
	free(all);
	return true;
}
