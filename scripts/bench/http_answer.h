/* SPDX-License-Identifier: MIT */
#ifndef FZ_BENCH_HTTP_ANSWER_H
#define FZ_BENCH_HTTP_ANSWER_H

/*
 * scripts/bench/http_answer.h - finds the end of an HTTP/1.1 answer that arrives in pieces.
 * Zeroed storage is an answer of which nothing has arrived.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_answer {
	enum { HTTP_STATUS, HTTP_HEADER, HTTP_BODY, HTTP_CHUNK_SIZE, HTTP_CHUNK, HTTP_TRAILER } part;
	unsigned status;
	bool has_length, chunked;
	bool closing;		/* the server says that it closes the connection */
	uint64_t length;	/* of the body, bytes */
	uint64_t skip;		/* bytes to come before the next line */
	size_t line_length;
	char line[96];		/* what has arrived of a line; the rest of a longer one is dropped */
};

enum http_progress { HTTP_MORE, HTTP_COMPLETE, HTTP_WRONG };

/*
 * Take the next n bytes. Stores in *ret_used how many of them belong to the answer. Returns
 * HTTP_WRONG if the answer is not HTTP/1.1, or if it has no length, so that only the end of the
 * connection would show where it ends.
 */
enum http_progress http_answer_take(struct http_answer *a, const char *data, size_t n, size_t *ret_used);

#endif
