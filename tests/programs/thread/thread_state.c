/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_state.c - state that the kernel keeps for each thread stays with
 * the thread that set it, is inherited by threads that it makes, and reaches no other thread.
 */
#include "check.h"
#include "beside.h"
#include "granted.h"

#include <dlfcn.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { IDLE_CLASS = 3 << 13 };

/* One kind of state: set it, and ask whether the calling thread has it. */
struct state {
	const char *name;
	bool (*usable)(void);
	void (*set)(void);
	bool (*has)(void);
};

static bool always(void)
{
	return true;
}

static bool is_root(void)
{
	return geteuid() == 0;
}

static bool has_two_cpus(void)
{
	cpu_set_t cpus;

	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	return CPU_COUNT(&cpus) > 1;
}

static void set_nice(void) { CHECK_OK(setpriority(PRIO_PROCESS, 0, 7)); }
static bool has_nice(void) { return getpriority(PRIO_PROCESS, (id_t)gettid()) == 7; }

static void set_slack(void) { CHECK_OK(prctl(PR_SET_TIMERSLACK, 123456, 0, 0, 0)); }
static bool has_slack(void) { return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 123456; }

static void set_personality(void) { CHECK(personality(ADDR_NO_RANDOMIZE) >= 0); }
static bool has_personality(void) { return personality(0xffffffff) == ADDR_NO_RANDOMIZE; }

static void set_ioprio(void) { CHECK_OK(syscall(SYS_ioprio_set, 1, 0, IDLE_CLASS)); }
static bool has_ioprio(void) { return syscall(SYS_ioprio_get, 1, 0) == IDLE_CLASS; }

static void set_tid_ioprio(void) { CHECK_OK(syscall(SYS_ioprio_set, 1, gettid(), IDLE_CLASS)); }
static bool has_tid_ioprio(void) { return syscall(SYS_ioprio_get, 1, gettid()) == IDLE_CLASS; }

static void set_batch(void)
{
	struct sched_param param = { 0 };

	CHECK_OK(pthread_setschedparam(pthread_self(), SCHED_BATCH, &param));
}

static bool has_batch(void)
{
	struct sched_param param;
	int policy;

	CHECK_OK(pthread_getschedparam(pthread_self(), &policy, &param));
	CHECK_INT(sched_getscheduler(gettid()), policy);
	return policy == SCHED_BATCH;
}

/* The first version of the kernel's struct sched_attr. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

/* libc's functions, in newer ones. */
static int get_attr(pid_t tid, struct attributes *attr, unsigned size, unsigned flags)
{
	int (*get)(pid_t tid, struct attributes *attr, unsigned size, unsigned flags);

	*(void **)&get = dlsym(RTLD_DEFAULT, "sched_getattr");
	return get ? get(tid, attr, size, flags) :
		     (int)syscall(SYS_sched_getattr, tid, attr, size, flags);
}

static int set_attr(pid_t tid, struct attributes *attr, unsigned flags)
{
	int (*set)(pid_t tid, struct attributes *attr, unsigned flags);

	*(void **)&set = dlsym(RTLD_DEFAULT, "sched_setattr");
	return set ? set(tid, attr, flags) : (int)syscall(SYS_sched_setattr, tid, attr, flags);
}

static void get_attributes(struct attributes *attr)
{
	CHECK_OK(syscall(SYS_sched_getattr, gettid(), attr, sizeof(*attr), 0));
	CHECK_INT(attr->size, sizeof(*attr));
}

static void set_attributes(void)
{
	struct attributes attr;

	get_attributes(&attr);
	attr.policy = SCHED_BATCH;
	attr.nice = 9;
	CHECK_OK(syscall(SYS_sched_setattr, gettid(), &attr, 0));
}

static void set_by_function(void)
{
	struct attributes attr;

	CHECK_OK(get_attr(0, &attr, sizeof(attr), 0));
	attr.policy = SCHED_BATCH;
	attr.nice = 9;
	CHECK_OK(set_attr(0, &attr, 0));
}

static bool has_attributes(void)
{
	struct attributes attr;

	get_attributes(&attr);
	CHECK_INT(sched_getscheduler(gettid()), (int)attr.policy);
	CHECK_INT(getpriority(PRIO_PROCESS, 0), attr.nice);
	return attr.policy == SCHED_BATCH && attr.nice == 9;
}

static void set_cpu(void)
{
	cpu_set_t one;
	const int cpu = first_cpu(&one);

	CHECK_OK(pthread_setaffinity_np(pthread_self(), sizeof(one), &one));
	CHECK_INT(sched_getcpu(), cpu);
}

