/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/setuid_once.c - each call of the family of setuid changes the ids of each
 * kernel thread of the process exactly once, whichever thread makes the call. A second setuid(0)
 * would change all three ids. Needs root; without it there is nothing to see.
 */
#include "check.h"

#include <dirent.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { A = 1001, B = 1002, C = 1003, ROUNDS = 40, OTHERS = 5 };
#define KEEP ((id_t)-1)

struct ids {
	id_t real, effective, saved;
};

static int by_setuid(void) { return setuid(0); }
static int by_seteuid(void) { return seteuid(0); }
static int by_setreuid(void) { return setreuid(B, A); }
static int by_setreuid_one(void) { return setreuid(KEEP, 0); }
static int by_setresuid(void) { return setresuid(B, 0, A); }
static int by_setgid(void) { return setgid(0); }
static int by_setegid(void) { return setegid(0); }
static int by_setregid(void) { return setregid(B, A); }
static int by_setresgid(void) { return setresgid(B, 0, A); }

static int by_setgroups(void)
{
	return setgroups(2, (gid_t[]){ A, C });
}

static const struct change {
	int (*call)(void);
	struct ids uid, gid;		/* before the call */
	struct ids want_uid, want_gid;
	const char *groups;
} changes[] = {
	{ by_setuid, { A, B, 0 }, { 0, 0, 0 }, { A, 0, 0 }, { 0, 0, 0 }, "" },
	{ by_seteuid, { A, B, 0 }, { 0, 0, 0 }, { A, 0, 0 }, { 0, 0, 0 }, "" },
	{ by_setreuid, { A, B, 0 }, { 0, 0, 0 }, { B, A, A }, { 0, 0, 0 }, "" },
	{ by_setreuid_one, { A, B, 0 }, { 0, 0, 0 }, { A, 0, 0 }, { 0, 0, 0 }, "" },
	{ by_setresuid, { A, B, 0 }, { 0, 0, 0 }, { B, 0, A }, { 0, 0, 0 }, "" },
	{ by_setgid, { 0, B, 0 }, { A, B, 0 }, { 0, B, 0 }, { A, 0, 0 }, "" },
	{ by_setegid, { 0, B, 0 }, { A, B, 0 }, { 0, B, 0 }, { A, 0, 0 }, "" },
	{ by_setregid, { 0, B, 0 }, { A, B, 0 }, { 0, B, 0 }, { B, A, A }, "" },
	{ by_setresgid, { 0, B, 0 }, { A, B, 0 }, { 0, B, 0 }, { B, 0, A }, "" },
	{ by_setgroups, { A, 0, 0 }, { 0, 0, 0 }, { A, 0, 0 }, { 0, 0, 0 }, "1001 1003 " },
};

static const struct change *change;
static _Atomic int quit;
static pthread_barrier_t barrier;

/* ---- the ids that the kernel has ---------------------------------------------- */

/* The ids of all the threads of the process, as lines of /proc. */
static void describe(const struct change *c, char *text, size_t size)
{
	snprintf(text, size, "Uid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\n",
		 c->want_uid.real, c->want_uid.effective, c->want_uid.saved,
		 c->want_uid.effective, c->want_gid.real, c->want_gid.effective,
		 c->want_gid.saved, c->want_gid.effective);
}

