/* SPDX-License-Identifier: MIT */
/*
 * scripts/kubernetes/install.c - install DIR [FROM]: copies the libraries from FROM (default:
 * /usr/lib/fiberize) to DIR.  It is the program in the image of "make oci", run by the init container of a pod.
 *
 * The containers of the pod start only if this program ends with 0.  If a library cannot be copied, it prints
 * why, and still ends with 0: then the loader prints a line, and the containers run without fiberize.  Each file
 * is copied as a whole or not at all.  The program is linked statically, because the image has no libc.
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
	/* Remove a partial copy, which a killed init container may have left. */
	unlink(part);
	to = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	/* Set the mode whatever the umask is: each user in the pod must be able to read the library. */
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
	/* Copy the library that LD_PRELOAD names last, because it loads the other one. */
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !failed; i++)
		failed = install(argc > 2 ? argv[2] : "/usr/lib/fiberize", argv[1], names[i]);
	return 0;
}
