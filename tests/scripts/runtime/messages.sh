#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/messages.sh - where the library's messages go: to what was standard error at the
# start, as long as that has number 2, and never by a signal that ends the program.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

cat >"$work/database.c" <<'PROGRAM'
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *arg)
{
	return arg;
}

static void make_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, nothing, NULL) == 0)
		pthread_join(t, NULL);
}

/* The file gets number 2, as in a daemon that has closed its standard streams. */
static int take_number(const char *file)
{
	close(2);
	return open(file, O_RDWR | O_CREAT | O_TRUNC, 0600) == 2;
}

int main(int argc, char **argv)
{
	const char *how = argv[1], *file = argv[2];
	struct rlimit little = { 60 << 20, 60 << 20 };
	int fd;

	if (argc < 3)
		return 9;
	if (strcmp(how, "plain") == 0) {
		make_thread();
		return 0;
	}
	if (strcmp(how, "late") == 0)
		make_thread();
	if (strcmp(how, "gone") == 0)
		unlink(file);
	if (strcmp(how, "dup2") == 0) {
		fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (dup2(fd, 2) != 2)
			return 8;
	} else if (!take_number(file)) {
		return 8;
	}
	if (write(2, "DATA1\n", 6) != 6)
		return 7;
	if (strcmp(how, "exec") == 0) {
		execl(argv[0], argv[0], "plain", file, NULL);
		return 6;
	}
	if (strcmp(how, "child") == 0 && fork() != 0) {
		wait(&fd);
		return fd != 0;
	}
	/* Threads stay kernel threads, which is worth a message. */
	if (strcmp(how, "little") == 0)
		setrlimit(RLIMIT_AS, &little);
	make_thread();
	if (write(2, "DATA2\n", 6) != 6)
		return 5;
	return 0;
}
PROGRAM
must "$CC" -O1 -Wall -pthread -o "$work/database" "$work/database.c"

both="DATA1${newline}DATA2"
for how in first little late dup2 child exec gone; do
	wanted=$both
	[ $how != exec ] || wanted=DATA1
	for options in "" "-v --stats" "--disable --stats" "--backend epoll -v --stats"; do
		rm -f "$work/db"
		# The file that is gone is standard error itself, whose inode the next file may get.
		error=$work/err
		[ $how != gone ] || error=$work/db
		# shellcheck disable=SC2086 # words
		limited "$fiberize" $options "$work/database" $how "$work/db" 2>"$error"
		same "$how ${options:-plain}: ends well" 0 $?
		same "$how ${options:-plain}: only its own data" "$wanted" "$(cat "$work/db")"
	done
done
rm -f "$work/db"
limited env FIBERIZE_NONE=1 FIBERIZE_STATS=1 LD_PRELOAD="$library" \
	"$work/database" first "$work/db" 2>"$work/err"
same 'without the launcher: only its own data' "$both" "$(cat "$work/db")"
same 'without the launcher: a message before' \
	'fiberize: FIBERIZE_NONE=1: no such option; ignored' "$(cat "$work/err")"

# ---- where messages are wanted

limited "$fiberize" -v sh -c "'$work/database' plain x 2>'$work/log'" 2>"$work/err"
has 'redirected by a shell' "$work/log" '^fiberize: version '
limited "$fiberize" -v sh -c "'$work/database' plain x" 2>"$work/err"
has 'inherited' "$work/err" '^fiberize: version '
limited "$fiberize" -v "$work/database" plain x 2>&- >"$work/out"
same 'no standard error at all' '0:' "$?:$(cat "$work/out")"

# ---- messages that cannot be written

mkfifo "$work/pipe"
# The reader is gone when the program begins.
exec 3<>"$work/pipe"
exec 4>"$work/pipe" 3>&-
limited "$fiberize" -v --stats "$work/database" plain x 2>&4
same 'nobody reads standard error' 0 $?
exec 4>&-
(
	ulimit -f 0
	exec "$fiberize" -v --stats "$work/database" plain x 2>"$work/full"
)
same 'standard error is full' 0 $?

finish
