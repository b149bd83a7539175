/* SPDX-License-Identifier: MIT */
/*
 * preload/process/exec.c - the exec family.
 *
 * The new program inherits the signals that are pending for the process and for the caller, and
 * which signals are ignored. The kernel must have all of that before the call. Nothing else of the
 * library outlives the call. All functions here are async-signal-safe.
 */
#include <stdarg.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/redirect.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

struct exec {
	bool began, hides;
	struct fz_carrier *carrier;	/* gets no nudges until fz_signal_after_exec() */
};

/* Prepare for an exec. path: the path of the program; NULL if it is not named by a path. */
__attribute__((always_inline)) static inline struct exec before(enum fz_symbol symbol,
								const char *path)
{
	struct fz_fiber *self = fz_self();
	struct exec exec = { .began = true };

	fz_enter(symbol);
	/*
	 * acquire: pairs with fz_sched_start(). relaxed: in a child that borrows our memory
	 * (clone), in_runtime is set.
	 */
	if (!fz_runtime_runs() ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed) ||
	    fz_redirect_in_child())
		return (struct exec){ 0 };
	/* Print the report only if the file can be executed: programs try one path after the other. */
	if (fz_stats_are_printed() &&
	    (!path || fz_syscall3(__NR_faccessat, AT_FDCWD, (long)path, X_OK) == 0))
		fz_stats_say();
	/* Hold the limit first: until fz_signal_before_exec() signals are still handled as usual. */
	fz_sched_hold_limit();
	exec.carrier = fz_signal_before_exec(self);
	exec.hides = fz_signal_before_spawn();
	return exec;
}

/* Called when exec has failed. Keeps errno. */
static int after(struct exec exec, int ret)
{
	int saved = errno;

	fz_signal_after_spawn(exec.hides);
	if (exec.began) {
		fz_signal_after_exec(exec.carrier);
		fz_stats_go_on();
		fz_sched_release_limit();
	}
	errno = saved;
	return ret;
}

FZ_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	struct exec exec = before(FZ_SYM_execve, path);

	return after(exec, fz_real.execve(path, argv, envp));
}

FZ_EXPORT int execv(const char *path, char *const argv[])
{
	struct exec exec = before(FZ_SYM_execv, path);

	return after(exec, fz_real.execv(path, argv));
}

FZ_EXPORT int execvp(const char *file, char *const argv[])
{
	struct exec exec = before(FZ_SYM_execvp, NULL);

	return after(exec, fz_real.execvp(file, argv));
}

FZ_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct exec exec = before(FZ_SYM_execvpe, NULL);

	return after(exec, fz_real.execvpe(file, argv, envp));
}

FZ_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct exec exec = before(FZ_SYM_fexecve, NULL);

	return after(exec, fz_real.fexecve(fd, argv, envp));
}

FZ_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[],
		       int flags)
{
	struct exec exec = before(FZ_SYM_execveat, NULL);

	return after(exec, fz_real.execveat(fd, path, argv, envp, flags));
}

/* ---- arguments one by one ---------------------------------------------------- */

typedef int exec_fn(const char *file, char *const argv[], char *const envp[]);

/* The number of arguments, with the NULL at their end. */
static size_t count(const char *first, va_list list)
{
	size_t n = 1;

	for (const char *arg = first; arg; n++)
		arg = va_arg(list, const char *);
	return n;
}

/* Call real with the arguments in the list; behind them, if has_envp, is the environment. */
static int exec_list(exec_fn *real, const char *file, const char *first, va_list list, bool has_envp)
{
	va_list again;
	size_t n;

	va_copy(again, list);
	n = count(first, again);
	va_end(again);

	char *argv[n];

	argv[0] = (char *)first;
	for (size_t i = 1; i < n; i++)
		argv[i] = va_arg(list, char *);
	return real(file, argv, has_envp ? va_arg(list, char *const *) : environ);
}

FZ_EXPORT int execl(const char *path, const char *first, ...)
{
	struct exec exec = before(FZ_SYM_execl, path);
	va_list list;
	int ret;

	va_start(list, first);
	ret = exec_list(fz_real.execve, path, first, list, false);
	va_end(list);
	return after(exec, ret);
}

FZ_EXPORT int execlp(const char *file, const char *first, ...)
{
	struct exec exec = before(FZ_SYM_execlp, NULL);
	va_list list;
	int ret;

	va_start(list, first);
	ret = exec_list(fz_real.execvpe, file, first, list, false);
	va_end(list);
	return after(exec, ret);
}

FZ_EXPORT int execle(const char *path, const char *first, ...)
{
	struct exec exec = before(FZ_SYM_execle, path);
	va_list list;
	int ret;

	va_start(list, first);
	ret = exec_list(fz_real.execve, path, first, list, true);
	va_end(list);
	return after(exec, ret);
}
