/* SPDX-License-Identifier: MIT */
/* tests/programs/signal/signal_basic.c - handlers, masks and waits for signals among threads. */
#include "sockets.h"

static struct event ready = EVENT_INIT;
static volatile sig_atomic_t handled, on_main, to_fd = -1;
static pthread_t main_thread;
static int stop, pipe_fd[2];

static void on_signal(int sig)
{
	int err = errno;

	handled++;
	if (pthread_equal(pthread_self(), main_thread))
		on_main++;
	if (to_fd >= 0 && write(to_fd, &(char){ (char)sig }, 1) != 1)
		abort();
	errno = err;
}

static void handle(int sig, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	CHECK_OK(sigaction(sig, &action, NULL));
}

static int is_blocked(int sig)
{
	sigset_t set;

	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &set));
	return sigismember(&set, sig);
}

/* Until told otherwise, since the target may not be waiting yet. */
static void *kill_process(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		CHECK_OK(kill(getpid(), (int)(intptr_t)arg));
		usleep(2000);
	}
	return NULL;
}

/* while (!stop) accept(): a handler without SA_RESTART ends the accept. */
static void accept_ends(void)
{
	struct sockaddr_in address;
	int fd = listening_socket(0, &address);
	pthread_t t;
	char c;

	handle(SIGUSR1, 0);
	mask_signal(SIG_BLOCK, SIGUSR1);
	stop = 0;
	t = start(kill_process, (void *)(intptr_t)SIGUSR1);
	mask_signal(SIG_UNBLOCK, SIGUSR1);
	CHECK_ERR(accept(fd, NULL, NULL), EINTR);
	CHECK_ERR(read(pipe_fd[0], &c, 1), EINTR);
	CHECK(on_main > 0);
	/* All others block it, so every one came here. */
	CHECK_INT(on_main, handled);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	finish(t);
	close(fd);
	puts("accept ends");
}

static void *connect_after(void *arg)
{
	int fd, n = 0;

	/* Several interruptions first. */
	while (n++ < 5) {
		CHECK_OK(kill(getpid(), SIGUSR2));
		usleep(1000);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(connect(fd, arg, sizeof(struct sockaddr_in)));
	for (n = 0; n < 5; n++) {
		CHECK_OK(kill(getpid(), SIGUSR2));
		usleep(1000);
	}
	CHECK_INT(write(fd, "x", 1), 1);
	close(fd);
	return NULL;
}

static void accept_goes_on(void)
{
	struct sockaddr_in address;
	int fd = listening_socket(0, &address), got, before = handled;
	pthread_t t;
	char c;

	handle(SIGUSR2, SA_RESTART);
	mask_signal(SIG_BLOCK, SIGUSR2);
	t = start(connect_after, &address);
	mask_signal(SIG_UNBLOCK, SIGUSR2);
	got = accept(fd, NULL, NULL);
	CHECK(got >= 0);
	CHECK_INT(read(got, &c, 1), 1);
	finish(t);
	CHECK(handled > before);
	close(got);
	close(fd);
	puts("accept goes on");
}

/* A handler that writes to a pipe which another thread reads. */
static void *reads_signals(void *arg)
{
	char c;

	mask_signal(SIG_BLOCK, SIGUSR1);
	event_post(&ready);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(read(pipe_fd[0], &c, 1), 1);
		CHECK_INT(c, SIGUSR1);
		event_post(&ready);
	}
	return arg;
}

static void self_pipe(void)
{
	pthread_t t;

	handle(SIGUSR1, SA_RESTART);
	ready.count = 0;
	t = start(reads_signals, NULL);
	event_wait(&ready, 1);
	to_fd = pipe_fd[1];
	for (int i = 0; i < 10; i++) {
		CHECK_OK(kill(getpid(), SIGUSR1));
		event_wait(&ready, i + 2);
	}
	to_fd = -1;
	finish(t);
	puts("self-pipe");
}

static void *waits(void *arg)
{
	sigset_t set;
	siginfo_t info;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	CHECK_OK(sigwait(&set, &sig));
	CHECK_INT(sig, SIGHUP);
	event_post(&ready);
	CHECK_INT(sigwaitinfo(&set, &info), SIGTERM);
	CHECK_INT(info.si_pid, getpid());
	event_post(&ready);
	struct timespec ts = { 0, 5000000 };
	CHECK_ERR(sigtimedwait(&set, NULL, &ts), EAGAIN);
	return arg;
}

