/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/poll_rounds.c [ROUNDS] - poll and select of several descriptors again and again, while
 * several of them become ready at the same moment: no answer of an earlier round is given in a
 * later one, and what a call does not wait for any more it does not hold.
 */
#include "sockets.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/select.h>

enum { WIDTH = 4, CROWD = 36, CROWD_WIDTH = 12, CROWD_ROUNDS = 40, SPENT = 500 };

static int most_rounds = 3000;

enum call { POLL, SELECT, CALLS };

/* Wait for any of n descriptors, at most ms milliseconds.  Returns how many; ready[i] tells which. */
static int wait_any(enum call call, const int *fd, int n, int ms, bool *ready)
{
	struct timeval span = { .tv_usec = ms * 1000 };
	struct pollfd p[CROWD_WIDTH];
	fd_set set;
	int most = 0, ret;

	FD_ZERO(&set);
	for (int i = 0; i < n; i++) {
		p[i] = (struct pollfd){ fd[i], POLLIN, -1 };
		FD_SET(fd[i], &set);
		most = fd[i] > most ? fd[i] : most;
	}
	ret = call == POLL ? poll(p, (nfds_t)n, ms) :
			     select(most + 1, &set, NULL, NULL, ms < 0 ? NULL : &span);
	CHECK(ret >= 0);
	for (int i = 0; i < n; i++) {
		ready[i] = call == POLL ? p[i].revents : FD_ISSET(fd[i], &set);
		if (call == POLL)
			CHECK((p[i].revents & ~POLLIN) == 0);
		ret -= ready[i];
	}
	CHECK_INT(ret, 0);
	ret = 0;
	for (int i = 0; i < n; i++)
		ret += ready[i];
	return ret;
}

/* ---- two writers at the same moment ------------------------------------------ */

struct writer {
	int go, to;	/* for each byte from go, one is written to `to` */
};

static void *writes(void *arg)
{
	const struct writer *w = arg;
	char c;

	while (read_all(w->go, &c, 1))
		write_all(w->to, &c, 1);
	return NULL;
}

/*
 * All four, two of them, or one are written; the reader takes what it is told is there, until it
 * has all.  limit: of each wait, in milliseconds.
 */
static void rounds(enum call call, int limit)
{
	int in[WIDTH], go[WIDTH], fd[2];
	struct writer w[WIDTH];
	pthread_t t[WIDTH];
	uint64_t seed = 1;
	bool ready[WIDTH];
	char c;

	for (int i = 0; i < WIDTH; i++) {
		make_pair(SOCKET, fd);
		in[i] = fd[0];
		w[i].to = fd[1];
		CHECK_OK(pipe(fd));
		w[i].go = fd[0];
		go[i] = fd[1];
		t[i] = start(writes, &w[i]);
	}
	for (int round = 0; round < most_rounds; round++) {
		unsigned owed = random_next(&seed) % (1U << WIDTH);

		for (int i = 0; i < WIDTH; i++)
			if (owed >> i & 1)
				write_all(go[i], "", 1);
		while (owed) {
			int n = wait_any(call, in, WIDTH, limit, ready);

			CHECK(n > 0 || limit >= 0);
			for (int i = 0; i < WIDTH; i++) {
				if (!ready[i])
					continue;
				CHECK(owed >> i & 1);
				CHECK_INT(recv(in[i], &c, 1, MSG_DONTWAIT), 1);
				owed &= ~(1U << i);
			}
		}
		CHECK_INT(wait_any(call, in, WIDTH, 0, ready), 0);
	}
	for (int i = 0; i < WIDTH; i++) {
		CHECK_OK(close(go[i]));
		finish(t[i]);
		CHECK_OK(close(w[i].go) | close(w[i].to) | close(in[i]));
	}
}

/* ---- closed right after the call ---------------------------------------------- */

static void *closes(void *arg)
{
	CHECK_OK(close(*(int *)arg));
	return NULL;
}

