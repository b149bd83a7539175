/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/tls_headers.c - thread-local variables of a library whose program headers
 * are at the end of its file, where tools that edit libraries put them.
 */
#include "check.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum { THREADS = 8 };

struct module {
	int *(*value)(void);
	const char **(*text)(void);
};

/* Copy the library from `path`, with its program headers behind all else, to the new file fd. */
static void copy_edited(const char *path, int fd)
{
	int from = open(path, O_RDONLY);
	struct stat st;
	Elf64_Ehdr *header;
	size_t size, headers;
	char *text;

	CHECK(from >= 0);
	CHECK_OK(fstat(from, &st));
	size = ((size_t)st.st_size + 7) & ~(size_t)7;
	text = calloc(1, size + 4096);
	CHECK(text && read(from, text, (size_t)st.st_size) == st.st_size);
	CHECK_OK(close(from));
	header = (void *)text;
	headers = (size_t)header->e_phnum * header->e_phentsize;
	CHECK(header->e_phoff == sizeof(*header) && headers < 4096);
	memcpy(text + size, text + header->e_phoff, headers);
	memset(text + header->e_phoff, 0, headers);
	header->e_phoff = size;
	CHECK(write(fd, text, size + headers) == (ssize_t)(size + headers));
	free(text);
}

static void load(struct module *m, const char *model)
{
	char path[PATH_MAX], copy[] = "/tmp/tls_headers.XXXXXX";
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	int fd = mkstemp(copy);
	void *handle;

	CHECK(n > 0 && fd >= 0);
	path[n] = 0;
	sprintf(strrchr(path, '/') + 1, "tls_module_%s.so", model);
	copy_edited(path, fd);
	CHECK_OK(close(fd));
	handle = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
	CHECK_OK(unlink(copy));
	if (!handle)
		fail(__FILE__, __LINE__, "%s\n", dlerror());
	m->value = (int *(*)(void))dlsym(handle, "module_value");
	m->text = (const char **(*)(void))dlsym(handle, "module_text_of_thread");
	CHECK(m->value && m->text);
}

/* Everything is as it was made, and then is not. */
static void *life(void *arg)
{
	const struct module *m = arg;

	CHECK_INT(*m->value(), 42);
	CHECK(!strcmp(*m->text(), "initial"));
	*m->value() = 1;
	*m->text() = "used";
	sched_yield();
	CHECK_INT(*m->value(), 1);
	return NULL;
}

int main(void)
{
	static const char *const models[] = { "gd", "ie" };
	pthread_t t[THREADS];
	struct module m;

	for (size_t i = 0; i < COUNT(models); i++) {
		load(&m, models[i]);
		/* Again and again, so that threads are of a second life. */
		for (int again = 0; again < 4; again++) {
			for (int k = 0; k < THREADS; k++)
				t[k] = start(life, &m);
			for (int k = 0; k < THREADS; k++)
				finish(t[k]);
		}
	}
	return success();
}
