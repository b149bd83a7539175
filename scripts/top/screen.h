/* SPDX-License-Identifier: MIT */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

/*
 * scripts/top/screen.h - fiberize top on a terminal: shows pictures of a process, and acts on keys.
 *
 *	terminal	the terminal itself: size, modes, signals
 *	screen		keys, and when the next picture is taken
 *	draw		lines on the screen
 */

#include "tables.h"

enum view { VIEW_ALL, VIEW_TABLE, VIEW_TEXT };

/* A text that can be paged: the help, or a stack. */
struct text {
	char title[64];
	char *bytes;
	char **lines;			/* pointers into bytes */
	size_t count;
	int tid;			/* the thread whose stack it is; 0: it is no stack */
};

struct screen {
	struct watch *watch;
	struct table *tables;
	double interval;		/* seconds */
	bool paused, over;
	enum view view, back;		/* back: the view to return to from a text */
	enum table_number table;	/* the table shown in VIEW_TABLE */
	size_t cursor;			/* the marked row of the table screen_table() */
	size_t first;			/* first row shown */
	size_t shown;			/* how many rows or lines there is room for */
	int follow;			/* tid of the thread that the cursor follows; 0: none */
	size_t text_first;		/* first line of the text shown */
	size_t shift;			/* columns that are hidden at the left */
	struct text text;
	char message[128];		/* shown in the last line until the next key */
};

/* Show pictures until the user ends the tool by a key.  Returns the exit code. */
int screen_run(struct watch *w, struct table *tables, double interval);

/* The table that keys move in. */
struct table *screen_table(const struct screen *s);

/* Draw the whole screen (draw.c). */
void screen_draw(struct screen *s);

#endif