static void *inherits(void *arg)
{
	CHECK_INT(is_blocked(SIGHUP), 1);
	CHECK_INT(is_blocked(SIGUSR1), 0);
	/* One's own mask is nobody else's. */
	mask_signal(SIG_BLOCK, SIGUSR1);
	usleep(2000);
	CHECK_INT(is_blocked(SIGUSR1), 1);
	return arg;
}

static void signal_thread(void)
{
	pthread_t t, other;

	ready.count = 0;
	mask_signal(SIG_BLOCK, SIGTERM);
	mask_signal(SIG_BLOCK, SIGHUP);
	other = start(inherits, NULL);
	t = start(waits, NULL);
	CHECK_OK(kill(getpid(), SIGHUP));
	event_wait(&ready, 1);
	CHECK_OK(kill(getpid(), SIGTERM));
	event_wait(&ready, 2);
	finish(t);
	finish(other);
	CHECK_INT(is_blocked(SIGUSR1), 0);
	puts("signal thread");
}

static __thread volatile sig_atomic_t here;

static void on_thread(int sig)
{
	(void)sig;
	here++;
}

static void *killed_in_read(void *arg)
{
	char c;
	int fd = *(int *)arg;

	event_post(&ready);
	errno = 0;
	CHECK_ERR(read(fd, &c, 1), EINTR);
	CHECK(here > 0);
	event_post(&ready);
	return NULL;
}

static int count_of(struct event *e)
{
	int n;

	pthread_mutex_lock(&e->lock);
	n = e->count;
	pthread_mutex_unlock(&e->lock);
	return n;
}

static void directed(void)
{
	struct sigaction action = { .sa_handler = on_thread };
	int p[2];
	pthread_t t;

	CHECK_OK(pipe(p));
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	ready.count = 0;
	t = start(killed_in_read, &p[0]);
	event_wait(&ready, 1);
	CHECK_OK(pthread_kill(t, 0));
	CHECK_INT(pthread_kill(t, 1000), EINVAL);
	while (count_of(&ready) < 2) {
		CHECK_OK(pthread_kill(t, SIGUSR1));
		usleep(1000);
	}
	finish(t);
	CHECK_INT(here, 0);
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_INT(here, 1);
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(here, 2);
	/* Blocked: pending until it is let in. */
	mask_signal(SIG_BLOCK, SIGUSR1);
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(here, 2);
	sigset_t set;
	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, SIGUSR1), 1);
	mask_signal(SIG_UNBLOCK, SIGUSR1);
	CHECK_INT(here, 3);
	close(p[0]);
	close(p[1]);
	puts("directed");
}

static void *pauses(void *arg)
{
	sigset_t set;

	mask_signal(SIG_BLOCK, SIGUSR1);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &set));
	sigdelset(&set, SIGUSR1);
	event_post(&ready);
	CHECK_ERR(sigsuspend(&set), EINTR);
	CHECK_INT(here, 1);
	CHECK_INT(is_blocked(SIGUSR1), 1);
	return arg;
}

/* By the id of any thread it is the whole process that gets it. */
static void *tells_id(void *arg)
{
	*(pid_t *)arg = gettid();
	event_post(&ready);
	event_wait(&ready, 2);
	return arg;
}

static void by_id_of_thread(void)
{
	union sigval value = { .sival_int = 7 };
	pthread_t t;
	pid_t id;

	handle(SIGUSR2, 0);
	mask_signal(SIG_BLOCK, SIGUSR2);
	ready.count = 0;
	t = start(tells_id, &id);
	mask_signal(SIG_UNBLOCK, SIGUSR2);
	event_wait(&ready, 1);
	CHECK_OK(kill(id, 0));
	handled = on_main = 0;
	/* Only main() accepts it. */
	CHECK_OK(kill(id, SIGUSR2));
	CHECK_INT(on_main, 1);
	CHECK_OK(sigqueue(id, SIGUSR2, value));
	CHECK_INT(on_main, 2);
	event_post(&ready);
	finish(t);
	puts("by the id of a thread");
}

int main(void)
{
	pthread_t t;

	main_thread = pthread_self();
	CHECK_OK(pipe(pipe_fd));
	accept_ends();
	accept_goes_on();
	self_pipe();
	signal_thread();
	directed();
	ready.count = 0;
	t = start(pauses, NULL);
	event_wait(&ready, 1);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
	puts("sigsuspend");
	by_id_of_thread();
	CHECK_INT(pthread_sigmask(77, &(sigset_t){ 0 }, NULL), EINVAL);
	return success();
}
