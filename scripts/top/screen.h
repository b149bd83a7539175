/* SPDX-License-Identifier: MIT */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

/*
 * scripts/top/screen.h - fiberize top on a terminal: what is on the screen, and what keys do.
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
	char **lines;			/* in bytes */
	size_t count;
	int tid;			/* whose stack it is; 0: it is none */
};

struct screen {
	struct watch *watch;
	struct table *tables;
	double interval;		/* seconds */
	bool paused, over;
	enum view view, back;		/* back: where a text was asked for */
	enum table_number table;	/* shown with VIEW_TABLE */
	size_t cursor;			/* a row of the table that keys move in */
	size_t first;			/* first row shown */
	size_t shown;			/* how many rows or lines there is room for */
	int follow;			/* the tid that the cursor stays with; 0: the place */
	size_t text_first;		/* first line of the text shown */
	size_t shift;			/* columns that are hidden at the left */
	struct text text;
	char message[128];		/* for the last line, until the next key */
};

/* Show pictures until a key ends it.  Returns the exit code. */
int screen_run(struct watch *w, struct table *tables, double interval);

/* The table that keys move in. */
struct table *screen_table(const struct screen *s);

/* Draw all (draw.c). */
void screen_draw(struct screen *s);

#endif
