/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_ARCH_H
#define FZ_ARCH_ARCH_H

/*
 * arch/arch.h - the contract that every CPU fulfils.
 *
 * arch/<cpu>/ provides
 *
 *	switch.S	fz_switch_*, fz_adopt, fz_clone_resume, fz_fiber_start
 *	frame.c		fz_frame_*, fz_arch_init
 *	frame.h		the layout of a frame, for switch.S and frame.c
 *	shadow.c	fz_arch_shadow_stack
 *	cpu.h		fz_tcb_get, fz_tcb_set, fz_switch_is_call, fz_cpu_relax, fz_cycles,
 *			FZ_SPIN_*
 *	syscall.h	fz_syscall3, fz_syscall6
 *	detour.c	fz_detour_plan
 *	detour_slots.S	fz_detour_slots
 *	detour.h	sizes, for detour.c and detour_slots.S
 *
 * Compile with -I<root> and -iquote <root>/arch/<cpu>, which picks the CPU without an #ifdef.
 * (-iquote and not -I, or our syscall.h would hide libc's <syscall.h>.)  This header needs
 * compiler headers only, and calls nothing.
 *
 * A context that does not run is a *frame* on its own stack, named by the stack pointer (sp) at
 * which the frame lies.  All frames have one layout, so each frame that a function on the left has
 * made may be entered by either function on the right:
 *
 *	a frame made by		may be entered by
 *	fz_switch		fz_switch
 *	fz_adopt		fz_clone_resume
 *	fz_frame_make
 *
 * A frame may be entered only once: entering it consumes it.
 *
 * A frame holds the registers that the ABI makes a callee keep, and the
 * floating-point environment (fenv: control words and sticky exception flags),
 * which belongs to a thread as <fenv.h> sees it; on x86-64 with FSGSBASE the gs base, too.  It does
 * not hold the signal mask, the thread pointer, or anything else of the kernel's.
 *
 * Memory: fz_switch orders nothing between CPUs.  A thread that publishes an sp, so that another
 * carrier may enter it, does so with release, after fz_switch has returned in the next context;
 * the thread that enters it has loaded it with acquire.
 *
 * Signals: inside fz_switch there are a few instructions at which stack and
 * thread pointer belong to different contexts.  A handler that runs there has a
 * good stack, but finds the thread pointer of the context that is leaving.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "detour.h"

/*
 * Returns the number of the CPU that runs the caller, without a system call; -1 if no instruction tells.  When it
 * returns, the caller may already run on another CPU.  Any thread; async-signal-safe.
 *
 *	static inline int fz_cpu_number(void);
 */

/*
 * Raw system calls.  They return what the kernel returns, -errno on failure, and leave errno alone.
 * No cancellation, no restart.  Any thread; async-signal-safe.  The kernel ignores the arguments
 * that a call does not have.
 */
static inline long fz_syscall5(long nr, long a, long b, long c, long d, long e)
{
	return fz_syscall6(nr, a, b, c, d, e, 0);
}

static inline long fz_syscall4(long nr, long a, long b, long c, long d)
{
	return fz_syscall6(nr, a, b, c, d, 0, 0);
}

static inline long fz_syscall2(long nr, long a, long b)
{
	return fz_syscall3(nr, a, b, 0);
}

static inline long fz_syscall1(long nr, long a)
{
	return fz_syscall3(nr, a, 0, 0);
}

static inline long fz_syscall0(long nr)
{
	return fz_syscall3(nr, 0, 0, 0);
}

#pragma GCC visibility push(hidden)

/*
 * Leave this context, continue in another.  Saves a frame and stores its sp in
 * *save_sp, makes tcb the thread pointer, and enters the frame at load_sp.
 * Returns when somebody enters the saved frame, maybe on another carrier.
 *
 * save_sp may lie in memory that belongs to either context.  From fibers and
 * carriers; not from a signal handler that does not own the stack it runs on.
 * Cannot fail.
 *
 * One of the variants that cpu.h declares; written by fz_arch_init only.
 */
typedef void fz_switch_fn(void **save_sp, void *load_sp, uintptr_t tcb);
extern fz_switch_fn *fz_switch;

/*
 * fz_switch and fz_tcb_set call this if the kernel refuses to set the thread pointer.  fz_switch calls it
 * on the stack of the context that is entered, with the thread pointer of the context that is left.  It
 * must not return.  NULL: trap instead.
 */
extern void (*fz_switch_refused)(void);

/*
 * Choose the fastest variants that this CPU and kernel allow.  hwcap2 is getauxval(AT_HWCAP2).
 * Call it once, before the second thread exists; until then all functions work, but slower.
 */
void fz_arch_init(unsigned long hwcap2);

/*
 * Does the CPU compare this thread's return addresses with a shadow stack?  fz_switch does not
 * change the shadow stack, so there can be no fibers then.
 */
int fz_arch_shadow_stack(void);

