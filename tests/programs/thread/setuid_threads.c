/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/setuid_threads.c - a change of the process's user or group applies to
 * all threads. Changes need root; without root, only calls that every user may make are tried.
 *
 *	setuid_threads [ROUNDS]: of those parts that try often, 300
 */
#include "check.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define THREADS 6
#define SOMEBODY 65534

static int rounds = 300;
static pthread_barrier_t barrier;
static uid_t want_uid;
static gid_t want_gid;

static void check_ids(void)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	CHECK_OK(getresuid(&r, &e, &s));
	CHECK_OK(getresgid(&rg, &eg, &sg));
	CHECK_INT(e, want_uid);
	CHECK_INT(eg, want_gid);
}

static void *follows(void *arg)
{
	int leader = arg != NULL;

	for (int i = 0; i < 3; i++) {
		pthread_barrier_wait(&barrier);
		if (leader) {
			want_gid = i == 0 ? SOMEBODY : getgid();
			CHECK_OK(setegid(want_gid));
			want_uid = i == 0 ? SOMEBODY : getuid();
			CHECK_OK(seteuid(want_uid));
			/* Back to group 0 needs root again. */
			if (i)
				CHECK_OK(setegid(want_gid));
		}
		pthread_barrier_wait(&barrier);
		check_ids();
		usleep(500);
		check_ids();
		pthread_barrier_wait(&barrier);
		if (leader && i == 0) {
			want_uid = getuid();
			CHECK_OK(seteuid(want_uid));
		}
		pthread_barrier_wait(&barrier);
		check_ids();
	}
	return NULL;
}

static void *new_thread(void *arg)
{
	check_ids();
	return arg;
}

static void *drops(void *arg)
{
	CHECK_OK(setresgid(SOMEBODY, SOMEBODY, SOMEBODY));
	CHECK_OK(setresuid(SOMEBODY, SOMEBODY, SOMEBODY));
	return arg;
}

/* The ids as each thread has them, and no two calls set the same ones. */
struct ids {
	uid_t uid[3];
	gid_t gid[3];
	gid_t groups[8];
	int count;
};

static struct ids now_set;

static struct ids own_ids(void)
{
	struct ids ids;

	memset(&ids, 0, sizeof(ids));
	CHECK_OK(getresuid(&ids.uid[0], &ids.uid[1], &ids.uid[2]));
	CHECK_OK(getresgid(&ids.gid[0], &ids.gid[1], &ids.gid[2]));
	ids.count = getgroups(COUNT(ids.groups), ids.groups);
	return ids;
}

enum { STEPS = 6 };

static void step(int i)
{
	static const gid_t list[] = { SOMEBODY, 7 };

	switch (i) {
	case 0:
		CHECK_ERR(setgroups(1 << 20, list), EINVAL);
		CHECK_ERR(setgroups(1, NULL), EFAULT);
		CHECK_OK(setgroups(COUNT(list), list));
		break;
	case 1:
		CHECK_OK(setregid(7, (gid_t)-1));
		break;
	case 2:
		CHECK_OK(setregid((gid_t)-1, SOMEBODY));
		break;
	case 3:
		CHECK_ERR(setgid((gid_t)-1), EINVAL);
		CHECK_OK(setgid(7));
		break;
	case 4:
		CHECK_OK(setreuid((uid_t)-1, SOMEBODY));
		CHECK_ERR(setgroups(0, NULL), EPERM);
		CHECK_ERR(setgid(0), EPERM);
		CHECK_ERR(setregid(0, 0), EPERM);
		break;
	default:
		CHECK_OK(setreuid((uid_t)-1, 0));
		CHECK_OK(setreuid(SOMEBODY, SOMEBODY));
		CHECK_ERR(setreuid(0, 0), EPERM);
	}
	now_set = own_ids();
	printf("%u %u %u, %u %u %u, %d %u\n", now_set.uid[0], now_set.uid[1], now_set.uid[2],
	       now_set.gid[0], now_set.gid[1], now_set.gid[2], now_set.count, now_set.groups[0]);
}

