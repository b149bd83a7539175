/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <curses.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scripts/inspect/bt.h"
#include "scripts/process/say.h"
#include "terminal.h"

enum { ESCAPE = 27, ONE_SCREEN = 8 };

static const char help[] =
	"q         quit; from this text or a stack: back\n"
	"o         overview: the first rows of each table\n"
	"f c w l p one table: fibers, calls, waits, late takeovers, processors\n"
	"TAB       the next table; shift-TAB: the one before\n"
	"s S       sort the table by its next key, or by the one before\n"
	"arrows    move the cursor, or j and k; left and right show the rest of long lines\n"
	"PgUp PgDn a page back or forth, or b and n\n"
	"Home End  the first row or the last one, or g and G\n"
	"Enter     the stack of the fiber at the cursor, as fiberize bt prints it\n"
	"space     pause, and go on; while it pauses, the process is not looked at\n"
	"r         take a picture now; of a stack: read it again\n"
	"+ -       double the interval, or halve it\n"
	"Esc       back to the overview\n"
	"h ?       this text\n"
	"\n"
	"CPU%      100: one CPU; for a fiber an estimate, within some ms, until a thread asks for its CPU time\n"
	"SWITCH/s  how often the fiber has waited; of a native thread, how often it was switched to\n"
	"BUSY%     by the CPU time of the kernel threads that have the processor\n"
	"DELAY%    these kernel threads were runnable, but waited for a CPU; IDLE%: the rest\n"
	"LIBRARY%  about 100 samples a second: of those that find the processor at work, those in libfiberize.so\n"
	"CALL%     of all samples, those in a call that may wait\n"
	"QUEUED    fibers that wait for the processor; MEAN: over all samples\n"
	"calls: what became of them, per second; counted if the process runs with --stats\n"
	"late: calls during which the processor was taken; LATE%: of all calls by fibers\n";

struct table *screen_table(const struct screen *s)
{
	return &s->tables[s->view == VIEW_TABLE ? s->table : TABLE_FIBERS];
}

/* ---- texts ---------------------------------------------------------------------------- */

static void free_text(struct text *text)
{
	free(text->bytes);
	free(text->lines);
	*text = (struct text){ .tid = 0 };
}

/* Show the text in bytes, which is then owned by the screen and freed later. */
static void show_text(struct screen *s, const char *title, char *bytes, int tid)
{
	struct text text = { .bytes = bytes, .tid = tid };
	char *rest = bytes, *line;
	size_t lines = 1;

	for (const char *c = bytes; *c; c++)
		lines += *c == '\n';
	snprintf(text.title, sizeof(text.title), "%s", title);
	text.lines = calloc(lines, sizeof(*text.lines));
	if (!text.lines)
		die(EXIT_OTHER, "no memory");
	while ((line = strsep(&rest, "\n")))
		if (rest || *line)
			text.lines[text.count++] = line;
	free_text(&s->text);
	s->text = text;
	if (s->view != VIEW_TEXT)
		s->back = s->view;
	s->view = VIEW_TEXT;
	s->text_first = s->shift = 0;
}

static void show_help(struct screen *s)
{
	char *bytes = strdup(help);

	if (!bytes)
		die(EXIT_OTHER, "no memory");
	show_text(s, "fiberize top: keys", bytes, 0);
}

static void show_stack(struct screen *s, int tid)
{
	char *bytes = NULL, title[64], at[16] = "";
	const time_t now = time(NULL);
	size_t size = 0;
	struct tm tm;
	FILE *out;
	const char *why;

	if (s->watch->end)
		return;
	out = open_memstream(&bytes, &size);
	if (!out)
		die(EXIT_OTHER, "no memory");
	why = bt_thread(s->watch->target, tid, out);
	if (fclose(out) != 0)
		die(EXIT_OTHER, "no memory");
	if (!why) {
		if (localtime_r(&now, &tm))
			strftime(at, sizeof(at), "%T", &tm);
		snprintf(title, sizeof(title), "stack of thread %d at %s", tid, at);
		show_text(s, title, bytes, tid);
		return;
	}
	free(bytes);
	snprintf(s->message, sizeof(s->message), "thread %d: %s", tid, why);
}

static void leave_text(struct screen *s)
{
	s->view = s->back;
	s->shift = 0;
}

/* ---- the cursor ----------------------------------------------------------------------- */

static int tid_at_cursor(const struct screen *s)
{
	const struct table *table = screen_table(s);

	return table->kind == table_kinds[TABLE_FIBERS] && s->cursor < table->count ?
		       s->watch->now->all.list[table->order[s->cursor].row].tid : 0;
}

/* Put the cursor on the row of the thread s->follow. If the thread has ended, the cursor stays where it is. */
static void follow(struct screen *s)
{
	const struct table *table = screen_table(s);

	if (!s->follow || table->kind != table_kinds[TABLE_FIBERS])
		return;
	for (size_t i = 0; i < table->count; i++)
		if (s->watch->now->all.list[table->order[i].row].tid == s->follow) {
			s->cursor = i;
			return;
		}
	s->follow = 0;
}

static void move_by(struct screen *s, long rows)
{
	const struct table *table = screen_table(s);
	const size_t last = table->count ? table->count - 1 : 0;
	size_t *at = s->view == VIEW_TEXT ? &s->text_first : &s->cursor;

	if (rows < 0)
		*at = *at > (size_t)-rows ? *at - (size_t)-rows : 0;
	else
		*at += (size_t)rows;
	if (s->view == VIEW_TEXT)
		return;
	if (s->cursor > last)
		s->cursor = last;
	/* In the first row the cursor stays at the top, and does not follow a thread. */
	s->follow = s->cursor ? tid_at_cursor(s) : 0;
}

