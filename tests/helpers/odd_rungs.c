/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/odd_rungs.c - a program that makes the library use what it asks the kernel for where all_rungs.c
 * does not come: calls that few programs make, limits, processes and programs that begin in odd circumstances.  Prints
 * a line for each part, always the same; refused threads are as in all_rungs.c.  With SLOW in the environment it does
 * what takes seconds, and nothing else.
 *
 * Some parts begin this program again, with a word for what it shall do, and with variables of the library.
 */
#include "rungs.h"
#include "odd_io.h"
#include "odd_processes.h"

#include <semaphore.h>
#include <setjmp.h>

/* ---- threads --------------------------------------------------------------------- */

static pthread_t main_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_lock(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
	return arg;
}

static volatile sig_atomic_t handled;

static void handle(int sig)
{
	(void)sig;
	handled = 1;
}

/* The calling thread keeps its kernel thread, since it was about to execute a program.  It alone accepts a signal. */
static void accept_wired(void)
{
	char *argv[] = { "nothing", NULL };

	CHECK_ERR(execv("/nothing", argv), ENOENT);
	finish(begin(touch, NULL));
	mask_signal(SIG_UNBLOCK, SIGRTMIN + 1);
}

static void *be_wired(void *arg)
{
	accept_wired();
	event_post(&turn);
	while (!handled)
		usleep(500);
	return arg;
}

/* A kernel thread waits by the clock of the day. */
static void *be_native(void *arg)
{
	struct timespec soon = in(CLOCK_REALTIME, 2 * MS);
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	CHECK_OK(pthread_mutex_lock(&own));
	CHECK_INT(pthread_cond_timedwait(&never, &own, &soon), ETIMEDOUT);
	CHECK_OK(pthread_mutex_unlock(&own));
	return arg;
}

/* Where it is not allowed, or refused, nothing changes. */
static void *be_scheduled(void *arg)
{
	const struct sched_param high = { .sched_priority = 1 }, none = { 0 };
	cpu_set_t all;
	pthread_t t;
	int err;

	CHECK_OK(pthread_mutex_lock(&lock));
	t = begin(wait_for_lock, NULL);
	err = pthread_setschedparam(t, SCHED_FIFO, &high);
	CHECK(err == 0 || err == EPERM);
	CHECK_OK(pthread_mutex_unlock(&lock));
	finish(t);
	CHECK_OK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &none));
	memset(&all, -1, sizeof(all));
	CHECK_OK(sched_setaffinity(0, sizeof(all), &all));
	CHECK_OK(pthread_setname_np(main_thread, "odd"));
	return arg;
}

/* A signal for the process by a descriptor, and alarms. */
static void *be_signalled(void *arg)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0), sig;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_OK(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0));
	CHECK_OK(sigwait(&set, &sig));
	CHECK_OK(close(fd));
	alarm(1000);
	alarm(0);
	return arg;
}

static void *send_signal(void *arg)
{
	CHECK_OK(kill(getpid(), SIGRTMIN + 1));
	return arg;
}

static siginfo_t told;
static sem_t called;

static void note(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	told = *info;
	CHECK_OK(sem_post(&called));
}

/* The signals find it in a call in which the library runs no handlers. */
static void *wait_wired(void *arg)
{
	accept_wired();
	event_post(&turn);
	event_wait(&turn, 2);
	return arg;
}

static void check_told(int code, int value)
{
	CHECK_INT(told.si_code, code);
	CHECK_INT(told.si_pid, getpid());
	if (code == SI_QUEUE)
		CHECK_INT(told.si_value.sival_int, value);
}

