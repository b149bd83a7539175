/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/setid.c - setuid and its family. Linux keeps these ids for each kernel thread:
 * libc tells all threads in its list to change theirs, except the caller, which it knows by the
 * thread pointer. During the call that must be the pointer of the carrier, not of the fiber:
 * main()'s fiber has the TCB of the process's first kernel thread, wherever the fiber runs. A
 * carrier on that kernel thread tells it, too, and then changes its ids to what they are.
 */
#include "preload/gate.h"
#include "runtime/sched/carrier.h"
#include "runtime/signal/signal.h"

struct call {
	enum fz_symbol symbol;
	id_t a, b, c;
	size_t count;
	const gid_t *list;
};

static int make(const struct call *call)
{
	switch (call->symbol) {
	case FZ_SYM_setuid: return fz_real.setuid(call->a);
	case FZ_SYM_setgid: return fz_real.setgid(call->a);
	case FZ_SYM_seteuid: return fz_real.seteuid(call->a);
	case FZ_SYM_setegid: return fz_real.setegid(call->a);
	case FZ_SYM_setreuid: return fz_real.setreuid(call->a, call->b);
	case FZ_SYM_setregid: return fz_real.setregid(call->a, call->b);
	case FZ_SYM_setresuid: return fz_real.setresuid(call->a, call->b, call->c);
	case FZ_SYM_setresgid: return fz_real.setresgid(call->a, call->b, call->c);
	default: return fz_real.setgroups(call->count, call->list);
	}
}

/* In here thread-local variables, errno too, are the carrier's. */
static int make_as_kernel_thread(void *call)
{
	int saved = errno, err = make(call) ? errno : 0;

	errno = saved;
	return err;
}

__attribute__((always_inline)) static inline int set(struct call *call)
{
	struct fz_fiber *self = fz_enter(call->symbol);

	if (!self)
		return make(call);
	return (int)fz_leave(-fz_carrier_call(self->carrier, make_as_kernel_thread, call));
}

#define FZ_EXPORT_IDS(type, name, parameters, ...)                                       \
	FZ_EXPORT type name parameters                                                   \
	{                                                                                \
		return set(&(struct call){ .symbol = FZ_SYM_##name, __VA_ARGS__ });      \
	}

FZ_EXPORT_IDS(int, setuid, (uid_t uid), .a = uid)
FZ_EXPORT_IDS(int, setgid, (gid_t gid), .a = gid)
FZ_EXPORT_IDS(int, seteuid, (uid_t uid), .a = uid)
FZ_EXPORT_IDS(int, setegid, (gid_t gid), .a = gid)
FZ_EXPORT_IDS(int, setreuid, (uid_t real, uid_t effective), .a = real, .b = effective)
FZ_EXPORT_IDS(int, setregid, (gid_t real, gid_t effective), .a = real, .b = effective)
FZ_EXPORT_IDS(int, setresuid, (uid_t real, uid_t effective, uid_t saved),
		.a = real, .b = effective, .c = saved)
FZ_EXPORT_IDS(int, setresgid, (gid_t real, gid_t effective, gid_t saved),
		.a = real, .b = effective, .c = saved)
FZ_EXPORT_IDS(int, setgroups, (size_t count, const gid_t *list), .count = count, .list = list)
