/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_held.c - a descriptor that another thread closes, or puts another file on,
 * while a call waits with it: the call goes on with the file that it began with.  Only poll and
 * select look at the number again.
 */
#include "held.h"

/* expected[] has the same for both ways to close. */
enum { CLOSE, REPLACE, CLOSE_RANGE, WAYS };

/* ---- what ends them ---------------------------------------------------------- */

static void put(struct fixture *f)
{
	CHECK_INT(write(f->other, "x", 1), 1);
}

/* The call has the first byte, and waits for the second, when that is sent. */
static void put_twice(struct fixture *f)
{
	put(f);
	await_others();
	put(f);
}

static void count(struct fixture *f)
{
	const uint64_t seven = 7;

	CHECK_INT(write(f->other, &seven, sizeof(seven)), sizeof(seven));
}

static void call(struct fixture *f)
{
	CHECK_OK(connect(f->other, (struct sockaddr *)&f->address, sizeof(f->address)));
}

static void drain(struct fixture *f)
{
	static char sink[1 << 16];
	long n;

	for (; f->stuffed > 0; f->stuffed -= n) {
		n = read(f->other, sink, f->stuffed < (long)sizeof(sink) ? (size_t)f->stuffed :
									   sizeof(sink));
		CHECK(n > 0);
	}
}

/* What the call has sent is there, and no more; then the file is nobody's any more. */
static void arrives(struct fixture *f, long expected)
{
	static char sink[1 << 16];
	long n;

	while ((n = read(f->other, sink, sizeof(sink))) > 0)
		expected -= n;
	CHECK_INT(n, 0);
	CHECK_INT(expected, 0);
}

static const struct kind kinds[] = {
	{ "read pipe", make_pipe, do_read, put, { 'x', 'x' } },
	{ "read socket", make_stream, do_read, put, { 'x', 'x' } },
	{ "read FIFO", make_fifo, do_read, put, { 'x', 'x' } },
	{ "read eventfd", make_eventfd, do_eventfd, count, { 7, 7 } },
	{ "recv", make_tcp, do_recv, put, { 'x', 'x' } },
	{ "recv whole", make_tcp, do_recv_whole, put_twice, { 2, 2 } },
	{ "recv whole on a Unix socket", make_stream, do_recv_whole, put_twice, { 2, 2 } },
	{ "recvfrom", make_datagram, do_recvfrom, put, { 'x', 'x' } },
	{ "recvfrom stream", make_tcp, do_recvfrom, put, { 'x', 'x' } },
	{ "recvmsg", make_datagram, do_recvmsg, put, { 'x', 'x' } },
	{ "recvmmsg", make_datagram, do_recvmmsg, put, { 'x', 'x' } },
	{ "accept", make_listener, do_accept, call, { 0, 0 } },
	{ "write pipe", make_full_pipe, do_write, drain, { sizeof(page), sizeof(page) } },
	{ "write socket", make_full_stream, do_write, drain, { sizeof(page), sizeof(page) } },
	{ "writev pipe", make_full_pipe, do_writev, drain, { sizeof(page), sizeof(page) } },
	{ "writev socket", make_full_stream, do_writev, drain, { sizeof(page), sizeof(page) } },
	{ "send", make_full_stream, do_send, drain, { sizeof(page), sizeof(page) } },
	{ "sendto", make_full_tcp, do_sendto, drain, { sizeof(page), sizeof(page) } },
	{ "sendmmsg", make_full_stream, do_sendmmsg, drain, { sizeof(page), sizeof(page) } },
	{ "splice from", make_splice_in, do_splice_in, put, { 'x', 'x' } },
	{ "splice to", make_splice_out, do_splice_out, drain, { 4096, 4096 } },
	{ "tee", make_splice_in, do_tee, put, { 'x', 'x' } },
	{ "vmsplice", make_full_pipe, do_vmsplice, drain, { 4096, 4096 } },
	{ "epoll_wait", make_epoll, do_epoll, count, { 1, 1 } },
	{ "poll", make_stream, do_poll, put, { 1000 + POLLNVAL, 1000 + POLLIN } },
	{ "select", make_stream, do_select, put, { 1001, 1001 } },
};

static void *calls(void *arg)
{
	struct fixture *f = arg;

	event_post(&f->begun);
	return (void *)f->kind->wait(f);
}

static void waits_and_goes_on(const struct kind *kind, int way)
{
	struct fixture f = { .kind = kind, .begun = EVENT_INIT, .more = { -1, -1 } };
	int zero = open("/dev/zero", O_RDWR);
	pthread_t t;
	const long expected = kind->expected[way == REPLACE];
	long result;

	kind->set_up(&f);
	t = start(calls, &f);
	event_wait(&f.begun, 1);
	await_others();
	if (way == CLOSE)
		CHECK_OK(close(f.number));
	else if (way == CLOSE_RANGE)
		CHECK_OK(close_range((unsigned)f.number, (unsigned)f.number, 0));
	else
		CHECK_INT(dup2(zero, f.number), f.number);
	kind->end(&f);
	result = (long)finish(t);
	if (result != expected)
		fail(__FILE__, __LINE__, "%s, %s: another file's answer: %ld, not %ld\n", kind->name,
		     way == REPLACE ? "replaced" : "closed", result, expected);
	if (kind->end == drain)
		arrives(&f, expected);
	if (way == REPLACE)
		CHECK_OK(close(f.number));
	CHECK_OK(close(f.other));
	CHECK_OK(close(zero));
	for (int i = 0; i < 2 && f.more[i] >= 0; i++)
		CHECK_OK(close(f.more[i]));
}

/* ---- cancellation ------------------------------------------------------------ */

/* Cancelled, the call lets go of the file as well: the other end sees it. */
static void cancelled(const struct kind *kind)
{
	struct fixture f = { .kind = kind, .begun = EVENT_INIT, .more = { -1, -1 } };
	pthread_t t;

	kind->set_up(&f);
	t = start(calls, &f);
	event_wait(&f.begun, 1);
	await_others();
	CHECK_OK(close(f.number));
	CHECK_OK(pthread_cancel(t));
	finish(t);
	while (read(f.other, page, sizeof(page)) > 0)
		continue;
	CHECK_OK(close(f.other));
	for (int i = 0; i < 2 && f.more[i] >= 0; i++)
		CHECK_OK(close(f.more[i]));
}

int main(void)
{
	const size_t n = sizeof(kinds) / sizeof(kinds[0]);
	const int before = open_files();

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < n; i++) {
		for (int way = 0; way < WAYS; way++)
			waits_and_goes_on(&kinds[i], way);
		if (kinds[i].end == drain || kinds[i].set_up == make_stream)
			cancelled(&kinds[i]);
	}
	CHECK_INT(open_files(), before);
	return success();
}
