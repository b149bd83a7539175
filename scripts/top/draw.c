/* SPDX-License-Identifier: MIT */
/*
 * scripts/top/draw.c - draws the screen:
 *
 *	three lines on the whole process
 *	a table, or a part of each, or a text
 *	the last line: what is shown, what keys do, or a message
 */
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <wctype.h>

#include "screen.h"
#include "terminal.h"

/* Replace by '?' each character that the terminal cannot show in one or two columns. */
static void make_printable(char *text)
{
	mbstate_t state = { 0 };
	size_t length;
	wchar_t wide;

	for (char *c = text; *c; c += length) {
		length = mbrtowc(&wide, c, strlen(c), &state);
		if (length - 1 < MB_LEN_MAX && iswprint((wint_t)wide))
			continue;
		memset(&state, 0, sizeof(state));
		length = 1;
		*c = '?';
	}
}

static void put_line(int y, const char *text, size_t shift, chtype look)
{
	char line[LINE_MOST];

	snprintf(line, sizeof(line), "%s", strlen(text) > shift ? text + shift : "");
	make_printable(line);
	attrset((attr_t)look);
	mvaddnstr(y, 0, line, COLS);
	if (look & A_REVERSE)
		for (int x = getcurx(stdscr); getcury(stdscr) == y && x < COLS; x++)
			mvaddch(y, x, ' ');
	attrset(A_NORMAL);
}

/* ---- tables --------------------------------------------------------------------------- */

static const char *missing(const struct screen *s, const struct table *table)
{
	return table->kind->missing ? table->kind->missing(s->watch) : NULL;
}

/* Draw the heading, and rows from row first on. The row cursor is marked; SIZE_MAX marks none. */
static void draw_rows(const struct screen *s, const struct table *table, int y, size_t first,
		      size_t rows, size_t cursor)
{
	char line[LINE_MOST];

	put_line(y, table->kind->heading, s->shift, A_REVERSE);
	for (size_t i = first; i < table->count && i < first + rows; i++) {
		table_line(table, s->watch, i, line);
		put_line(++y, line, s->shift, i == cursor ? A_REVERSE : A_NORMAL);
	}
}

/* Move the cursor into the table if it is behind the last row, and scroll so that it is on the screen. */
static void place_cursor(struct screen *s, const struct table *table)
{
	if (s->cursor >= table->count)
		s->cursor = table->count ? table->count - 1 : 0;
	if (s->cursor < s->first)
		s->first = s->cursor;
	else if (s->cursor >= s->first + s->shown)
		s->first = s->cursor - s->shown + 1;
	if (s->first + s->shown > table->count)
		s->first = table->count > s->shown ? table->count - s->shown : 0;
}

static void draw_table(struct screen *s, const struct table *table, int y, int room)
{
	const char *why = missing(s, table);

	s->shown = room > 1 ? (size_t)room - 1 : 1;
	place_cursor(s, table);
	if (why)
		put_line(y, why, s->shift, A_NORMAL);
	else
		draw_rows(s, table, y, s->first, s->shown, s->cursor);
}

/* Draw the first rows of each table, as many as fit. The table of fibers gets the rest of the room. */
static void draw_all(struct screen *s, int y, int room)
{
	static const enum table_number upper[] = {
		TABLE_PROCESSORS, TABLE_CALLS, TABLE_LATE, TABLE_WAITS,
	};
	enum { LEAST = 3 };		/* lines that are kept for the fibers */
	const int most = MAX(room / 6, 1);

	for (size_t i = 0; i < sizeof(upper) / sizeof(*upper); i++) {
		const struct table *table = &s->tables[upper[i]];
		const int rows = MIN(MIN((int)table->count, most), room - LEAST - 1);

		if (rows < 1)
			continue;
		draw_rows(s, table, y, 0, (size_t)rows, SIZE_MAX);
		y += rows + 1;
		room -= rows + 1;
	}
	draw_table(s, &s->tables[TABLE_FIBERS], y, room);
}

static void draw_text(struct screen *s, int y, int room)
{
	const struct text *text = &s->text;

	s->shown = room > 1 ? (size_t)room - 1 : 1;
	if (s->text_first + s->shown > text->count)
		s->text_first = text->count > s->shown ? text->count - s->shown : 0;
	put_line(y, text->title, 0, A_REVERSE);
	for (size_t i = s->text_first; i < text->count && i < s->text_first + s->shown; i++)
		put_line(++y, text->lines[i], s->shift, A_NORMAL);
}

/* ---- the last line -------------------------------------------------------------------- */

static void draw_last(const struct screen *s)
{
	const struct table *table = screen_table(s);
	char line[LINE_MOST];

	if (s->watch->end)
		snprintf(line, sizeof(line), "%s: %s; this was the last picture; q quits",
			 s->watch->target->source.name, s->watch->end);
	else if (*s->message)
		snprintf(line, sizeof(line), "%s", s->message);
	else if (s->view == VIEW_TEXT)
		snprintf(line, sizeof(line), "lines %zu to %zu of %zu; q: back%s", MIN(s->text_first + 1, s->text.count),
			 MIN(s->text_first + s->shown, s->text.count), s->text.count,
			 s->text.tid ? "; r: read it again" : "");
	else
		snprintf(line, sizeof(line), "%s by %s, %zu to %zu of %zu; %severy %g s; h: help, q: quit",
			 table->kind->name, table->kind->keys[table->key],
			 MIN(s->first + 1, table->count), MIN(s->first + s->shown, table->count),
			 table->count, s->paused ? "PAUSED; " : "", s->interval);
	put_line(LINES - 1, line, 0, A_BOLD);
}

void screen_draw(struct screen *s)
{
	char head[HEAD_LINES][LINE_MOST];
	const int room = LINES - HEAD_LINES - 1;

	erase();
	if (terminal_is_small()) {
		snprintf(head[0], LINE_MOST, "%d x %d: too small", COLS, LINES);
		put_line(0, head[0], 0, A_NORMAL);
		refresh();
		return;
	}
	table_head(s->watch, head);
	for (int i = 0; i < HEAD_LINES; i++)
		put_line(i, head[i], 0, i ? A_NORMAL : A_BOLD);
	if (s->view == VIEW_TEXT)
		draw_text(s, HEAD_LINES, room);
	else if (s->view == VIEW_TABLE)
		draw_table(s, &s->tables[s->table], HEAD_LINES, room);
	else
		draw_all(s, HEAD_LINES, room);
	draw_last(s);
	refresh();
}
