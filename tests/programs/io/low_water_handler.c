/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/low_water_handler.c - SO_RCVLOWAT: while a call waits for more than nothing, a handler of its
 * thread sends too little, or resets the connection.
 */
#include "sockets.h"

#include <poll.h>
#include <sys/ioctl.h>

enum { LEAST = 4, MOST = 10 };

static volatile sig_atomic_t handled;
static int receiver, sender;	/* what is connected */

static void connect_both(int domain)
{
	const int least = LEAST;
	int pair[2];

	if (domain == AF_UNIX)
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	else
		tcp_pair(pair);
	receiver = pair[0];
	sender = pair[1];
	CHECK_OK(setsockopt(receiver, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
}

static void handle(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	handled = 0;
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
}

static void sends_byte(int sig)
{
	const int saved_errno = errno;

	(void)sig;
	CHECK_INT(write(sender, "x", 1), 1);
	errno = saved_errno;
	handled++;
}

/* A unix socket resets the connection because it has what nobody has read. */
static void resets(int sig)
{
	const int saved_errno = errno;
	const struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	(void)sig;
	CHECK_OK(setsockopt(sender, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	CHECK_OK(close(sender));
	errno = saved_errno;
	handled++;
}

/* The kernel may deliver after the call that sends. */
static void await_bytes(int want)
{
	int n;

	do
		CHECK_OK(ioctl(receiver, FIONREAD, &n));
	while (n != want && usleep(1000) == 0);
	CHECK_INT(n, want);
}

static void await_reset(void)
{
	struct pollfd p = { .fd = receiver };

	CHECK_INT(poll(&p, 1, -1), 1);
}

static void *too_little_ends(void *arg)
{
	char buf[MOST];

	event_post(&will_sleep);
	CHECK_ERR(recv(receiver, buf, sizeof(buf), 0), EINTR);
	await_bytes(1);
	CHECK_INT(recv(receiver, buf, sizeof(buf), MSG_DONTWAIT), 1);
	CHECK_INT(buf[0], 'x');
	CHECK_ERR(recv(receiver, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	return arg;
}

static void *too_little_goes_on(void *arg)
{
	char buf[MOST];

	event_post(&will_sleep);
	CHECK_INT(recv(receiver, buf, sizeof(buf), 0), 5);
	CHECK_OK(memcmp(buf, "x1234", 5));
	CHECK_ERR(recv(receiver, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	return arg;
}

static void *reset_ends(void *arg)
{
	char buf[MOST];

	event_post(&will_sleep);
	CHECK_ERR(recv(receiver, buf, sizeof(buf), 0), EINTR);
	await_reset();
	CHECK_ERR(recv(receiver, buf, sizeof(buf), MSG_DONTWAIT), ECONNRESET);
	CHECK_OK(recv(receiver, buf, sizeof(buf), 0));
	return arg;
}

static void *reset_goes_on(void *arg)
{
	char buf[MOST];

	event_post(&will_sleep);
	CHECK_ERR(recv(receiver, buf, sizeof(buf), 0), ECONNRESET);
	CHECK_OK(recv(receiver, buf, sizeof(buf), 0));
	return arg;
}

/* The thread waits when the handler runs. */
static pthread_t interrupt(void *(*fn)(void *))
{
	const pthread_t t = start_asleep(fn, NULL);

	CHECK_OK(pthread_kill(t, SIGUSR1));
	while (!handled)
		usleep(1000);
	return t;
}

static void send_too_little(int domain, int flags)
{
	pthread_t t;

	connect_both(domain);
	handle(sends_byte, flags);
	t = interrupt(flags & SA_RESTART ? too_little_goes_on : too_little_ends);
	if (flags & SA_RESTART) {
		await_others();
		CHECK_INT(pthread_tryjoin_np(t, NULL), EBUSY);
		CHECK_INT(write(sender, "1234", 4), 4);
	}
	finish(t);
	CHECK_INT(handled, 1);
	CHECK_OK(close(receiver));
	CHECK_OK(close(sender));
}

static void reset(int domain, int flags)
{
	connect_both(domain);
	if (domain == AF_UNIX)
		CHECK_INT(write(receiver, "y", 1), 1);
	handle(resets, flags);
	finish(interrupt(flags & SA_RESTART ? reset_goes_on : reset_ends));
	CHECK_INT(handled, 1);
	CHECK_OK(close(receiver));
}

int main(void)
{
	static const int domains[] = { AF_INET, AF_UNIX };

	for (size_t i = 0; i < COUNT(domains); i++) {
		send_too_little(domains[i], 0);
		send_too_little(domains[i], SA_RESTART);
		reset(domains[i], 0);
		reset(domains[i], SA_RESTART);
	}
	return success();
}
