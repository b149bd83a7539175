/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/system_closing.c - a command of system() runs for long, and the program has as many descriptors as it
 * may: a call whose descriptor is closed keeps its file, and the program keeps all its numbers.
 */
#include "sockets.h"

enum { LIMIT = 256 };

static int goes_on[2], stops[2];

static void *runs_command(void *arg)
{
	char command[100];

	snprintf(command, sizeof(command), "echo >&%d; read line <&%d", goes_on[1], stops[0]);
	CHECK_INT(system(command), 0);
	return arg;
}

int main(void)
{
	struct byte_receiver r;
	int fds[LIMIT], n, end[2];
	pthread_t t, command;
	char c;

	limit_descriptors(LIMIT);
	CHECK_OK(pipe(goes_on));
	CHECK_OK(pipe(stops));
	make_pair(SOCKET, end);
	t = start_byte_receiver(&r, end[0]);
	command = start(runs_command, NULL);
	CHECK_INT(read(goes_on[0], &c, 1), 1);
	n = fill_descriptors(fds);
	CHECK_OK(close(end[0]));
	CHECK_INT(write(end[1], "x", 1), 1);
	finish(t);
	for (int i = 0; i < n; i++)
		CHECK_OK(close(fds[i]));
	/* All numbers that it had, and the one that it has closed. */
	CHECK_INT(fill_descriptors(fds), n + 1);
	CHECK_INT(write(stops[1], "\n", 1), 1);
	finish(command);
	return success();
}
