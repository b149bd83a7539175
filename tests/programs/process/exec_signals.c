/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/exec_signals.c - the signal state that an executed program inherits:
 * the caller's mask, signals pending for the caller and for the process, ignored signals, and
 * the alarm; while another thread is in sigwait for ignored signals. exec is called by main, by
 * other threads, by a handler, and by all functions that make a process.
 */
#include "check.h"

#include <spawn.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { REALTIME = 40 };

enum caller { ALONE, MAIN, THREAD, LAST_THREAD, HANDLER, CALLERS };
enum sent { NOTHING, RAISED, KILLED, QUEUED, QUEUED_TO_THREAD, BY_CHILD, ALARM, SENT };
enum way { EXECV, EXECL, EXECLE, EXECVP, SYSCALL, FAILED_BEFORE, SPAWN, SYSTEM, VFORK, WAYS };

static const char *const callers[CALLERS] = { "alone", "main", "a thread", "the last thread",
	"a handler" };
static const char *const sents[SENT] = { "nothing", "raise", "kill", "sigqueue",
	"pthread_sigqueue", "by a child", "alarm" };
static const char *const ways[WAYS] = { "execv", "execl", "execle", "execvp", "SYS_execve",
	"execv after a failure", "posix_spawn", "system", "vfork" };

extern char **environ;
static char *self;
static enum caller caller;
static enum sent sent;
static enum way way;
static int handler_begun[2];

static void print_set(const char *what, const sigset_t *set)
{
	printf(" %s", what);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(set, sig) == 1)
			printf(" %d", sig);
}

/* The new program says what it finds. */
static int look(void)
{
	const struct timespec none = { 0, 0 };
	sigset_t pending, mask, ignored;
	struct itimerval left;
	siginfo_t info;

	CHECK_OK(sigpending(&pending));
	CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &mask));
	CHECK_OK(sigemptyset(&ignored));
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		struct sigaction sa;

		if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			CHECK_OK(sigaddset(&ignored, sig));
	}
	CHECK_OK(getitimer(ITIMER_REAL, &left));
	print_set("pending", &pending);
	print_set("blocked", &mask);
	print_set("ignored", &ignored);
	printf("%s:", left.it_value.tv_sec ? " alarm" : "");
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		CHECK_OK(sigemptyset(&mask));
		sigaddset(&mask, sig);
		while (sigtimedwait(&mask, &info, &none) > 0)
			printf(" %d/%d/%d", info.si_signo, info.si_code,
			       info.si_code == SI_QUEUE ? info.si_value.sival_int : 0);
	}
	puts("");
	return fflush(stdout) ? 1 : 0;
}

static void block_all_that_is_sent(void)
{
	mask_signal(SIG_BLOCK, SIGUSR1);
	mask_signal(SIG_BLOCK, SIGUSR2);
	mask_signal(SIG_BLOCK, REALTIME);
}

static void *takes(void *arg)
{
	sigset_t set;
	int sig;

	CHECK_OK(sigemptyset(&set));
	CHECK_OK(sigaddset(&set, SIGHUP));
	CHECK_OK(sigaddset(&set, SIGTERM));
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(sigwait(&set, &sig));
	return arg;
}

