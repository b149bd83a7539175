/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_FORK_GATE_H
#define FZ_PRELOAD_PROCESS_FORK_GATE_H

/*
 * preload/process/fork_gate.h - no fork while a thread holds, for us, a lock of libc's that the
 * child would find held for ever.
 *
 * libc's fork sees to the locks of malloc, of stdio and of its stacks, because it takes
 * them to make a thread; it need not see to the loader's list of modules, which we read
 * each time a fiber begins a new life, and clone sees to none.  Who does that is inside a
 * gate meanwhile; who forks closes it, waits until nobody is inside, and opens it after.
 *
 * For any thread; they wait in the kernel.  A thread that forks in a signal handler on
 * top of its own passage does not wait for itself.  Inside, nothing is waited for that
 * a thread could hold that forks: no lock of the program's.
 */

enum fz_gate {
	FZ_GATE_LOADER,		/* dl_iterate_phdr */
	FZ_GATE_THREADS,	/* libc's pthread_create, called by the runtime */
	FZ_GATES,
};

void fz_gate_enter(enum fz_gate which);
void fz_gate_leave(enum fz_gate which);

void fz_gate_close(enum fz_gate which);
void fz_gate_open(enum fz_gate which);

/* Whoever was inside, or closing, is not here. */
void fz_gates_after_fork(void);

#endif