/* The process's signals, each with what it says of itself. */
static void call_wired(void)
{
	const struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	pthread_t t;

	CHECK_OK(sem_init(&called, 0, 0));
	CHECK_OK(sigaction(SIGRTMIN + 1, &action, NULL));
	t = begin(wait_wired, NULL);
	event_wait(&turn, 1);
	for (int i = 0; i < 4; i++) {
		await_others();
		if (i % 2)
			CHECK_OK(kill(getpid(), SIGRTMIN + 1));
		else
			CHECK_OK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = i }));
		while (sem_wait(&called))
			CHECK_INT(errno, EINTR);
		check_told(i % 2 ? SI_USER : SI_QUEUE, i);
	}
	event_post(&turn);
	finish(t);
	turn.count = 0;
}

/* Another signal comes while the handler runs.  A jump out of it keeps the mask, and now no thread accepts the signal. */
static sigjmp_buf jump;

static void leave(int sig)
{
	event_post(&turn);
	event_wait(&turn, 2);
	mask_signal(SIG_BLOCK, sig);
	siglongjmp(jump, 1);
}

static void *accept_one(void *arg)
{
	if (!sigsetjmp(jump, 0)) {
		mask_signal(SIG_UNBLOCK, SIGRTMIN + 2);
		CHECK_OK(raise(SIGRTMIN + 2));
	}
	event_post(&turn);
	event_wait(&turn, 4);
	return arg;
}

static void *block_natively(void *arg)
{
	event_wait(&turn, 4);
	return arg;
}

/* It stays pending for the process. */
static void call_nobody(void)
{
	const struct timespec none = { 0 };
	pthread_attr_t native;
	pthread_t t[2];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(signal(SIGRTMIN + 2, leave) != SIG_ERR);
	begin_native(&native);
	t[0] = begin_as(&native, block_natively, NULL);
	CHECK_OK(pthread_attr_destroy(&native));
	t[1] = begin(accept_one, NULL);
	event_wait(&turn, 1);
	CHECK_OK(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){ .sival_int = 7 }));
	event_post(&turn);
	event_wait(&turn, 3);
	await_others();
	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, SIGRTMIN + 2), 1);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 2);
	CHECK_INT(sigtimedwait(&set, &told, &none), SIGRTMIN + 2);
	check_told(SI_QUEUE, 7);
	CHECK_ERR(sigtimedwait(&set, NULL, &none), EAGAIN);
	event_post(&turn);
	finish(t[0]);
	finish(t[1]);
	turn.count = 0;
}

static void *begin_under_limit(void *arg)
{
	const struct rlimit limit = { (rlim_t)8 << 30, (rlim_t)8 << 30 };

	CHECK_OK(setrlimit(RLIMIT_AS, &limit));
	finish(begin(touch, NULL));
	return arg;
}

/* Before a process serves files, the library gives up its rings. */
static void *serve_files(void *arg)
{
	int fd = open("/dev/fuse", O_RDWR);
	char c;

	CHECK_INT(write(second[1], "x", 1), 1);
	CHECK_INT(read(second[0], &c, 1), 1);
	usleep(1000);
	if (fd >= 0)
		close(fd);
	return arg;
}

static void odd_threads(void)
{
	pthread_attr_t native;
	pthread_t wired;

	begin_native(&native);
	finish(begin_as(&native, be_native, NULL));
	CHECK_OK(pthread_attr_destroy(&native));
	finish(begin(be_scheduled, NULL));
	mask_signal(SIG_BLOCK, SIGUSR1);
	mask_signal(SIG_BLOCK, SIGRTMIN + 1);
	CHECK(signal(SIGRTMIN + 1, handle) != SIG_ERR);
	wired = begin(be_wired, NULL);
	event_wait(&turn, 1);
	finish(begin(send_signal, NULL));
	finish(wired);
	turn.count = 0;
	call_wired();
	call_nobody();
	finish(begin(be_signalled, NULL));
	in_process(begin_under_limit);
	in_process(write_at_limit);
	in_process(serve_files);
	/* A process is made while threads begin. */
	for (int i = 0; i < 4; i++) {
		pthread_t t = begin(touch, NULL);

		await_process(make_child(0));
		finish(t);
	}
	puts("threads");
}

