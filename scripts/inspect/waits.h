/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_WAITS_H
#define INSPECT_WAITS_H

/*
 * scripts/inspect/waits.h - what a thread waits for in the library: as facts, which are quickly read
 * from the memory of the process, and as a text for people, which takes longer.
 */

#include "fibers.h"

struct wait_facts {
	const char *kind;		/* "read", "mutex", "child" ...; "" if that is not known */
	uint64_t address;		/* of the lock or the word; 0: none */
	int fd;				/* -1: none */
	int call;			/* the number of a system call that has no name here, or 0 */
	int child;			/* if is_child: the process or group, as for waitpid() */
	int owner;			/* tid of the thread that has the lock or is joined, or 0 */
	unsigned readers;		/* how many threads hold the lock for reading */
	unsigned events;		/* POLL* bits that it waits for */
	unsigned fd_count;		/* how many descriptors it waits for by poll() or select() */
	int fds[3];			/* the first three of these */
	bool is_child;			/* it waits for a child */
	bool by_threads;		/* only another thread of the process ends the wait */
	bool has_deadline;
	bool is_elsewhere;		/* the owner is no thread of the process */
	bool is_in_call;		/* it waits in the kernel, in a system call */
	uint64_t times_run;		/* if is_in_call: how often its kernel thread has got a CPU */
};

struct wait {
	struct wait_facts facts;
	char text[256];			/* the facts in words */
};

/* all has the native threads, too (natives_add). */
void wait_read(const struct target *t, const struct fibers *all, const struct fiber *f,
	       struct wait_facts *ret_facts);
void wait_tell(const struct target *t, const struct fibers *all, const struct fiber *f,
	       const struct wait_facts *facts, char *text, size_t size);

/*
 * The facts about the system call in which the kernel thread of f is; none if it is in no call, or the kernel does
 * not tell.  A live thread must sleep.  stopped: the registers with which it has just stopped, or NULL; once it goes on
 * it makes its call anew, and for a moment is in none.  wait_is_in_call(): is it in one?
 */
void wait_read_call(const struct target *t, const struct fibers *all, const struct fiber *f,
		    const struct registers *stopped, struct wait_facts *facts);
bool wait_is_in_call(const struct target *t, const struct fiber *f);

/* Is the thread, whose facts were read, still in that wait?  True of each thread of a core file. */
bool wait_goes_on(const struct target *t, const struct fiber *f, const struct wait_facts *facts);

/* Take the arguments of poll(), and those of waitid(). */
void wait_take_fds(const struct target *t, uint64_t fds, unsigned count, struct wait_facts *facts);
void wait_take_children(int type, int id, struct wait_facts *facts);

/* The kind of a request, by its opcode (IORING_OP_*); "request" if the opcode has no name here. */
const char *wait_request(unsigned opcode);

/* The kind of a wait, by enum fz_waits_for; "" if it is unknown, as it is for requests. */
const char *wait_kind(const struct target *t, unsigned waits_for);

/* Kind i (from 0) in the list of all kinds but requests; NULL at the end of the list. */
const char *wait_plain_kind(size_t i);

/*
 * The kind of each thread's wait, as wait_read() gives it; "" if the thread does not wait in the library.
 * Other facts are not read, so 10,000 threads take about 40 system calls.
 */
void wait_kinds(const struct target *t, const struct fiber *list, size_t count, const char **ret_kinds);

/* Read the facts and tell them.  stopped: as for wait_read_call(). */
void wait_of(const struct target *t, const struct fibers *all, const struct fiber *f,
	     const struct registers *stopped, struct wait *ret_wait);

/* Describe an open file: its path, or the two addresses of a socket.  The text is cut to size bytes. */
void file_of(const struct target *t, int fd, char *text, size_t size);

#endif
