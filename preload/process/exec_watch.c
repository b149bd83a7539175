/* SPDX-License-Identifier: MIT */
#include "preload/process/exec_watch.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "runtime/sched/announce.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/futex.h"

/* In memory that parent and child share. */
struct fz_exec_watch {
	struct robust_list_head head;	/* the child's; the kernel reads it */
	struct robust_list entry;
	/*
	 * 0: the child has not begun. The child's tid | FUTEX_WAITERS: it runs. With FUTEX_OWNER_DIED: it has
	 * called exec or ended.
	 */
	_Atomic uint32_t word;
	uint64_t mask;			/* the fiber's signal mask before fz_exec_watch_begin() */
};

/* Is the child allowed to register a list? */
static bool may_register(void)
{
	void *list = NULL;
	size_t size = sizeof(struct robust_list_head);

	return !fz_syscall3(__NR_get_robust_list, 0, (long)&list, (long)&size) &&
	       !fz_syscall2(__NR_set_robust_list, (long)list, (long)sizeof(struct robust_list_head));
}

static struct fz_exec_watch *make(void)
{
	struct fz_exec_watch *watch;

	if (!may_register())
		return NULL;
	watch = mmap(NULL, sizeof(*watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (watch == MAP_FAILED)
		return NULL;
	watch->head.list.next = &watch->entry;
	watch->head.futex_offset = (char *)&watch->word - (char *)&watch->entry;
	watch->entry.next = &watch->head.list;
	return watch;
}

struct fz_exec_watch *fz_exec_watch_begin(struct fz_fiber *self, uint64_t *flags)
{
	const uint64_t all = FZ_SIGNALS_ALL;
	struct fz_exec_watch *watch;

	if (!self || self->kind != FZ_KIND_FIBER)
		return NULL;
	watch = flags ? make() : NULL;
	if (!watch) {
		fz_announce(self);
		return NULL;
	}
	*flags &= ~(uint64_t)CLONE_VFORK;
	fz_signal_set_mask(self, SIG_SETMASK, &all, &watch->mask);
	return watch;
}

void fz_exec_watch_in_child(struct fz_exec_watch *watch)
{
	if (!watch)
		return;
	fz_syscall2(__NR_set_robust_list, (long)&watch->head, sizeof(watch->head));
	/* release: pairs with the acquire in await(). From here on the kernel marks the word at exec or exit. */
	atomic_store_explicit(&watch->word, (uint32_t)fz_sys_gettid() | FUTEX_WAITERS,
			      memory_order_release);
	fz_syscall4(__NR_futex, (long)&watch->word, FUTEX_WAKE, 1, 0);
	fz_sys_sigmask(SIG_SETMASK, &watch->mask, NULL);
}

/* Has the child ended? True, too, if the kernel has reaped it, because the program ignores SIGCHLD. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return fz_real.waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 ||
	       info.si_pid == pid;
}

static void await(struct fz_exec_watch *watch, struct fz_fiber *self, pid_t pid)
{
	/* If SIGKILL ends the child before it begins, nothing marks the word: until then look each 100 ms. */
	const struct timespec look = { 0, 100000000 };
	uint32_t seen;

	/* acquire: pairs with fz_exec_watch_in_child(), and with the kernel. */
	while (!((seen = atomic_load_explicit(&watch->word, memory_order_acquire)) &
		 FUTEX_OWNER_DIED)) {
		long ret = fz_futex(self, (uint32_t *)&watch->word, FUTEX_WAIT, seen,
				    seen ? 0 : (long)&look, NULL, 0);

		if (!seen && ret == -ETIMEDOUT && has_ended(pid))
			return;
	}
}

void fz_exec_watch_end(struct fz_exec_watch *watch, struct fz_fiber *self, pid_t pid)
{
	uint64_t mask;
	int saved = errno;

	if (!watch)
		return;
	if (pid > 0)
		await(watch, self, pid);
	mask = watch->mask;
	munmap(watch, sizeof(*watch));
	errno = saved;
	fz_signal_set_mask(self, SIG_SETMASK, &mask, NULL);
}
