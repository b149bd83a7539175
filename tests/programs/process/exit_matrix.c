/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/exit_matrix.c - each way to end a process, by each kind of thread,
 * while other threads compute, read, sleep, wait, make threads, fork, and hold stdio's lock;
 * atexit handlers make and join threads. Prints status and output.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct event ready = EVENT_INIT;
static int hold[2];
static sem_t never;
static volatile sig_atomic_t computing = 1;

static void *nothing(void *arg)
{
	return arg;
}

static void *computes(void *arg)
{
	event_post(&ready);
	while (computing)
		continue;
	return arg;
}

static void *reads(void *arg)
{
	char c;

	event_post(&ready);
	CHECK(read(hold[0], &c, 1) == 1);
	return arg;
}

static void *reads_lines(void *arg)
{
	FILE *f = fdopen(dup(hold[0]), "r");
	char line[16];

	event_post(&ready);
	CHECK(fgets(line, sizeof(line), f) != NULL);
	return arg;
}

static void *sleeps(void *arg)
{
	event_post(&ready);
	sleep(3600);
	return arg;
}

static void *waits(void *arg)
{
	event_post(&ready);
	sem_wait(&never);
	return arg;
}

static void *churns(void *arg)
{
	event_post(&ready);
	for (;;)
		finish(start(nothing, NULL));
	return arg;
}

/* Has stdio's lock when the process begins to end, and for a while after. */
static void *prints(void *arg)
{
	flockfile(stdout);
	event_post(&ready);
	usleep(60000);
	funlockfile(stdout);
	return arg;
}

static void handler(const char *text)
{
	finish(start(nothing, NULL));
	puts(text);
}

static void at_exit_1(void) { handler("at exit, first"); }
static void at_exit_2(void) { handler("at exit, second"); }

/* Those of quick_exit must write by themselves: nothing is flushed. */
static void at_quick_exit_1(void)
{
	finish(start(nothing, NULL));
	CHECK_INT(write(1, "at quick exit\n", 14), 14);
}

enum way { EXIT, QUICK_EXIT, UNDERSCORE_EXIT, ABORT, RETURN, KILLED, LEAVE, WAYS };
static const char *const names[WAYS] = { "exit", "quick_exit", "_exit", "abort",
	"return from main", "SIGTERM", "pthread_exit from main" };

static void end(enum way way)
{
	switch (way) {
	case EXIT: exit(31);
	case QUICK_EXIT: quick_exit(32);
	case UNDERSCORE_EXIT: _exit(33);
	case ABORT: abort();
	case KILLED: kill(getpid(), SIGTERM);
	default: break;
	}
	for (;;)
		pause();
}

static void *ends(void *arg)
{
	end(*(enum way *)arg);
	return NULL;
}

static pthread_t main_thread;

static void *ends_after_main(void *arg)
{
	CHECK_OK(pthread_join(main_thread, NULL));
	end(EXIT);
	return arg;
}

enum who { MAIN, THREAD, AFFINE, WHO };
static const char *const by[WHO] = { "main", "a thread", "a thread with an affinity" };

static int process(enum way way, enum who who)
{
	void *(*all[])(void *) = { computes, computes, reads, reads_lines, sleeps, waits,
				   churns, prints };
	struct rlimit none = { 0, 0 };

	CHECK_OK(setrlimit(RLIMIT_CORE, &none));
	CHECK_OK(pipe(hold));
	CHECK_OK(sem_init(&never, 0, 0));
	CHECK_OK(atexit(at_exit_1));
	CHECK_OK(atexit(at_exit_2));
	CHECK_OK(at_quick_exit(at_quick_exit_1));
	printf("not flushed, ");
	for (size_t i = 0; i < COUNT(all); i++)
		start(all[i], NULL);
	event_wait(&ready, COUNT(all));
	if (way == RETURN)
		return 30;
	if (way == LEAVE) {
		main_thread = pthread_self();
		start_as(who == AFFINE, ends_after_main, NULL);
		pthread_exit(NULL);
	}
	if (who == MAIN)
		end(way);
	start_as(who == AFFINE, ends, &way);
	for (;;)
		pause();
}

/* Copies what it prints, waits for it. */
static void one(char *self, enum way way, enum who who)
{
	char way_text[4], who_text[4], text[256];
	char *argv[] = { self, way_text, who_text, NULL };
	long long before = now(CLOCK_MONOTONIC);
	int out[2], status;
	size_t n;
	pid_t pid;

	printf("%s, %s: ", names[way], by[who]);
	fflush(stdout);
	snprintf(way_text, sizeof(way_text), "%d", way);
	snprintf(who_text, sizeof(who_text), "%d", who);
	CHECK_OK(pipe2(out, O_CLOEXEC));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(out[1], 1);
		execv("/proc/self/exe", argv);
		_exit(99);
	}
	close(out[1]);
	n = read_all(out[0], text, sizeof(text) - 1);
	text[n] = '\0';
	close(out[0]);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	printf("%s%sstatus %#x\n", text, n && text[n - 1] != '\n' ? "\n" : "", status);
	if (getenv("EXIT_MATRIX_TIMES"))
		fprintf(stderr, "%s, %s: %lld ms\n", names[way], by[who],
			(now(CLOCK_MONOTONIC) - before) / MS);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return process((enum way)atoi(argv[1]), (enum who)atoi(argv[2]));
	for (int way = 0; way < WAYS; way++)
		for (int who = 0; who < WHO; who++)
			if (who == MAIN || way != RETURN)
				one(argv[0], (enum way)way, (enum who)who);
	return success();
}
