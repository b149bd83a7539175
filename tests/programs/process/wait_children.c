/* SPDX-License-Identifier: MIT */
/* tests/programs/process/wait_children.c - every way to wait for a child, and to make one. */
#include "check.h"

#include <limits.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;
static struct event begun = EVENT_INIT;

/*
 * A child that ends with this status once it is told.  Not by closing the pipe: other
 * children have a copy of it.
 */
static pid_t child(int status, int gate[2])
{
	pid_t pid;

	CHECK_OK(pipe2(gate, O_CLOEXEC));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char c;

		_exit(read(gate[0], &c, 1) == 1 ? status : 99);
	}
	close(gate[0]);
	return pid;
}

static void open_gate(int fd)
{
	CHECK_INT(write(fd, "x", 1), 1);
	close(fd);
}

struct opener {
	int fd;
};

static void *opens_gate(void *arg)
{
	struct opener *o = arg;

	settle();
	open_gate(o->fd);
	return NULL;
}

static void each_way(int way)
{
	struct rusage usage;
	siginfo_t info;
	int gate[2], status = -1;
	pid_t pid = child(10 + way, gate);
	struct opener o = { gate[1] };
	pthread_t t = start(opens_gate, &o);

	memset(&usage, 0xff, sizeof(usage));
	memset(&info, 0xff, sizeof(info));
	switch (way) {
	case 0:
		CHECK_INT(waitpid(pid, &status, 0), pid);
		break;
	case 1:
		CHECK_INT(wait4(pid, &status, 0, &usage), pid);
		CHECK(usage.ru_utime.tv_sec >= 0 && usage.ru_utime.tv_sec < 1000);
		break;
	case 2:
		CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED));
		CHECK_INT(info.si_pid, pid);
		CHECK_INT(info.si_code, CLD_EXITED);
		status = info.si_status << 8;
		break;
	case 3:
		/* Only looked at: it can be waited for again. */
		CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
		CHECK_INT(info.si_pid, pid);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		break;
	case 4:
		CHECK_INT(waitpid(pid, NULL, 0), pid);
		status = (10 + way) << 8;
		break;
	case 5:
		CHECK_OK(waitid(P_PID, (id_t)pid, NULL, WEXITED));
		status = (10 + way) << 8;
		break;
	default:
		CHECK_INT(waitpid(pid, &status, WUNTRACED | WCONTINUED), pid);
		break;
	}
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 10 + way);
	CHECK_ERR(waitpid(pid, &status, 0), ECHILD);
	finish(t);
}

static void *ways(void *arg)
{
	for (int way = 0; way < 7; way++)
		each_way(way);
	return arg;
}

/* Any child; only while this thread alone has some. */
static void *any_child(void *arg)
{
	struct rusage usage;
	siginfo_t info;
	int gate[2], status;
	struct opener o;
	pid_t pid;
	pthread_t t;

	for (int i = 0; i < 5; i++) {
		pid = child(1, gate);
		if (i == 4)
			CHECK_OK(setpgid(pid, pid));
		o.fd = gate[1];
		t = start(opens_gate, &o);
		switch (i) {
		case 0: CHECK_INT(wait(&status), pid); break;
		case 1: CHECK_INT(wait3(&status, 0, &usage), pid); break;
		case 2: CHECK_INT(waitpid(-1, &status, 0), pid); break;
		case 3:
			CHECK_OK(waitid(P_ALL, 0, &info, WEXITED));
			CHECK_INT(info.si_pid, pid);
			status = info.si_status << 8;
			break;
		default: CHECK_INT(waitpid(-pid, &status, 0), pid); break;
		}
		CHECK_INT(WEXITSTATUS(status), 1);
		finish(t);
	}
	CHECK_ERR(wait(&status), ECHILD);
	CHECK_ERR(wait3(&status, 0, NULL), ECHILD);
	CHECK_ERR(wait4(-1, &status, 0, NULL), ECHILD);
	CHECK_ERR(waitid(P_ALL, 0, &info, WEXITED), ECHILD);
	CHECK_ERR(waitid(P_ALL, 0, &info, 0), EINVAL);
	CHECK_ERR(waitid((idtype_t)77, 0, &info, WEXITED), EINVAL);
	CHECK_ERR(waitpid(-1, &status, 0x800000), EINVAL);
	CHECK_ERR(waitpid(999999, &status, 0), ECHILD);
	return arg;
}

static void *stops(void *arg)
{
	siginfo_t info;
	int gate[2], status;
	pid_t pid = child(0, gate);

	CHECK_OK(kill(pid, SIGSTOP));
	CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_INT(WSTOPSIG(status), SIGSTOP);
	CHECK_OK(kill(pid, SIGCONT));
	CHECK_INT(waitpid(pid, &status, WCONTINUED), pid);
	CHECK(WIFCONTINUED(status));
	CHECK_OK(kill(pid, SIGSTOP));
	CHECK_OK(waitid(P_PID, (id_t)pid, &info, WSTOPPED));
	CHECK_INT(info.si_code, CLD_STOPPED);
	CHECK_INT(waitpid(pid, &status, WNOHANG), 0);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGKILL);
	close(gate[1]);
	/* Reaped, though the status could not be written. */
	pid = child(0, gate);
	open_gate(gate[1]);
	CHECK_ERR(waitpid(pid, (int *)16, 0), EFAULT);
	return arg;
}

