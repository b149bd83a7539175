/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_SIGNALS_H
#define FZ_MODEL_SIGNALS_H

/*
 * tests/model/signals.h - the model's signals, as in signal(7): actions, masks, what is pending for a kthread and for the
 * process.
 *
 * A kthread takes a signal when it returns to the program: at the end of a system call, and when it goes on after others have
 * run (an interrupt has brought it into the kernel).  The handler runs on the stack that is in use then; its return restores the
 * mask of the frame, on the kthread that the context runs on by then.  A signal interrupts each sleep in the kernel.
 */

#include <stdbool.h>
#include <stdint.h>

enum { SIGNALS = 64, SENT = 24, TO_PROCESS = -1 };

/* -ERESTARTSYS: the call begins again, unless a handler without SA_RESTART has run. */
#define CALL_RESTARTS (-512)

/* As rt_sigaction has it. */
struct kernel_action {
	void (*handler)(int, void *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* A signal that nobody has taken. */
struct sent {
	int sig, to;			/* a kthread, or TO_PROCESS */
	_Alignas(8) char info[128];
};

struct signals {
	struct kernel_action action[SIGNALS + 1];
	struct sent sent[SENT];		/* in the order of arrival */
	int count;
	int turn;			/* the kthread that got the last one of the process */
};

/* The system calls, by the running kthread. */
long signals_action(int sig, const struct kernel_action *action, struct kernel_action *ret_old);
long signals_change_mask(int how, const uint64_t *set, uint64_t *ret_old);
long signals_take(const uint64_t *set, void *ret_info, const void *timeout);
/* tid 0: to the process.  info NULL: as kill() or tgkill() fills it. */
long signals_send(int tid, int sig, const void *info);
long signals_stack(void *ret_old);

/* Sleeping, the running kthread was interrupted: is there a handler to be run?  Else it sleeps on. */
bool signals_interrupt(void);

/* The running kthread is about to return to the program: run the handlers that are due. */
void signals_return(void);

/* signals_return() from a call that ends with *result.  Returns true if the call begins again. */
bool signals_end_call(long *result);

/* A kthread ends: others take the process's signals that it was to take. */
void signals_kthread_ends(int kt);

#endif
