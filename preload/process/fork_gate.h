/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_FORK_GATE_H
#define FZ_PRELOAD_PROCESS_FORK_GATE_H

/*
 * preload/process/fork_gate.h - no fork while a thread holds, for the library, a lock of libc that
 * the child would find held for ever.
 *
 * libc's fork() makes the locks of malloc, of stdio and of libc's list of stacks free in the child.
 * It need not do so for the lock of the loader's list of modules, which the library reads each time a
 * fiber begins a new life; and clone() frees no lock. So a thread is inside a gate while it holds
 * such a lock. A thread that forks closes the gate, waits until no thread is inside, and opens the
 * gate afterwards.
 *
 * For any thread. A fiber parks until it may enter. A thread that closes a gate blocks its kernel
 * thread, so only one fiber at a time does that (fz_spawner_turn_begin). If a signal handler forks
 * while its own thread is inside a gate, the thread does not wait for itself. Inside a gate, do not
 * wait for anything that a forking thread could hold, such as a lock of the program.
 */

enum fz_gate {
	FZ_GATE_LOADER,		/* for dl_iterate_phdr(), and for locks of the loader */
	FZ_GATE_THREADS,	/* libc's birth and end of threads, for the runtime */
	FZ_GATES,
};

void fz_gate_enter(enum fz_gate which);
void fz_gate_leave(enum fz_gate which);

/* Called by a thread that has its turn (fz_spawner_turn_begin). */
void fz_gate_close(enum fz_gate which);
void fz_gate_open(enum fz_gate which);

/* In the child of fork: other threads that were inside or closing do not exist here. */
void fz_gates_after_fork(void);

#endif
