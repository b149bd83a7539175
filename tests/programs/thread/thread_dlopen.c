/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_dlopen.c - thread-local variables of libraries that come and
 * go while there are threads: general dynamic, by descriptors, initial exec.
 */
#include "check.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>

enum { OLD = 10, NEW = 20, ROUNDS = 4, MODELS = 3 };

static const char *const models[MODELS] = { "gd", "desc", "ie" };

struct module {
	void *handle;
	int *(*value)(void);
	char *(*big)(unsigned *);
	const char **(*text)(void);
};

static struct module modules[MODELS];
static pthread_barrier_t barrier;

static __thread int in_program = 7;

static void load(struct module *m, const char *model)
{
	char path[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	CHECK(n > 0);
	path[n] = 0;
	slash = strrchr(path, '/');
	sprintf(slash + 1, "tls_module_%s.so", model);
	m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!m->handle)
		fail(__FILE__, __LINE__, "%s\n", dlerror());
	m->value = (int *(*)(void))dlsym(m->handle, "module_value");
	m->big = (char *(*)(unsigned *))dlsym(m->handle, "module_big");
	m->text = (const char **(*)(void))dlsym(m->handle, "module_text_of_thread");
	CHECK(m->value && m->big && m->text);
}

static bool all_zero(const char *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* Everything is as it was made, and then is not. */
static void use(int id)
{
	for (int i = 0; i < MODELS; i++) {
		struct module *m = &modules[i];
		int *value = m->value();
		unsigned size;
		char *big = m->big(&size);

		CHECK_INT(*value, 42);
		CHECK(!strcmp(*m->text(), "initial"));
		CHECK(all_zero(big, size));
		*value = id;
		*m->text() = models[i];
		memset(big, id, size);
	}
	for (int i = 0; i < MODELS; i++) {
		struct module *m = &modules[i];
		unsigned size;

		sched_yield();
		if (id % 3 == 0)
			usleep(100);
		CHECK_INT(*m->value(), id);
		CHECK(*m->text() == models[i]);
		CHECK_INT(m->big(&size)[size - 1], id);
	}
}

/* Born before any of the libraries, it sees them come and go. */
static void *old_thread(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		if ((round + id) % 2)
			use(id);
		pthread_barrier_wait(&barrier);
	}
	CHECK_INT(in_program++, 7);
	return NULL;
}

static void *new_thread(void *arg)
{
	CHECK_INT(in_program++, 7);
	use((int)(intptr_t)arg);
	return NULL;
}

static void *opens_and_closes(void *arg)
{
	struct module m;

	for (int i = 0; i < 20; i++) {
		load(&m, models[i % 2]);
		CHECK_INT((*m.value())++, 42);
		sched_yield();
		CHECK_OK(dlclose(m.handle));
	}
	return arg;
}

int main(void)
{
	pthread_t old[OLD], threads[NEW];

	/* Nobody has asked for anything. */
	CHECK(!dlerror());
	CHECK_OK(pthread_barrier_init(&barrier, NULL, OLD + 1));
	for (int i = 0; i < OLD; i++)
		old[i] = start(old_thread, (void *)(intptr_t)(i + 1));
	for (int round = 0; round < ROUNDS; round++) {
		/* In another order each time. */
		for (int i = 0; i < MODELS; i++)
			load(&modules[(i + round) % MODELS], models[(i + round) % MODELS]);
		pthread_barrier_wait(&barrier);
		/* Twice, so that threads are of a second life. */
		for (int again = 0; again < 2; again++) {
			for (int i = 0; i < NEW; i++)
				threads[i] = start(new_thread, (void *)(intptr_t)(i + 50));
			for (int i = 0; i < NEW; i++)
				finish(threads[i]);
		}
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < MODELS; i++)
			CHECK_OK(dlclose(modules[i].handle));
	}
	for (int i = 0; i < OLD; i++)
		finish(old[i]);
	finish(start(opens_and_closes, NULL));
	finish(start(opens_and_closes, NULL));
	return success();
}
