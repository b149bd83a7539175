/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime/backend/kept_fd.h"
#include "runtime/backend/own_fd.h"

enum { LIMIT = 1024 };

static ino_t file;
static volatile sig_atomic_t closes, without_bit;
/* The copy that another thread asks about while it is closed, and the number that is being closed; -1: none. */
static _Atomic int asked_about = -1, closing = -1;
/* That thread has begun; has its answer. */
static atomic_bool asks, answered;

static ino_t file_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* In place of close(), which gives the other thread time to ask while the number is open. */
static void close_late(int fd)
{
	atomic_store(&closing, fd);
	while (!atomic_load(&asks))
		usleep(100);
	for (int i = 0; i < 100 && !atomic_load(&answered); i++)
		usleep(100);
	close_range((unsigned)fd, (unsigned)fd, 0);
}

/* In place of close(): the number stays open.  What the runtime closes here, the child of a fork would have, too. */
static void look_at_close(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
#ifdef __x86_64__
	const int fd = (int)uc->uc_mcontext.gregs[REG_RDI];

	uc->uc_mcontext.gregs[REG_RAX] = 0;
#else
	const int fd = (int)uc->uc_mcontext.regs[0];

	uc->uc_mcontext.regs[0] = 0;
#endif
	(void)sig;
	(void)info;
	closes++;
	if (file_of(fd) == file && !fz_kept_fd_is(fd))
		without_bit++;
	if (fd == atomic_load(&asked_about))
		close_late(fd);
}

/* Numbers below it are few enough to fill, and the runtime may raise it. */
static void limit_descriptors(void)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = LIMIT;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void trap_close(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };
	const struct sigaction act = { .sa_sigaction = look_at_close, .sa_flags = SA_SIGINFO };

	cr_assert_eq(sigaction(SIGSYS, &act, NULL), 0);
	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* While a process is made, no number holds a file of the program's without the bit by which the child closes it. */
Test(kept_fd, no_copy_without_its_bit_while_a_process_is_made)
{
	static _Atomic int filler;
	int p[2], again[2];

	limit_descriptors();
	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(pipe(again), 0);
	atomic_store_explicit(&filler, again[0], memory_order_relaxed);
	fz_kept_fd_fill_with(&filler);
	file = file_of(p[0]);
	fz_own_fd_hold_limit();
	fz_kept_fd_copying_begins();
	trap_close();
	cr_assert(fz_kept_fd_has_room(p[0]));
	fz_kept_fd_drop(fz_kept_fd_make(p[0]));
	fz_kept_fd_copying_ends();
	fz_own_fd_release_limit();
	cr_assert_eq(without_bit, 0);
	cr_assert_gt(closes, 0);
}

Test(kept_fd, room_that_there_is_not)
{
	int fds[LIMIT], n = 0;

	limit_descriptors();
	while ((fds[n] = dup(0)) >= 0)
		n++;
	cr_assert_eq(errno, EMFILE);
	/* Otherwise the limit may be raised. */
	cr_assert(fz_kept_fd_has_room(0));
	fz_own_fd_hold_limit();
	cr_assert_not(fz_kept_fd_has_room(0));
	close(fds[n - 1]);
	cr_assert(fz_kept_fd_has_room(0));
	fz_own_fd_release_limit();
	cr_assert_eq(dup(0), fds[n - 1]);
}

static void *ask(void *arg)
{
	bool *others = arg;
	int fd;

	while ((fd = atomic_load(&closing)) < 0)
		usleep(100);
	atomic_store(&asks, true);
	*others = fz_kept_fd_is_others(fd);
	atomic_store(&answered, true);
	return NULL;
}

/* It has no bit any more, and is open still. */
Test(kept_fd, a_copy_that_is_being_dropped_is_nobody_elses)
{
	bool others = true;
	pthread_t asker;
	int p[2], copy;

	cr_assert_eq(pipe(p), 0);
	cr_assert(fz_kept_fd_is_others(p[0]));
	copy = fz_kept_fd_make(p[0]);
	cr_assert_geq(copy, 0);
	cr_assert_not(fz_kept_fd_is_others(copy));
	cr_assert_eq(pthread_create(&asker, NULL, ask, &others), 0);
	atomic_store(&asked_about, copy);
	trap_close();
	fz_kept_fd_drop(copy);
	cr_assert_eq(pthread_join(asker, NULL), 0);
	cr_assert_not(others);
	cr_assert_eq(closes, 1);
}
