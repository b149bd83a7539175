/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/setid.c - setuid and its family. Linux keeps these ids for each kernel thread, so
 * libc makes all threads in its list change their ids, except the caller, which libc knows by the
 * thread pointer. During the call the thread pointer must lead to libc's record of this kernel thread,
 * not to the fiber's, or this kernel thread would make the system call twice. The second call may do
 * more than the first: setuid(0) changes only the effective id of a thread that is not root, but all
 * three ids of root.
 */
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/redirect.h"
#include "runtime/fiber/wire.h"
#include "runtime/sched/announce.h"
#include "runtime/signal/signal.h"

struct call {
	enum fz_symbol symbol;
	id_t a, b, c;
	size_t count;
	const gid_t *list;
	int err;
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

/* In this function thread-local variables, and so errno, may be another thread's: restore errno. */
static void make_with_record(void *arg)
{
	struct call *call = arg;
	int saved = errno;

	call->err = make(call) ? errno : 0;
	errno = saved;
}

__attribute__((always_inline)) static inline int set(struct call *call)
{
	struct fz_fiber *self = fz_self();

	fz_enter(call->symbol);
	if (!fz_runtime_runs() || fz_redirect_in_child() ||
	    /* relaxed: only this thread and its handlers write it. */
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return make(call);
	fz_announce_brief(self);
	while (!fz_carrier_change_ids(self, make_with_record, call)) {
		fz_announce_end(self);
		if (!fz_fiber_leave_leader(self))
			return (int)fz_leave(-EAGAIN);
		fz_announce_brief(self);
	}
	fz_announce_end(self);
	return (int)fz_leave(-call->err);
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