/*
 * Turn the calling kernel thread into a context that does not run: save a frame as fz_switch does,
 * store its sp in *save_sp, store 1 in *flag (release), wake all private futex waiters on flag,
 * and end the kernel thread by the raw exit system call.  From the store to flag on, this function
 * touches no memory, neither stack nor TCB: another kernel thread may already run the caller's
 * context, and flag itself may be gone (a stale futex wake finds no waiter, or one that must cope
 * with spurious wake-ups anyway).
 *
 * Returns when somebody enters the saved frame.
 *
 * Before the call: block all signals (a handler would use the stack), and disable what the kernel
 * would write on exit: set_tid_address(0), robust list, rseq.
 */
void fz_adopt(void **save_sp, _Atomic uint32_t *flag);

/*
 * The reverse of fz_adopt(): start a kernel thread that enters the frame at load_sp with tcb as
 * its thread pointer.  flags are those of clone(2); CLONE_SETTLS is implied, CLONE_VM is needed,
 * and no flag that wants a tid pointer (CLONE_*_SETTID, CLONE_CHILD_CLEARTID) is allowed: the new
 * thread can call set_tid_address itself.  It inherits the signal mask of the caller.
 *
 * Returns the tid of the new kernel thread; or -errno, and the frame is untouched.
 */
long fz_clone_resume(unsigned long flags, void *load_sp, uintptr_t tcb);

/*
 * Build the first frame of a context below stack_top (any alignment) and return its sp.  Entered,
 * the frame calls fn(arg), which must not return.  Its fenv is that of the caller, as
 * pthread_create promises.  Unwinding ends in fz_fiber_start.  Uses at most FZ_FRAME_ROOM bytes of
 * the stack.
 */
void *fz_frame_make(void *stack_top, void (*fn)(void *), void *arg);

enum { FZ_FRAME_ROOM = 256 };

/*
 * Give a saved frame the caller's fenv and, on x86-64 with FSGSBASE, the caller's gs base.  For a reused
 * fiber: a thread inherits from its creator, not from the thread that used the fiber before.
 */
void fz_frame_inherit(void *sp);

/*
 * For backtraces of contexts that do not run: the address to which the frame at sp returns, the
 * frame pointer there, and the stack pointer after the return (the frame's CFA).
 */
uintptr_t fz_frame_pc(const void *sp);
uintptr_t fz_frame_fp(const void *sp);
uintptr_t fz_frame_cfa(const void *sp);

/* The outermost function of every made context.  Never call it. */
void fz_fiber_start(void);

/*
 * Code that leads all calls of a function elsewhere; the function itself stays callable by the
 * trampoline.  `jump` replaces the first bytes of the function.  `trampoline` does what these bytes did,
 * and goes on behind them.
 */
struct fz_detour {
	uint8_t jump[FZ_DETOUR_JUMP];
	unsigned jump_size;
	uint8_t trampoline[FZ_DETOUR_ROOM];
	unsigned trampoline_size;
};

/*
 * Compute the detour that leads the function of `size` bytes at fn to target, with its trampoline at
 * `at`.  Writes nothing but *ret.  Returns NULL, or the reason why that cannot be done: an instruction
 * that this code does not know, a jump into the replaced bytes, or a distance that is too far.
 *
 * The caller writes the jump and the trampoline, makes sure that no thread runs there meanwhile, and
 * makes the CPU's caches agree (__builtin___clear_cache).
 */
const char *fz_detour_plan(const void *fn, size_t size, const void *target, const void *at,
			   struct fz_detour *ret);

/*
 * Memory for trampolines, in whole pages: executable, not writable; filled with instructions that
 * trap.
 */
extern uint8_t fz_detour_slots[FZ_DETOUR_SLOTS][FZ_DETOUR_ROOM];

#pragma GCC visibility pop

/*
 * What cpu.h provides:
 *
 *	uintptr_t fz_tcb_get(void);
 *	void fz_tcb_set(uintptr_t tcb);
 *	void fz_cpu_relax(void);
 *	uint64_t fz_cycles(void);	a counter that grows with time, at an unknown rate;
 *					faults where prctl(PR_SET_TSC) forbids it
 *	void fz_add_here(uint64_t *n, uint64_t by);	add, where only one kernel thread and its
 *					signal handlers write *n; without a lock prefix
 *					where the CPU allows that
 *	enum { FZ_SPIN_FREE, FZ_SPIN_HELD };	values of libc's spin locks
 *	long fz_clone_fork(unsigned long flags, void *child_tid);
 *	uintptr_t fz_call_target(uintptr_t pc, uintptr_t *ret_next);
 *
 * fz_tcb_get/set: the thread pointer, which is the address of libc's TCB on x86-64, and the
 * address just behind it on aarch64.  Async-signal-safe.  The compiler believes that the thread
 * pointer never changes: a function that calls fz_tcb_set must not touch TLS (errno too).
 *
 * fz_clone_fork: the raw clone system call on the caller's own stack; the order of its arguments
 * differs between CPUs.  Returns what clone returns.
 *
 * fz_call_target: returns the function that the instruction at pc calls, and stores the address behind
 * that instruction in *ret_next; returns 0 if the instruction is no direct call.
 */

#endif