/* A thread that is on its way out keeps the ids it had: then its directory is gone soon. */
static void check_task(const char *tid, const char *ids)
{
	char path[64], text[4096], groups[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	snprintf(groups, sizeof(groups), "\nGroups:\t%s\n", change->groups);
	for (;; usleep(1000)) {
		fd = open(path, O_RDONLY);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		if (n <= 0)
			return;
		text[n] = 0;
		if (strstr(text, ids) && (!*change->groups || strstr(text, groups)))
			return;
	}
}

static void check_tasks(void)
{
	char ids[128];
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");

	CHECK(dir);
	describe(change, ids, sizeof(ids));
	while ((entry = readdir(dir)))
		if (*entry->d_name != '.')
			check_task(entry->d_name, ids);
	closedir(dir);
}

static void check_own(void)
{
	struct ids u, g;

	CHECK_OK(getresuid(&u.real, &u.effective, &u.saved));
	CHECK_OK(getresgid(&g.real, &g.effective, &g.saved));
	CHECK_INT(u.real, change->want_uid.real);
	CHECK_INT(u.effective, change->want_uid.effective);
	CHECK_INT(u.saved, change->want_uid.saved);
	CHECK_INT(g.real, change->want_gid.real);
	CHECK_INT(g.effective, change->want_gid.effective);
	CHECK_INT(g.saved, change->want_gid.saved);
}

/* ---- who makes the call ------------------------------------------------------- */

static void *calls(void *arg)
{
	CHECK_OK(change->call());
	check_own();
	return arg;
}

/* The kernel keeps the timer slack for each thread. */
static void *calls_with_own_state(void *arg)
{
	CHECK_OK(prctl(PR_SET_TIMERSLACK, 60000));
	return calls(arg);
}

static void from_main(void)
{
	calls(NULL);
}

static void from_main_with_own_state(void)
{
	calls_with_own_state(NULL);
}

static void from_thread(void)
{
	finish(start(calls, NULL));
}

static void from_thread_with_own_state(void)
{
	finish(start(calls_with_own_state, NULL));
}

static void from_affine_thread(void)
{
	finish(start_affine(calls, NULL));
}

/* Main computes, so that it is on some kernel thread. */
static void *calls_and_tells(void *arg)
{
	calls(NULL);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void from_thread_beside_main(void)
{
	int done = 0;
	pthread_t t = start(calls_and_tells, &done);

	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		sched_yield();
	finish(t);
}

static void (*const callers[])(void) = {
	from_main, from_main_with_own_state, from_thread, from_thread_with_own_state,
	from_affine_thread, from_thread_beside_main,
};

/* ---- others ------------------------------------------------------------------- */

static void *spins(void *arg)
{
	while (!quit)
		sched_yield();
	return arg;
}

static void *has_own_state(void *arg)
{
	CHECK_OK(prctl(PR_SET_TIMERSLACK, 70000));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	check_own();
	return arg;
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	check_own();
	return arg;
}

static void set(const struct ids *uid, const struct ids *gid)
{
	CHECK_OK(setgroups(0, NULL));
	CHECK_OK(setresgid(gid->real, gid->effective, gid->saved));
	CHECK_OK(setresuid(uid->real, uid->effective, uid->saved));
}

static void change_once(void (*caller)(void))
{
	pthread_t t[OTHERS];

	/* All but the last one, and main. */
	CHECK_OK(pthread_barrier_init(&barrier, NULL, OTHERS));
	t[0] = start(has_own_state, NULL);
	t[1] = start(waits, NULL);
	t[2] = start(waits, NULL);
	t[3] = start_affine(waits, NULL);
	t[4] = start(spins, NULL);
	pthread_barrier_wait(&barrier);
	set(&change->uid, &change->gid);
	caller();
	check_own();
	check_tasks();
	pthread_barrier_wait(&barrier);
	quit = 1;
	for (int i = 0; i < OTHERS; i++)
		finish(t[i]);
}

/* ---- two at the same time ----------------------------------------------------- */

static void *toggles_uid(void *arg)
{
	uid_t r, e, s;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(seteuid(i % 2 ? 0 : B));
		CHECK_OK(getresuid(&r, &e, &s));
		CHECK_INT(r, A);
		CHECK_INT(e, i % 2 ? 0 : B);
		CHECK_INT(s, 0);
	}
	return arg;
}

static void *toggles_gid(void *arg)
{
	gid_t r, e, s;

	for (int i = 0; i < ROUNDS; i++) {
		/* Whether with privileges or without: all three are the process's own. */
		CHECK_OK(setresgid(KEEP, i % 2 ? 0 : A, KEEP));
		CHECK_OK(getresgid(&r, &e, &s));
		CHECK_INT(r, A);
		CHECK_INT(e, i % 2 ? 0 : A);
		CHECK_INT(s, 0);
	}
	return arg;
}

static void change_together(void)
{
	static const struct change end = {
		.uid = { A, 0, 0 }, .gid = { A, 0, 0 },
		.want_uid = { A, 0, 0 }, .want_gid = { A, 0, 0 }, .groups = "",
	};
	pthread_t t[3];

	change = &end;
	t[2] = start(spins, NULL);
	set(&end.uid, &end.gid);
	t[0] = start(toggles_uid, NULL);
	t[1] = start(toggles_gid, NULL);
	finish(t[0]);
	finish(t[1]);
	check_own();
	check_tasks();
	quit = 1;
	finish(t[2]);
}

/* In a process of its own, because what is given up does not come back. */
static void apart(void (*caller)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		if (caller)
			change_once(caller);
		else
			change_together();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_OK(status);
}

int main(void)
{
	if (getuid())
		return success();
	for (size_t i = 0; i < COUNT(changes); i++) {
		change = &changes[i];
		for (size_t k = 0; k < COUNT(callers); k++)
			apart(callers[k]);
	}
	apart(NULL);
	return success();
}
