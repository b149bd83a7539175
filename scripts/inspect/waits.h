/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_WAITS_H
#define INSPECT_WAITS_H

/*
 * scripts/inspect/waits.h - what a thread waits for in the library: the facts, which are quick to
 * read from the memory of the process, and a text for people, which takes longer.
 */

#include "fibers.h"

struct wait_facts {
	const char *kind;		/* "read", "mutex", "join" ...; "" if that is not known */
	uint64_t address;		/* of the lock or the word; 0: none */
	int fd;				/* -1: none */
	int owner;			/* the tid of the thread that it waits for; 0: unknown or none */
	unsigned readers;		/* that hold the lock */
	unsigned events;		/* POLL* */
	unsigned fd_count;		/* of poll */
	int fds[3];			/* the first of them */
	bool by_threads;		/* only another thread of the process ends the wait */
};

struct wait {
	struct wait_facts facts;
	char text[256];			/* the facts in words */
};

void wait_read(const struct target *t, const struct fiber *f, struct wait_facts *ret_facts);
void wait_tell(const struct target *t, const struct fibers *all, const struct fiber *f,
	       const struct wait_facts *facts, char *text, size_t size);

/* The kind of a request, IORING_OP_*; "request" if it has no name. */
const char *wait_request(unsigned opcode);

/* The kind by a value of for_*; "" if it is not known, as of for_request. */
const char *wait_kind(const struct target *t, unsigned waits_for);

/* All kinds but those of requests, one for each i from 0; NULL: there are no more. */
const char *wait_plain_kind(size_t i);

/*
 * The kind of each thread's wait, as wait_read() has it; "" if it does not wait in the library.  The
 * facts are not read, so 10,000 threads take 40 system calls.
 */
void wait_kinds(const struct target *t, const struct fiber *list, size_t count, const char **ret_kinds);

/* wait_read() and wait_tell(). */
void wait_of(const struct target *t, const struct fibers *all, const struct fiber *f,
	     struct wait *ret_wait);

/* What the open file is: its path, or the two addresses of a socket.  Cut to size bytes. */
void file_of(const struct target *t, int fd, char *text, size_t size);

#endif