/* The peer of a descriptor in the set sees at once that it is closed, by whichever thread. */
static void released(enum call call)
{
	bool ready[3];
	char c;

	for (int round = 0; round < SPENT; round++) {
		int go[2], spent[2][2], used[2], fd[3];
		struct writer w;
		pthread_t t;

		CHECK_OK(pipe(go));
		make_pair(SOCKET, spent[0]);
		make_pair(SOCKET, spent[1]);
		make_pair(SOCKET, used);
		w = (struct writer){ go[0], used[1] };
		fd[0] = spent[0][0];
		fd[1] = used[0];
		fd[2] = spent[1][0];
		t = start(writes, &w);
		write_all(go[1], "", 1);
		CHECK_INT(wait_any(call, fd, 3, -1, ready), 1);
		CHECK(ready[1]);
		CHECK_OK(close(fd[0]));
		CHECK_INT(recv(spent[0][1], &c, 1, MSG_DONTWAIT), 0);
		finish(start(closes, &fd[2]));
		CHECK_INT(recv(spent[1][1], &c, 1, MSG_DONTWAIT), 0);
		CHECK_OK(close(go[1]));
		finish(t);
		CHECK_OK(close(go[0]) | close(w.to) | close(fd[1]) | close(spent[0][1]) |
			 close(spent[1][1]));
	}
}

/* ---- many threads, each with many descriptors ----------------------------------- */

struct member {
	enum call call;
	int in[CROWD_WIDTH], out[CROWD_WIDTH], answer;
};

static void *waits(void *arg)
{
	const struct member *m = arg;
	bool ready[CROWD_WIDTH];
	char c;

	for (int round = 0; round < CROWD_ROUNDS; round++) {
		CHECK_INT(wait_any(m->call, m->in, CROWD_WIDTH, -1, ready), 1);
		CHECK(ready[round % CROWD_WIDTH]);
		CHECK_INT(recv(m->in[round % CROWD_WIDTH], &c, 1, MSG_DONTWAIT), 1);
		write_all(m->answer, &c, 1);
	}
	return NULL;
}

static void crowd(enum call call)
{
	static struct member m[CROWD];
	static char answers[CROWD];
	pthread_t t[CROWD];
	int answer[2], fd[2];

	CHECK_OK(pipe(answer));
	for (int i = 0; i < CROWD; i++) {
		m[i].call = call;
		m[i].answer = answer[1];
		for (int j = 0; j < CROWD_WIDTH; j++) {
			/* Some are the same one, under another number. */
			if (i % 3 == 0 && j) {
				m[i].in[j] = dup(m[i].in[0]);
				m[i].out[j] = dup(m[i].out[0]);
				continue;
			}
			make_pair(SOCKET, fd);
			m[i].in[j] = fd[0];
			m[i].out[j] = fd[1];
		}
	}
	for (int i = 0; i < CROWD; i++)
		if (i % 3)
			t[i] = start(waits, &m[i]);
	for (int round = 0; round < CROWD_ROUNDS; round++) {
		size_t n = 0;

		for (int i = 0; i < CROWD; i++) {
			if (i % 3 == 0)
				continue;
			write_all(m[i].out[round % CROWD_WIDTH], "", 1);
			n++;
		}
		CHECK_INT(read_all(answer[0], answers, n), n);
	}
	for (int i = 0; i < CROWD; i++)
		if (i % 3)
			finish(t[i]);
	/* Twelve numbers of one open file: all are ready. */
	for (int i = 0; i < CROWD; i += 3) {
		bool ready[CROWD_WIDTH];

		write_all(m[i].out[1], "", 1);
		CHECK_INT(wait_any(call, m[i].in, CROWD_WIDTH, -1, ready), CROWD_WIDTH);
	}
	for (int i = 0; i < CROWD; i++)
		for (int j = 0; j < CROWD_WIDTH; j++)
			CHECK_OK(close(m[i].in[j]) | close(m[i].out[j]));
	CHECK_OK(close(answer[0]) | close(answer[1]));
}

static void *all(void *arg)
{
	(void)arg;
	for (enum call call = POLL; call < CALLS; call++) {
		rounds(call, -1);
		rounds(call, 1);
		puts("rounds");
		released(call);
		puts("released");
		crowd(call);
		puts("crowd");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		most_rounds = atoi(argv[1]);
	finish(start(all, NULL));
	return success();
}
