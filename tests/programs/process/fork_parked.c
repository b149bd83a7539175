/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_parked.c [THREADS FORKS] - a process with many sleeping threads
 * forks; the child serves connections with threads of its own; descriptors and
 * memory do not grow.
 */
#include "sockets.h"

#include <dirent.h>
#include <sys/wait.h>

static int parked_on[2];
static struct event parked = EVENT_INIT;

static void *sleeps(void *arg)
{
	char c;

	event_post(&parked);
	CHECK_INT(read(parked_on[0], &c, 1), 0);
	return arg;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Private and dirty, in KB. */
static long resident(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kb = 0, n;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Rss: %ld", &n) == 1)
			kb = n;
	fclose(f);
	return kb;
}

/* ---- the child is a server -------------------------------------------------- */

static void *asks(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[16];

	CHECK_OK(connect(fd, arg, sizeof(struct sockaddr_in)));
	for (int i = 0; i < 10; i++) {
		CHECK_INT(write(fd, "0123456789abcdef", 16), 16);
		CHECK_INT(recv(fd, text, 16, MSG_WAITALL), 16);
	}
	close(fd);
	return NULL;
}

static int server(void)
{
	enum { CLIENTS = 8 };
	struct sockaddr_in address;
	pthread_t clients[CLIENTS], servers[CLIENTS];
	int fd = listening_socket(0, &address);

	for (int i = 0; i < CLIENTS; i++)
		clients[i] = start(asks, &address);
	for (int i = 0; i < CLIENTS; i++)
		servers[i] = start(echoes_until_end, (void *)(intptr_t)accept(fd, NULL, NULL));
	for (int i = 0; i < CLIENTS; i++) {
		finish(clients[i]);
		finish(servers[i]);
	}
	close(fd);
	return 17;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 500, forks = argc > 2 ? atoi(argv[2]) : 12;
	pthread_t *t = calloc((size_t)threads, sizeof(*t));
	int fds = 0, status;
	pthread_attr_t attr;
	long kb = 0;

	CHECK_OK(pipe(parked_on));
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < threads; i++)
		CHECK_OK(pthread_create(&t[i], &attr, sleeps, NULL));
	event_wait(&parked, threads);
	for (int i = 0; i < forks; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			exit(server());
		while (waitpid(pid, &status, 0) != pid)
			CHECK_INT(errno, EINTR);
		CHECK_INT(status, 17 << 8);
		if (i == forks / 3) {
			fds = descriptors();
			kb = resident();
		}
	}
	CHECK_INT(descriptors(), fds);
	CHECK(resident() - kb < 2048);
	close(parked_on[1]);
	for (int i = 0; i < threads; i++)
		finish(t[i]);
	return success();
}