static void show_table(struct screen *s, enum view view, enum table_number table)
{
	s->view = view;
	s->table = table;
	s->cursor = s->first = s->shift = 0;
	s->follow = 0;
}

static void next_table(struct screen *s, int step)
{
	const int all = TABLE_COUNT + 1, now = s->view == VIEW_TABLE ? (int)s->table + 1 : 0;
	const int next = (now + step + all) % all;

	show_table(s, next ? VIEW_TABLE : VIEW_ALL, next ? (enum table_number)(next - 1) : TABLE_FIBERS);
}

static void next_key(struct screen *s, int step)
{
	struct table *table = screen_table(s);
	int count = 0;

	while (count < KEYS_MOST && table->kind->keys[count])
		count++;
	table->key = (unsigned)(((int)table->key + step + count) % count);
	table_sort(table, s->watch);
	s->cursor = s->first = 0;
	s->follow = 0;
}

/* ---- pictures ------------------------------------------------------------------------- */

static void sort_tables(struct screen *s)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		table_sort(&s->tables[i], s->watch);
}

/* Take a new picture. If the process has ended, the last picture stays. */
static void take_picture(struct screen *s)
{
	if (s->watch->end || !watch_take(s->watch))
		return;
	sort_tables(s);
	follow(s);
}

static void change_interval(struct screen *s, double factor)
{
	s->interval = fmin(fmax(s->interval * factor, 0.125), 86400);
}

/* ---- keys ----------------------------------------------------------------------------- */

static bool is_movement(struct screen *s, int key)
{
	const long page = s->shown > 1 ? (long)s->shown - 1 : 1;

	switch (key) {
	case KEY_UP: case 'k': move_by(s, -1); return true;
	case KEY_DOWN: case 'j': move_by(s, 1); return true;
	case KEY_PPAGE: case 'b': move_by(s, -page); return true;
	case KEY_NPAGE: case 'n': move_by(s, page); return true;
	case KEY_HOME: case 'g': move_by(s, INT32_MIN); return true;
	case KEY_END: case 'G': move_by(s, INT32_MAX); return true;
	case KEY_RIGHT: s->shift = s->shift + ONE_SCREEN < LINE_MOST ? s->shift + ONE_SCREEN : s->shift; return true;
	case KEY_LEFT: s->shift = s->shift > ONE_SCREEN ? s->shift - ONE_SCREEN : 0; return true;
	default: return false;
	}
}

static void text_key(struct screen *s, int key)
{
	switch (key) {
	case 'q': case ESCAPE: case KEY_BACKSPACE: leave_text(s); break;
	case 'r': case '\n': case KEY_ENTER:
		if (s->text.tid)
			show_stack(s, s->text.tid);
		break;
	case 'h': case '?': show_help(s); break;
	default: break;
	}
}

static void table_key(struct screen *s, int key)
{
	switch (key) {
	case 'q': s->over = true; break;
	case 'h': case '?': show_help(s); break;
	case ESCAPE: case 'o': show_table(s, VIEW_ALL, TABLE_FIBERS); break;
	case 'f': show_table(s, VIEW_TABLE, TABLE_FIBERS); break;
	case 'c': show_table(s, VIEW_TABLE, TABLE_CALLS); break;
	case 'w': show_table(s, VIEW_TABLE, TABLE_WAITS); break;
	case 'l': show_table(s, VIEW_TABLE, TABLE_LATE); break;
	case 'p': show_table(s, VIEW_TABLE, TABLE_PROCESSORS); break;
	case '\t': next_table(s, 1); break;
	case KEY_BTAB: next_table(s, -1); break;
	case 's': next_key(s, 1); break;
	case 'S': next_key(s, -1); break;
	case ' ': s->paused = !s->paused; break;
	case 'r': take_picture(s); break;
	case '+': change_interval(s, 2); break;
	case '-': change_interval(s, 0.5); break;
	case '\n': case KEY_ENTER:
		if (tid_at_cursor(s))
			show_stack(s, tid_at_cursor(s));
		break;
	default: break;
	}
}

static void read_keys(struct screen *s)
{
	int key = terminal_key(true);

	for (; key != ERR && !s->over; key = terminal_key(false)) {
		*s->message = '\0';
		if (is_movement(s, key))
			continue;
		(s->view == VIEW_TEXT ? text_key : table_key)(s, key);
	}
}

static double next_time(const struct screen *s, double earliest)
{
	if (s->paused || s->watch->end)
		return INFINITY;
	return fmax(s->watch->now->at + s->interval, earliest);
}

int screen_run(struct watch *w, struct table *tables, double interval)
{
	struct screen s = { .watch = w, .tables = tables, .interval = interval };
	double next = watch_time() + fmin(interval, 0.3), earliest = next, began;

	terminal_open();
	sort_tables(&s);
	while (!s.over) {
		screen_draw(&s);
		switch (watch_wait(w, next, !s.paused, 0, terminal_mask())) {
		case WAIT_TIME:
			began = watch_time();
			take_picture(&s);
			/* A picture of very many threads takes long, so pause at least as long as it took. */
			earliest = watch_time() + (watch_time() - began);
			next = next_time(&s, earliest);
			break;
		case WAIT_SIGNAL:
			terminal_signals();
			break;
		case WAIT_INPUT:
			read_keys(&s);
			next = next_time(&s, earliest);
			break;
		}
	}
	terminal_close();
	free_text(&s.text);
	if (w->end)
		fprintf(stderr, "fiberize: %s: %s\n", w->target->source.name, w->end);
	return 0;
}
