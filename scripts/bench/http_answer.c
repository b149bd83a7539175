/* SPDX-License-Identifier: MIT */
#include "scripts/bench/http_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of a header field if line is that field; else NULL. */
static const char *field(const char *line, const char *name)
{
	size_t length = strlen(name);

	if (strncasecmp(line, name, length) || line[length] != ':')
		return NULL;
	return line + length + 1 + strspn(line + length + 1, " \t");
}

static void take_header(struct http_answer *a)
{
	const char *value;

	if ((value = field(a->line, "content-length"))) {
		a->has_length = true;
		a->length = strtoull(value, NULL, 10);
	} else if ((value = field(a->line, "transfer-encoding"))) {
		a->chunked = !strcasecmp(value, "chunked");
	} else if ((value = field(a->line, "connection"))) {
		a->closing = !strcasecmp(value, "close");
	}
}

static enum http_progress end_of_headers(struct http_answer *a)
{
	if (a->status < 200) {
		a->part = HTTP_STATUS;
	} else if (a->status == 204 || a->status == 304) {
		return HTTP_COMPLETE;
	} else if (a->chunked) {
		a->part = HTTP_CHUNK_SIZE;
	} else if (!a->has_length) {
		return HTTP_WRONG;
	} else if (!a->length) {
		return HTTP_COMPLETE;
	} else {
		a->part = HTTP_BODY;
		a->skip = a->length;
	}
	return HTTP_MORE;
}

static enum http_progress end_of_line(struct http_answer *a)
{
	char *end;

	switch (a->part) {
	case HTTP_STATUS:
		a->part = HTTP_HEADER;
		return sscanf(a->line, "HTTP/1.1 %3u", &a->status) == 1 ? HTTP_MORE : HTTP_WRONG;
	case HTTP_HEADER:
		if (!*a->line)
			return end_of_headers(a);
		take_header(a);
		return HTTP_MORE;
	case HTTP_CHUNK_SIZE:
		a->skip = strtoull(a->line, &end, 16);
		if (end == a->line || a->skip > UINT64_MAX - 2)
			return HTTP_WRONG;
		a->part = a->skip ? HTTP_CHUNK : HTTP_TRAILER;
		/* CR and LF follow the chunk. */
		a->skip += a->skip ? 2 : 0;
		return HTTP_MORE;
	case HTTP_TRAILER:
		return *a->line ? HTTP_MORE : HTTP_COMPLETE;
	default:
		return HTTP_WRONG;
	}
}

/* n more bytes of the body have been skipped. Is the answer complete? */
static bool skipped(struct http_answer *a, uint64_t n)
{
	a->skip -= n;
	if (a->skip)
		return false;
	if (a->part == HTTP_BODY)
		return true;
	a->part = HTTP_CHUNK_SIZE;
	return false;
}

enum http_progress http_answer_take(struct http_answer *a, const char *data, size_t n, size_t *ret_used)
{
	enum http_progress progress = HTTP_MORE;
	size_t i = 0;

	while (i < n && progress == HTTP_MORE) {
		if (a->skip) {
			size_t now = a->skip < n - i ? (size_t)a->skip : n - i;

			i += now;
			if (skipped(a, now))
				progress = HTTP_COMPLETE;
		} else if (data[i++] != '\n') {
			if (a->line_length < sizeof(a->line) - 1)
				a->line[a->line_length++] = data[i - 1];
		} else {
			if (a->line_length && a->line[a->line_length - 1] == '\r')
				a->line_length--;
			a->line[a->line_length] = '\0';
			a->line_length = 0;
			progress = end_of_line(a);
		}
	}
	*ret_used = i;
	return progress;
}