static void *sleeps(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void send(void)
{
	pid_t pid;

	switch (sent) {
	case RAISED:
		CHECK_OK(raise(SIGUSR1));
		break;
	case KILLED:
		CHECK_OK(kill(getpid(), SIGUSR2));
		break;
	case QUEUED:
		for (int i = 1; i <= 3; i++)
			CHECK_OK(sigqueue(getpid(), REALTIME, (union sigval){ .sival_int = i }));
		break;
	case QUEUED_TO_THREAD:
		for (int i = 1; i <= 3; i++)
			CHECK_OK(pthread_sigqueue(pthread_self(), REALTIME,
						  (union sigval){ .sival_int = i }));
		break;
	case BY_CHILD:
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(kill(getppid(), SIGUSR1) || kill(getppid(), SIGUSR2));
		CHECK_INT(waitpid(pid, NULL, 0), pid);
		break;
	case ALARM:
		alarm(1000);
		break;
	default:
		break;
	}
}

static void execute(void)
{
	char *argv[] = { self, (char *)"look", NULL }, command[256];
	pid_t pid;

	snprintf(command, sizeof(command), "%s look", self);
	switch (way) {
	case EXECV: execv(self, argv); break;
	case EXECL: execl(self, self, "look", (char *)NULL); break;
	case EXECLE: execle(self, self, "look", (char *)NULL, environ); break;
	case EXECVP: execvp(self, argv); break;
	case SYSCALL: syscall(SYS_execve, self, argv, environ); break;
	case FAILED_BEFORE:
		CHECK_ERR(execv("/nonexistent", argv), ENOENT);
		CHECK_ERR(execlp("/", "x", (char *)NULL), EACCES);
		execv(self, argv);
		break;
	case SPAWN:
		CHECK_OK(posix_spawn(&pid, self, NULL, NULL, argv, environ));
		CHECK_INT(waitpid(pid, NULL, 0), pid);
		_exit(0);
	case SYSTEM:
		CHECK_OK(system(command));
		_exit(0);
	default:
		pid = vfork();
		if (pid == 0) {
			execv(self, argv);
			_exit(1);
		}
		CHECK_INT(waitpid(pid, NULL, 0), pid);
		_exit(0);
	}
	CHECK(!"executed");
}

static void *executes(void *arg)
{
	block_all_that_is_sent();
	send();
	execute();
	return arg;
}

/* Another of its kind is pending by then. */
static void on_quit(int sig)
{
	static char byte;

	block_all_that_is_sent();
	send();
	CHECK_INT(write(handler_begun[1], &byte, 1), 1);
	CHECK_INT(read(handler_begun[0], &byte, 1), 1);
	CHECK_OK(kill(getpid(), sig));
	execute();
}

static void ignore(int sig)
{
	CHECK(signal(sig, SIG_IGN) != SIG_ERR);
}

static void handler(int sig)
{
	(void)sig;
}

static void case_of(void)
{
	sigset_t none;

	CHECK(signal(SIGINT, handler) != SIG_ERR);
	ignore(SIGPIPE);
	ignore(SIGHUP);
	ignore(SIGTERM);
	ignore(SIGWINCH);
	CHECK_OK(pipe(handler_begun));
	mask_signal(SIG_BLOCK, SIGQUIT);
	block_all_that_is_sent();
	if (caller != ALONE) {
		start(takes, NULL);
		start(sleeps, NULL);
		settle();
	}
	CHECK_OK(sigemptyset(&none));
	switch (caller) {
	case THREAD:
		start(executes, NULL);
		sleeps(NULL);
		break;
	case LAST_THREAD:
		start(executes, NULL);
		pthread_exit(NULL);
	case HANDLER:
		CHECK(signal(SIGQUIT, on_quit) != SIG_ERR);
		CHECK_OK(pthread_sigmask(SIG_SETMASK, &none, NULL));
		CHECK_OK(raise(SIGQUIT));
		break;
	default:
		CHECK_OK(pthread_sigmask(SIG_SETMASK, &none, NULL));
		executes(NULL);
		break;
	}
}

static void run(int c, int s, int w)
{
	char words[3][12], *argv[] = { self, words[0], words[1], words[2], NULL };
	int status;
	pid_t pid;

	printf("%s, %s, %s:", callers[c], sents[s], ways[w]);
	fflush(stdout);
	snprintf(words[0], sizeof(words[0]), "%d", c);
	snprintf(words[1], sizeof(words[1]), "%d", s);
	snprintf(words[2], sizeof(words[2]), "%d", w);
	CHECK_OK(posix_spawn(&pid, self, NULL, NULL, argv, environ));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc == 2)
		return look();
	if (argc == 4) {
		caller = (enum caller)atoi(argv[1]);
		sent = (enum sent)atoi(argv[2]);
		way = (enum way)atoi(argv[3]);
		case_of();
		return 1;
	}
	for (int c = 0; c < CALLERS; c++) {
		for (int s = 0; s < SENT; s++)
			run(c, s, EXECV);
		for (int w = 1; w < WAYS; w++)
			run(c, c == MAIN ? RAISED : QUEUED_TO_THREAD, w);
	}
	return success();
}