static bool has_cpu(void)
{
	cpu_set_t cpus, again;

	CHECK_OK(pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus));
	CHECK_OK(sched_getaffinity(gettid(), sizeof(again), &again));
	CHECK(CPU_EQUAL(&cpus, &again));
	return CPU_COUNT(&cpus) == 1;
}

static void set_fsuid(void) { setfsuid(1234); }
static bool has_fsuid(void) { return setfsuid((uid_t)-1) == 1234; }

static void set_uid(void) { CHECK_OK(syscall(SYS_setresuid, -1, 4321, -1)); }
static bool has_uid(void) { return geteuid() == 4321; }

static void set_fsgid(void) { setfsgid(1234); }
static bool has_fsgid(void) { return setfsgid((gid_t)-1) == 1234; }

/* libc has them, its headers do not. */
int capget(void *header, void *data);
int capset(void *header, const void *data);

static uint32_t capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	CHECK_OK(capget(&header, data));
	return data[0].effective;
}

static bool has_caps(void) { return capabilities() == 0; }
static bool has_any_cap(void) { return capabilities() != 0; }

static void set_caps(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 }, wrong = { 0, 0 };
	struct __user_cap_data_struct data[2];

	CHECK_OK(capget(&header, data));
	CHECK_ERR(capset(&wrong, data), EINVAL);
	header.version = _LINUX_CAPABILITY_VERSION_3;
	CHECK_ERR(capset(&header, NULL), EFAULT);
	/* Not for another thread. */
	header.pid = getppid();
	CHECK_ERR(capset(&header, data), EPERM);
	header.pid = 0;
	data[0].effective = data[1].effective = 0;
	CHECK_OK(capset(&header, data));
}

static const struct state states[] = {
	{ "nice value", always, set_nice, has_nice },
	{ "timer slack", always, set_slack, has_slack },
	{ "personality", always, set_personality, has_personality },
	{ "I/O priority", always, set_ioprio, has_ioprio },
	{ "I/O priority by tid", always, set_tid_ioprio, has_tid_ioprio },
	{ "policy", always, set_batch, has_batch },
	{ "attributes", always, set_attributes, has_attributes },
	{ "attributes by function", always, set_by_function, has_attributes },
	{ "affinity", has_two_cpus, set_cpu, has_cpu },
	{ "file system's user", is_root, set_fsuid, has_fsuid },
	{ "file system's group", is_root, set_fsgid, has_fsgid },
	{ "effective user", is_root, set_uid, has_uid },
	{ "capabilities", has_any_cap, set_caps, has_caps },
	{ "host name", find_other_name, set_name, has_name },
	{ "protection key", has_keys, set_key, has_rights },
#ifdef __x86_64__
	{ "I/O ports", may_ports, set_port, has_port },
	{ "I/O level", may_level, set_level, has_port },
#endif
};

static const struct state *current;
static _Atomic bool done;

static void *inherits(void *arg)
{
	usleep(500);
	CHECK(current->has());
	return arg;
}

/* Waits where it leaves its kernel thread to others, if it can. */
static void *changes(void *arg)
{
	char c;

	CHECK(!current->has());
	current->set();
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(current->has());
		CHECK_INT(write(pipes[0][1], "x", 1), 1);
		CHECK_INT(read(pipes[1][0], &c, 1), 1);
		usleep(50);
	}
	CHECK(current->has());
	finish(start(inherits, NULL));
	return arg;
}

static void *others(void *arg)
{
	while (!done) {
		CHECK(!current->has());
		usleep(100);
	}
	return arg;
}

static void *echo(void *arg)
{
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(read(pipes[0][0], &c, 1), 1);
		CHECK_INT(write(pipes[1][1], &c, 1), 1);
	}
	CHECK(!current->has());
	return arg;
}

static pthread_t start_changer(bool own_stack)
{
	static char stack[1 << 18] __attribute__((aligned(4096)));
	pthread_attr_t attr;
	pthread_t thread;

	CHECK_OK(pthread_attr_init(&attr));
	if (own_stack)
		CHECK_OK(pthread_attr_setstack(&attr, stack, sizeof(stack)));
	CHECK_OK(pthread_create(&thread, &attr, changes, NULL));
	CHECK_OK(pthread_attr_destroy(&attr));
	return thread;
}

static void run(bool own_stack)
{
	pthread_t threads[OTHERS], changer, echoer;

	done = false;
	for (int k = 0; k < OTHERS; k++)
		threads[k] = start(others, NULL);
	echoer = start(echo, NULL);
	changer = start_changer(own_stack);
	finish(changer);
	finish(echoer);
	done = true;
	for (int k = 0; k < OTHERS; k++)
		finish(threads[k]);
	CHECK(!current->has());
}