static void *steps(void *is_leader)
{
	for (int i = 0; i < STEPS; i++) {
		struct ids own;

		if (is_leader)
			step(i);
		pthread_barrier_wait(&barrier);
		own = own_ids();
		CHECK_OK(memcmp(&own, &now_set, sizeof(own)));
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void each_call(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		t[i] = start(steps, i == 1 ? &barrier : NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
}

/* Some at a time wait for each other, inside libc, while others are made. */
static void *sets_the_same(void *arg)
{
	CHECK_OK(setuid(getuid()));
	return arg;
}

static void crowd(void)
{
	pthread_t t[5];

	for (int i = 0; i < 200; i++) {
		for (size_t k = 0; k < COUNT(t); k++)
			t[k] = start(sets_the_same, NULL);
		for (size_t k = 0; k < COUNT(t); k++)
			finish(t[k]);
	}
	puts("crowd");
}

static void *is_refused(void *quit)
{
	while (!__atomic_load_n((int *)quit, __ATOMIC_RELAXED))
		CHECK_ERR(setuid(-1), EINVAL);
	return NULL;
}

/* A thread that fails has its own errno. */
static void own_errno(void)
{
	pthread_t t[THREADS];
	int quit = 0;

	for (int i = 0; i < THREADS; i++)
		t[i] = start(is_refused, &quit);
	for (int i = 0; i < rounds; i++) {
		usleep(100); /* libc's signal may interrupt it */
		errno = E2BIG;
		for (int k = 0; k < 100000; k++)
			CHECK_INT(*(volatile int *)&errno, E2BIG);
	}
	__atomic_store_n(&quit, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	puts("errno");
}

/* ---- other signals meanwhile, also from a thread that may not send them with a value ---- */

enum { BUSY = 3 };

static pthread_t busy[BUSY];
static volatile sig_atomic_t enough;

static void nothing(int sig)
{
	(void)sig;
}

static void *computes(void *arg)
{
	while (!enough)
		continue;
	return arg;
}

static void *signals(void *filtered)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_tgsigqueueinfo, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { COUNT(code), code };

	if (filtered) {
		CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		CHECK_OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
	}
	for (int i = 0; !enough; i++)
		CHECK_INT(pthread_kill(busy[i % BUSY], i & 1 ? SIGUSR1 : SIGUSR2), 0);
	return NULL;
}

static void among_signals(void)
{
	struct sigaction sa = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	pthread_t filtered, other;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	sa.sa_flags = 0;
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	for (int i = 0; i < BUSY; i++)
		busy[i] = start(computes, NULL);
	filtered = start(signals, &filtered);
	other = start(signals, NULL);
	for (int i = 0; i < rounds; i++)
		CHECK_OK(setuid(getuid()));
	enough = 1;
	finish(filtered);
	finish(other);
	for (int i = 0; i < BUSY; i++)
		finish(busy[i]);
	puts("signals");
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	int status;
	pid_t pid;

	if (argc > 1)
		rounds = atoi(argv[1]);
	CHECK(rounds > 0);
	want_uid = geteuid();
	want_gid = getegid();
	check_ids();
	if (want_uid == 0) {
		CHECK_OK(pthread_barrier_init(&barrier, NULL, THREADS));
		for (int i = 0; i < THREADS; i++)
			t[i] = start(follows, i == 3 ? &barrier : NULL);
		for (int i = 0; i < THREADS; i++)
			finish(t[i]);
		check_ids();
		/* For good, from a thread: main and threads to come as well. */
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			finish(start(drops, NULL));
			want_uid = want_gid = SOMEBODY;
			check_ids();
			finish(start(new_thread, NULL));
			CHECK_ERR(seteuid(0), EPERM);
			_exit(0);
		}
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_OK(status);
		fflush(stdout);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			each_call();
			exit(0);
		}
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_OK(status);
	} else {
		CHECK_OK(seteuid(geteuid()));
		CHECK_OK(setegid(getegid()));
		CHECK_ERR(setuid(0), EPERM);
	}
	finish(start(new_thread, NULL));
	crowd();
	own_errno();
	among_signals();
	return success();
}
