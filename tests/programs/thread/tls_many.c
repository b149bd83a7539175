/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/tls_many.c - more libraries with thread-local variables than libc has room for in
 * a thread's array of blocks when the thread begins: threads that are there already, threads of a first
 * and of a second life, and one in a handler, while such libraries come and go.
 */
#include "check.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { MANY = 90, OLD = 4, NEW = 4, ROUNDS = 3 };

struct module {
	int fd;				/* a copy of the library */
	void *handle;
	int *(*value)(void);
};

static struct module modules[MANY];
static pthread_barrier_t barrier;

static int copy_of(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("module", MFD_CLOEXEC);
	struct stat st;

	CHECK(from >= 0 && to >= 0);
	CHECK_OK(fstat(from, &st));
	CHECK_INT(sendfile(to, from, NULL, (size_t)st.st_size), st.st_size);
	CHECK_OK(close(from));
	return to;
}

/* General dynamic and descriptors in turn. */
static void copy_all(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	CHECK(n > 0);
	path[n] = 0;
	for (int i = 0; i < MANY; i++) {
		strcpy(strrchr(path, '/') + 1, i % 2 ? "tls_module_gd.so" : "tls_module_desc.so");
		modules[i].fd = copy_of(path);
	}
}

static void load(struct module *m)
{
	char path[64];

	sprintf(path, "/proc/self/fd/%d", m->fd);
	m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!m->handle)
		fail(__FILE__, __LINE__, "%s\n", dlerror());
	m->value = (int *(*)(void))dlsym(m->handle, "module_value");
	CHECK(m->value);
}

/* The last one first, or the first one first: an array of blocks grows at once, or step by step. */
static void use(int id)
{
	for (int i = 0; i < MANY; i++) {
		struct module *m = &modules[id % 2 ? i : MANY - 1 - i];

		CHECK_INT(*m->value(), 42);
		*m->value() = id * 1000 + (int)(m - modules);
	}
	sched_yield();
	if (id % 3 == 0)
		usleep(100);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(*modules[i].value(), id * 1000 + i);
}

static void handler(int signo)
{
	use(signo);
}

static void *old_thread(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		/* What was not loaded anew keeps its value: the first third of the libraries. */
		if (round)
			for (int i = 0; i < MANY / 3; i++)
				*modules[i].value() = *modules[i].value() == id * 1000 + i ? 42 : -1;
		if (id == OLD)
			CHECK_OK(raise(SIGUSR1));
		else
			use(id);
		if (id == OLD)
			for (int i = 0; i < MANY / 3; i++)
				*modules[i].value() += (OLD - SIGUSR1) * 1000;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void *new_thread(void *arg)
{
	use((int)(intptr_t)arg);
	return NULL;
}

int main(void)
{
	pthread_t old[OLD], threads[NEW];

	copy_all();
	CHECK(signal(SIGUSR1, handler) != SIG_ERR);
	CHECK_OK(pthread_barrier_init(&barrier, NULL, OLD + 1));
	for (int i = 0; i < OLD; i++)
		old[i] = start(old_thread, (void *)(intptr_t)(i + 1));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = round ? MANY / 3 : 0; i < MANY; i++)
			load(&modules[i]);
		pthread_barrier_wait(&barrier);
		for (int again = 0; again < 2; again++) {
			for (int i = 0; i < NEW; i++)
				threads[i] = start(new_thread, (void *)(intptr_t)(i + 50));
			for (int i = 0; i < NEW; i++)
				finish(threads[i]);
		}
		pthread_barrier_wait(&barrier);
		for (int i = MANY / 3; round < ROUNDS - 1 && i < MANY; i++)
			CHECK_OK(dlclose(modules[i].handle));
	}
	for (int i = 0; i < OLD; i++)
		finish(old[i]);
	return success();
}
