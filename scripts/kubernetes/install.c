/* SPDX-License-Identifier: MIT */
/*
 * scripts/kubernetes/install.c - install DIR [FROM]: the program of the image that "make oci" makes, for the
 * init container of a pod; copies the libraries from FROM, by default the directory it is in there, to DIR.
 *
 * A container of the pod starts only when this has ended with 0.  Without the libraries it runs as without
 * fiberize, after a line of the loader's; so this says what failed, and ends with 0.  Each file is there whole
 * or not at all.  Statically linked: there is nothing else in the image.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = { "libfiberize.so", "libfiberize-preload.so" };

static int complain(const char *path)
{
	fprintf(stderr, "fiberize: %s: %s; the pod runs without fibers\n", path, strerror(errno));
	return -1;
}

/* Copies all that can be read from one descriptor to another. */
static int copy(int from, int to)
{
	static char buffer[65536];
	ssize_t got;

	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		for (ssize_t done = 0, count; done < got; done += count)
			if ((count = write(to, buffer + done, (size_t)(got - done))) < 0)
				return -1;
	return (int)got;
}

static int install(const char *from_dir, const char *dir, const char *name)
{
	char source[PATH_MAX], target[PATH_MAX], part[PATH_MAX];
	int from, to, failed;

	snprintf(source, sizeof(source), "%s/%s", from_dir, name);
	snprintf(target, sizeof(target), "%s/%s", dir, name);
	snprintf(part, sizeof(part), "%s/.%s.new", dir, name);
	from = open(source, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return complain(source);
	/* One that was left by a container that was killed. */
	unlink(part);
	to = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	/* Whatever the umask, every user of the pod may read it. */
	failed = to < 0 || copy(from, to) < 0 || fchmod(to, 0644) < 0 || close(to) < 0 || rename(part, target) < 0;
	if (failed) {
		complain(target);
		unlink(part);
	}
	close(from);
	return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc < 2 || argc > 3) {
		fputs("usage: install DIR [FROM]\n", stderr);
		return 2;
	}
	/* The library that is named in LD_PRELOAD comes last: it looks for the other one. */
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !failed; i++)
		failed = install(argc > 2 ? argv[2] : "/usr/lib/fiberize", argv[1], names[i]);
	return 0;
}