/* That which the thread began with is no change. */
static void *all_cpus(void *arg)
{
	struct perf_event_attr counter = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(counter),
		.config = PERF_COUNT_SW_TASK_CLOCK,
	};
	struct sched_param param = { 0 };
	struct timespec interval;
	struct attributes attr;
	cpu_set_t cpus, none;
	int fd;

	CHECK_OK(pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus));
	CHECK_OK(pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus));
	CHECK_OK(sched_setaffinity(0, sizeof(cpus), &cpus));
	CPU_ZERO(&none);
	CHECK_INT(pthread_setaffinity_np(pthread_self(), sizeof(none), &none), EINVAL);
	CHECK_OK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param));
	CHECK_OK(pthread_setschedprio(pthread_self(), 0));
	CHECK_INT(pthread_setschedprio(pthread_self(), 5), EINVAL);
	param.sched_priority = 1;
	CHECK_INT(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param), EINVAL);
	/* As GLib does in each thread of a pool. */
	get_attributes(&attr);
	CHECK_OK(syscall(SYS_sched_setattr, gettid(), &attr, 0));
	CHECK_OK(syscall(SYS_sched_setattr, 0, &attr, 0));
	CHECK_ERR(syscall(SYS_sched_setattr, gettid(), NULL, 0), EINVAL);
	CHECK_ERR(syscall(SYS_sched_setattr, gettid(), (void *)8, 0), EFAULT);
	CHECK_ERR(syscall(SYS_sched_setattr, gettid(), &attr, 1), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getattr, gettid(), &attr, 8, 0), EINVAL);
	attr.size = 40;
	CHECK_ERR(syscall(SYS_sched_setattr, gettid(), &attr, 0), E2BIG);
	CHECK_INT(syscall(SYS_getpriority, PRIO_PROCESS, gettid()),
		  syscall(SYS_getpriority, PRIO_PROCESS, 0));
	CHECK_OK(syscall(SYS_sched_rr_get_interval, gettid(), &interval));
	CHECK_OK(sched_rr_get_interval(gettid(), &interval));
	CHECK_OK(sched_rr_get_interval(0, &interval));
	CHECK_ERR(sched_rr_get_interval(-1, &interval), EINVAL);
	CHECK_ERR(sched_rr_get_interval((1 << 30) - 1, &interval), ESRCH);
	get_attributes(&attr);
	CHECK_OK(set_attr(gettid(), &attr, 0));
	CHECK_ERR(set_attr(0, NULL, 0), EINVAL);
	CHECK_ERR(set_attr(0, &attr, 1), EINVAL);
	CHECK_ERR(set_attr((1 << 30) - 1, &attr, 0), ESRCH);
	CHECK_ERR(get_attr(0, &attr, 8, 0), EINVAL);
	CHECK_ERR(get_attr(0, NULL, sizeof(attr), 0), EINVAL);
	CHECK_ERR(get_attr((1 << 30) - 1, &attr, sizeof(attr), 0), ESRCH);
	/* A counter of what the thread does. */
	fd = (int)syscall(SYS_perf_event_open, &counter, 0, -1, -1, 0);
	CHECK_INT(syscall(SYS_perf_event_open, &counter, gettid(), -1, -1, 0) >= 0, fd >= 0);
	CHECK_ERR(sched_getscheduler(-1), EINVAL);
	CHECK_ERR(sched_getscheduler((1 << 30) - 1), ESRCH);
	return arg;
}

/* What the keyring of the process has is the thread's that made the keyring. */
static void *has_key(void *arg)
{
	long key = syscall(SYS_add_key, "user", "k", "v", 1, KEY_SPEC_PROCESS_KEYRING);

	if (key < 0) {
		CHECK(errno == ENOSYS || errno == EPERM || errno == EDQUOT);
		return arg;
	}
	for (int i = 0; i < ROUNDS; i++)
		usleep(50);
	CHECK_INT(syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_PROCESS_KEYRING, "user", "k", 0),
		  key);
	return arg;
}

int main(void)
{
	beside_sleepers(has_key);
	CHECK_OK(pipe(pipes[0]));
	CHECK_OK(pipe(pipes[1]));
	for (size_t i = 0; i < COUNT(states); i++) {
		current = &states[i];
		if (!current->usable()) {
			printf("%s: not here\n", current->name);
			continue;
		}
		run(false);
		run(true);
	}
	finish(start(all_cpus, NULL));
	all_cpus(NULL);
	return success();
}
