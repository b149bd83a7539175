/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/names_many.c - many threads that look up names at once:
 *
 *	names_many [THREADS]		with the names that tests/helpers/dns_double.c knows
 *
 * Answers on stdout, in the order of the threads.
 */
#include "check.h"

#include <arpa/inet.h>
#include <netdb.h>

struct lookup {
	int id;
	char text[512];
};

static void add(struct lookup *l, const char *fmt, const char *arg)
{
	size_t n = strlen(l->text);

	snprintf(l->text + n, sizeof(l->text) - n, fmt, arg);
}

static void by_getaddrinfo(struct lookup *l, const char *name, int socktype)
{
	struct addrinfo hints = { .ai_socktype = socktype }, *list = NULL;
	char text[INET6_ADDRSTRLEN];
	int err = getaddrinfo(name, "80", &hints, &list);

	if (err) {
		add(l, " %s", gai_strerror(err));
		return;
	}
	for (struct addrinfo *a = list; a; a = a->ai_next) {
		CHECK_OK(getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0,
				     NI_NUMERICHOST));
		add(l, " %s", text);
	}
	freeaddrinfo(list);
}

static void by_gethostbyname(struct lookup *l, const char *name)
{
	struct hostent host, *found = NULL;
	char buf[2048], text[INET_ADDRSTRLEN];
	int err = 0;

	CHECK_OK(gethostbyname_r(name, &host, buf, sizeof(buf), &found, &err));
	if (!found) {
		add(l, " %s", hstrerror(err));
		return;
	}
	for (char **a = found->h_addr_list; *a; a++)
		add(l, " %s", inet_ntop(AF_INET, *a, text, sizeof(text)));
}

static void by_address(struct lookup *l)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(0x0a000000u + (unsigned)l->id) };
	char host[256];

	CHECK_OK(getnameinfo((struct sockaddr *)&sa, sizeof(sa), host, sizeof(host), NULL, 0,
			     NI_NAMEREQD));
	add(l, " %s", host);
}

static void *looks_up(void *arg)
{
	struct lookup *l = arg;
	char name[64];

	snprintf(name, sizeof(name), "%s%d.test.", l->id % 10 == 3 ? "none" :
		 l->id % 10 == 7 ? "big" : "host", l->id);
	add(l, "%s", name);
	switch (l->id % 5) {
	case 0:
		by_gethostbyname(l, name);
		break;
	case 1:
		by_address(l);
		break;
	default:
		by_getaddrinfo(l, name, SOCK_STREAM);
		break;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 200;
	struct lookup *l = calloc((size_t)threads, sizeof(*l));
	pthread_t *t = calloc((size_t)threads, sizeof(*t));

	for (int i = 0; i < threads; i++) {
		l[i].id = i;
		t[i] = start(looks_up, &l[i]);
	}
	for (int i = 0; i < threads; i++)
		finish(t[i]);
	for (int i = 0; i < threads; i++)
		puts(l[i].text);
	return success();
}