/* ---- with SLOW --------------------------------------------------------------------- */

/* Kernel threads that have made processes, and are not needed any more. */
static void *make_and_block(void *arg)
{
	char c;

	await_process(make_child(0));
	event_post(&ready);
	CHECK_INT(read_raw(gate[0], &c, 1), 1);
	return arg;
}

/* Computes while others wait for descriptors. */
static void *compute(void *arg)
{
	const long long end = now(CLOCK_MONOTONIC) + 50 * MS;

	while (now(CLOCK_MONOTONIC) < end)
		continue;
	return arg;
}

static void rest(void)
{
	enum { N = 8 };
	pthread_t t[N];
	int local[2];

	CHECK_OK(pipe(gate) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, local));
	for (int i = 0; i < N; i++)
		t[i] = begin(make_and_block, NULL);
	event_wait(&ready, N);
	CHECK_INT(write(gate[1], "abcdefgh", N), N);
	for (int i = 0; i < N; i++)
		finish(t[i]);
	usleep(2500000);
	for (int i = 0; i < N; i++)
		t[i] = begin(i < N / 2 ? receive_much : compute, &local[0]);
	for (int i = N / 2; i < N; i++)
		finish(t[i]);
	for (int i = 0; i < N / 2; i++)
		CHECK_INT(write(local[1], "x", 1), 1);
	for (int i = 0; i < N / 2; i++)
		finish(t[i]);
	CHECK_OK(close(gate[0]) || close(gate[1]) || close(local[0]) || close(local[1]));
	puts("rest");
}

static struct sockaddr_in crowded;

static int begin_to_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	CHECK(connect(fd, (struct sockaddr *)&crowded, sizeof(crowded)) == 0 || errno == EINPROGRESS);
	return fd;
}

/* The connection is being made already. */
static void *go_on_connecting(void *arg)
{
	CHECK_OK(fcntl(*(int *)arg, F_SETFL, 0));
	CHECK_OK(connect(*(int *)arg, (struct sockaddr *)&crowded, sizeof(crowded)));
	return arg;
}

static void *accept_all(void *arg)
{
	int fd;

	while ((fd = accept(*(int *)arg, NULL, NULL)) >= 0)
		CHECK_OK(close(fd));
	return arg;
}

/* The listener has no room, and the kernel asks it again after a second. */
static void connecting(void)
{
	socklen_t size = sizeof(crowded);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd[3];
	pthread_t t, accepts;

	crowded.sin_family = AF_INET;
	crowded.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listener, (struct sockaddr *)&crowded, sizeof(crowded)));
	CHECK_OK(listen(listener, 0));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&crowded, &size));
	for (int i = 0; i < 3; i++)
		fd[i] = begin_to_connect();
	t = begin_asleep(go_on_connecting, &fd[2]);
	accepts = begin(accept_all, &listener);
	finish(t);
	CHECK_OK(shutdown(listener, SHUT_RD));
	finish(accepts);
	for (int i = 0; i < 3; i++)
		CHECK_OK(close(fd[i]));
	CHECK_OK(close(listener));
	puts("connecting");
}

int main(int argc, char **argv)
{
	CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	if (argc > 1 && strcmp(argv[1], "pending") == 0)
		return find_pending();
	if (argc > 1 && strcmp(argv[1], "quietly") == 0) {
		CHECK(dup2(open("/dev/null", O_WRONLY), 2) == 2);
		return be_replaced("twice");
	}
	if (argc > 1)
		return be_replaced(argv[1]);
	main_thread = pthread_self();
	CHECK_OK(pipe(first) || pipe(second));
	finish(begin(touch, NULL));
	if (getenv("SLOW")) {
		rest();
		connecting();
		return success();
	}
	odd_threads();
	streams();
	absent();
	fifos();
	selects();
	splices();
	children();
	making();
	programs();
	finish(begin(take_numbers, NULL));
	return success();
}
