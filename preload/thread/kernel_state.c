/* SPDX-License-Identifier: MIT */
#include "preload/thread/kernel_state.h"

#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/thread/exclude.h"
#include "preload/thread/names.h"
#include "runtime/fiber/wire.h"
#include "runtime/io/fdtab.h"
#include "runtime/backend/filter.h"
#include "runtime/sched/sched.h"

/* Older headers lack these names. The numbers are equal on all CPUs. */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_lsm_set_self_attr
#define SYS_lsm_set_self_attr 460
#endif
#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
#ifndef PR_SME_SET_VL
#define PR_SME_SET_VL 63
#endif
#ifndef PR_SET_SHADOW_STACK_STATUS
#define PR_SET_SHADOW_STACK_STATUS 75
#endif

void fz_wire_for_state_of(const char *name)
{
	struct fz_fiber *self = fz_self();

	/* All threads inherit what the only thread changes before it makes the first one. */
	if (!fz_runtime_runs() ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	if (self->kind == FZ_KIND_FIBER)
		fz_fiber_wire_for(self, name);
	/* In a child of clone(CLONE_VM) it still is a fiber: the record is that of the child's maker. */
	if (self->kind != FZ_KIND_FIBER)
		self->thread.owns_kernel_state = true;
}

void fz_files_are_own(void)
{
	if (fz_self()->thread.owns_kernel_state)
		fz_fdtab_unshare(fz_self());
}

bool fz_prctl_is_of_thread(int option)
{
	switch (option) {
	case PR_SET_PDEATHSIG:
	case PR_SET_KEEPCAPS:
	case PR_SET_FPEMU:
	case PR_SET_FPEXC:
	case PR_SET_SECCOMP:
	case PR_CAPBSET_DROP:
	case PR_SET_TSC:
	case PR_SET_SECUREBITS:
	case PR_SET_TIMERSLACK:
	case PR_MCE_KILL:
	case PR_SET_NO_NEW_PRIVS:
	case PR_CAP_AMBIENT:
	case PR_SET_SPECULATION_CTRL:
	case PR_SET_IO_FLUSHER:
	case PR_SET_SYSCALL_USER_DISPATCH:
	case PR_SCHED_CORE:
	case PR_TASK_PERF_EVENTS_DISABLE:
	case PR_TASK_PERF_EVENTS_ENABLE:
	/* aarch64 only */
	case PR_SET_TAGGED_ADDR_CTRL:
	case PR_PAC_RESET_KEYS:
	case PR_PAC_SET_ENABLED_KEYS:
	case PR_SVE_SET_VL:
	case PR_SME_SET_VL:
	case PR_SET_SHADOW_STACK_STATUS:
		return true;
	default:
		return false;
	}
}

bool fz_syscall_is_of_thread(long number)
{
	switch (number) {
	/*
	 * These system calls change the ids of the thread; libc's functions change the process's.
	 */
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setgroups:
	case SYS_setfsuid:
	case SYS_setfsgid:
	case SYS_capset:
	case SYS_seccomp:
	case SYS_landlock_restrict_self:
	case SYS_setns:
	/* The first use of a keyring may make it, for the calling kernel thread. */
	case SYS_keyctl:
	case SYS_add_key:
	case SYS_request_key:
	case SYS_lsm_set_self_attr:
	/* The rights to a protection key are in a register of the kernel thread. */
	case SYS_pkey_alloc:
	case SYS_ptrace:
	case SYS_personality:
	case SYS_set_mempolicy:
	case SYS_set_robust_list:
	case SYS_set_tid_address:
#ifdef SYS_arch_prctl
	case SYS_arch_prctl:
#endif
#ifdef SYS_ioperm
	case SYS_ioperm:
	case SYS_iopl:
#endif
		return true;
	default:
		return false;
	}
}

/* The interposer of a call that changes the state of the kernel thread, and needs nothing else. */
#define FZ_EXPORT_WIRED(type, name, parameters, ...)     \
	FZ_EXPORT type name parameters                   \
	{                                                \
		fz_enter(FZ_SYM_##name);                 \
		fz_wire_for_state();                     \
		return fz_real.name(__VA_ARGS__);        \
	}

FZ_EXPORT int unshare(int flags)
{
	int ret;

	fz_enter(FZ_SYM_unshare);
	fz_wire_for_state();
	ret = fz_real.unshare(flags);
	if (!ret && flags & CLONE_FILES)
		fz_files_are_own();
	return ret;
}

FZ_EXPORT_WIRED(int, setns, (int fd, int type), fd, type)

FZ_EXPORT int setfsuid(uid_t id)
{
	fz_enter(FZ_SYM_setfsuid);
	/* An id of all ones is invalid: the call only asks. */
	if (id != (uid_t)-1)
		fz_wire_for_state();
	return fz_real.setfsuid(id);
}

FZ_EXPORT int setfsgid(gid_t id)
{
	fz_enter(FZ_SYM_setfsgid);
	if (id != (gid_t)-1)
		fz_wire_for_state();
	return fz_real.setfsgid(id);
}

FZ_EXPORT_WIRED(int, capset, (void *header, const void *data), header, data)

FZ_EXPORT int personality(unsigned long persona)
{
	fz_enter(FZ_SYM_personality);
	/* A value of all ones only asks. */
	if (persona != 0xffffffff)
		fz_wire_for_state();
	return fz_real.personality(persona);
}

/* The rights to a protection key are in a register of the kernel thread. */
FZ_EXPORT_WIRED(int, pkey_alloc, (unsigned flags, unsigned rights), flags, rights)
FZ_EXPORT_WIRED(int, pkey_set, (int key, unsigned rights), key, rights)
FZ_EXPORT_WIRED(int, arch_prctl, (int code, unsigned long address), code, address)
FZ_EXPORT_WIRED(int, ioperm, (unsigned long from, unsigned long count, int on), from, count, on)
FZ_EXPORT_WIRED(int, iopl, (int level), level)

/* For ptrace the tracer is one kernel thread, and so is the thread that asks to be traced. */
FZ_EXPORT long ptrace(enum __ptrace_request request, ...)
{
	va_list list;
	void *args[4];

	fz_enter(FZ_SYM_ptrace);

	/* libc reads three words, of several types; one more does no harm. */
	va_start(list, request);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(list, void *);
	va_end(list);
	fz_wire_for_state();
	return fz_real.ptrace(request, args[0], args[1], args[2], args[3]);
}

/* Is the caller a fiber, wired or not, in user code? Such a caller has a name in the library. */
static bool has_own_name(const struct fz_fiber *self)
{
	return fz_is_fiber(self) &&
	       !atomic_load_explicit(&self->in_runtime, memory_order_relaxed);
}

/* Can the kernel read as much of the name as it uses? */
static bool name_is_readable(const char *name)
{
	for (int i = 0; i < FZ_NAME_SIZE - 1; i++) {
		const char *word = name + i - (uintptr_t)(name + i) % 8;

		if ((i == 0 || name + i == word) && !fz_sys_readable(word))
			return false;
		if (!name[i])
			break;
	}
	return true;
}

FZ_EXPORT int prctl(int option, ...)
{
	struct fz_fiber *self = fz_self();
	unsigned long args[4];
	va_list list;
	int ret;

	fz_enter(FZ_SYM_prctl);

	/* Four words of any type, as libc reads them. */
	va_start(list, option);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(list, unsigned long);
	va_end(list);
	if (has_own_name(self) && option == PR_SET_NAME && name_is_readable((char *)args[0])) {
		fz_name_set(self, (char *)args[0]);
		return 0;
	}
	if (fz_prctl_is_of_thread(option))
		fz_wire_for_state();
	ret = fz_real.prctl(option, args[0], args[1], args[2], args[3]);
	if (option == PR_SET_SECCOMP)
		fz_filter_changed();
	/* ret is 0: the kernel has written to this memory, so it is writable. */
	if (ret == 0 && option == PR_GET_NAME && has_own_name(self))
		fz_name_get(self, (char *)args[0]);
	if (ret == 0 && option == PR_GET_TID_ADDRESS && has_own_name(self) &&
	    !self->thread.tid_address)
		*(void **)args[0] = fz_tcb_tid(self->tcb);
	return ret;
}