/* The child ends while the call waits, and is gone though the call fails. */
static void unwritable(siginfo_t *info, idtype_t type, int options)
{
	int gate[2], status;
	pid_t pid = child(1, gate);
	struct opener o = { gate[1] };
	pthread_t t;

	if (type == P_PGID)
		CHECK_OK(setpgid(pid, pid));
	t = start(opens_gate, &o);
	CHECK_ERR(waitid(type, (id_t)pid, info, WEXITED | options), EFAULT);
	CHECK_ERR(waitpid(pid, &status, WNOHANG), ECHILD);
	finish(t);
}

static void *bad_arguments(void *arg)
{
	siginfo_t *fixed = mmap(NULL, sizeof(*fixed), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), info;
	int status;

	CHECK(fixed != MAP_FAILED);
	unwritable((siginfo_t *)16, P_PID, 0);
	unwritable(fixed, P_PID, 0);
	unwritable(fixed, P_PGID, 0);
	unwritable(fixed, P_PID, __WNOTHREAD);
	/* Without a child, too, the kernel stores. */
	CHECK_ERR(waitid(P_PID, 999999, fixed, WEXITED), EFAULT);
	CHECK_ERR(waitid(P_PID, 999999, fixed, WEXITED | __WNOTHREAD), EFAULT);
	CHECK_OK(munmap(fixed, sizeof(*fixed)));
	memset(&info, 0xff, sizeof(info));
	CHECK_ERR(waitid(P_PID, 999999, &info, WEXITED), ECHILD);
	CHECK(!info.si_signo && !info.si_code && !info.si_pid && !info.si_uid && !info.si_status);
	/* There is no group of this number. */
	CHECK_ERR(waitpid(INT_MIN, &status, 0), ESRCH);
	CHECK_ERR(waitpid(INT_MIN, &status, __WNOTHREAD), ESRCH);
	CHECK_ERR(waitpid(INT_MIN, &status, WNOHANG), ESRCH);
	CHECK_ERR(waitpid(INT_MIN, &status, __WNOTHREAD | 0x800000), EINVAL);
	CHECK_ERR(waitid(P_PGID, (id_t)INT_MIN, &info, WEXITED), EINVAL);
	return arg;
}

static volatile sig_atomic_t handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static pid_t slow_child;

static void *waits_long(void *arg)
{
	int status;

	event_post(&begun);
	if (arg)
		CHECK_ERR(waitpid(slow_child, &status, 0), EINTR);
	else
		CHECK_INT(waitpid(slow_child, &status, 0), slow_child);
	return NULL;
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = handler };
	int gate[2];
	pthread_t t;

	/* Without SA_RESTART it ends the call, with it the call goes on. */
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	slow_child = child(0, gate);
	t = start(waits_long, "");
	event_wait(&begun, 1);
	settle();
	while (pthread_tryjoin_np(t, NULL) == EBUSY) {
		CHECK_OK(pthread_kill(t, SIGUSR1));
		settle();
	}
	CHECK(handled > 0);
	sa.sa_flags = SA_RESTART;
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	t = start(waits_long, NULL);
	event_wait(&begun, 2);
	settle();
	handled = 0;
	CHECK_OK(pthread_kill(t, SIGUSR1));
	while (!handled)
		settle();
	settle();
	CHECK_INT(pthread_tryjoin_np(t, NULL), EBUSY);
	open_gate(gate[1]);
	finish(t);
}

/* Cancelled while it waits; the child stays. */
static void cancelled(void)
{
	void *value;
	int gate[2], status;
	pthread_t t;

	slow_child = child(3, gate);
	t = start(waits_long, NULL);
	event_wait(&begun, 3);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK_OK(pthread_join(t, &value));
	CHECK(value == PTHREAD_CANCELED);
	open_gate(gate[1]);
	CHECK_INT(waitpid(slow_child, &status, 0), slow_child);
	CHECK_INT(WEXITSTATUS(status), 3);
}

static void *makes(void *arg)
{
	char *args[] = { "sh", "-c", "exit 5", NULL };
	char line[64];
	pid_t pid;
	int status;
	FILE *f;

	CHECK_OK(posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 5);
	CHECK_OK(posix_spawnp(&pid, "sh", NULL, NULL, args, environ));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 5);
	CHECK_INT(posix_spawn(&pid, "/nowhere", NULL, NULL, args, environ), ENOENT);
	f = popen("sleep 0.02; echo hello", "r");
	CHECK(f != NULL);
	CHECK(fgets(line, sizeof(line), f) != NULL);
	CHECK_OK(strcmp(line, "hello\n"));
	CHECK_INT(pclose(f), 0);
	f = popen("cat >/dev/null; exit 4", "w");
	CHECK(f != NULL);
	CHECK(fputs("text", f) >= 0);
	CHECK_INT(WEXITSTATUS(pclose(f)), 4);
	CHECK_INT(WEXITSTATUS(system("sleep 0.02; exit 6")), 6);
	CHECK(system(NULL) != 0);
	return arg;
}

int main(void)
{
	pthread_t t[8];

	finish(start(any_child, NULL));
	any_child(NULL);
	puts("any");
	for (int i = 0; i < 8; i++)
		t[i] = start(i % 4 == 3 ? stops : ways, NULL);
	for (int i = 0; i < 8; i++)
		finish(t[i]);
	puts("each");
	finish(start(bad_arguments, NULL));
	bad_arguments(NULL);
	interrupted();
	cancelled();
	puts("interrupted");
	for (int i = 0; i < 4; i++)
		t[i] = start(makes, NULL);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	return success();
}
