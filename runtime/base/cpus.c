/* SPDX-License-Identifier: MIT */
#include "runtime/base/cpus.h"

#include <fcntl.h>
#include <stddef.h>

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

uint32_t fz_cpus_allowed(void)
{
	uint64_t set[128];
	long size = fz_syscall3(__NR_sched_getaffinity, 0, sizeof(set), (long)set);
	uint32_t count = 0;

	for (long i = 0; i < size / (long)sizeof(set[0]); i++)
		count += (uint32_t)__builtin_popcountll(set[i]);
	return count;
}

/* ---- finding the files ---------------------------------------------------- */

/*
 * A quota is the first number of file 2 * n, in microseconds of CPU time for each period; the
 * period is its second number, or in file 2 * n + 1.
 */
enum { MOST = 8 };
static _Atomic int files[2 * MOST] = { [0 ... 2 * MOST - 1] = -1 };
static uint32_t quotas;

/* A path that is put together from parts.  A path that is too long is cut. */
struct path {
	char text[512];
	size_t size;
};

static void add(struct path *path, const char *text, size_t size)
{
	if (path->size + size >= sizeof(path->text))
		size = sizeof(path->text) - 1 - path->size;
	__builtin_memcpy(path->text + path->size, text, size);
	path->size += size;
	path->text[path->size] = '\0';
}

static int open_in(const struct path *dir, const char *name)
{
	struct path path = *dir;

	add(&path, "/", 1);
	add(&path, name, __builtin_strlen(name));
	return (int)fz_syscall4(__NR_openat, AT_FDCWD, (long)path.text, O_RDONLY | O_CLOEXEC, 0);
}

/* Open the files with the group's quota, and keep them open.  The root of all groups has none. */
static void keep_quota(const struct path *dir, bool unified, int (*raise)(int fd))
{
	int quota = open_in(dir, unified ? "cpu.max" : "cpu.cfs_quota_us"), period;

	if (quota < 0)
		return;
	period = unified ? -1 : open_in(dir, "cpu.cfs_period_us");
	/* relaxed: before the second thread. */
	atomic_store_explicit(&files[2 * quotas], raise(quota), memory_order_relaxed);
	if (period >= 0)
		atomic_store_explicit(&files[2 * quotas + 1], raise(period), memory_order_relaxed);
	quotas++;
}

/*
 * Keep the quotas of `group`, which is its name in /proc/self/cgroup, and of all groups above it up to
 * the mount point.  In a container that name may be the one outside of the container.  Then no such
 * directory exists, and only the mount point has a quota, that of the container's group.
 */
static void keep_all(const char *mount, const char *group, size_t size, bool unified,
		     int (*raise)(int fd))
{
	struct path dir = { .size = 0 };
	size_t root;

	add(&dir, mount, __builtin_strlen(mount));
	root = dir.size;
	if (size > 1)
		add(&dir, group, size);
	while (quotas < MOST) {
		keep_quota(&dir, unified, raise);
		if (dir.size <= root)
			break;
		while (dir.size > root && dir.text[--dir.size] != '/')
			continue;
		dir.text[dir.size] = '\0';
	}
}

/* Is `word` among the words of text, which commas separate? */
static bool has_word(const char *text, size_t size, const char *word)
{
	const size_t length = __builtin_strlen(word);

	for (size_t i = 0; i + length <= size; i++)
		if ((i == 0 || text[i - 1] == ',') && !__builtin_memcmp(text + i, word, length) &&
		    (i + length == size || text[i + length] == ','))
			return true;
	return false;
}

/* A line of /proc/self/cgroup: number, controllers, group. */
struct line {
	const char *names, *group;
	size_t names_size, group_size;
};

static bool parse(const char *text, size_t size, struct line *ret_line)
{
	const char *names = __builtin_memchr(text, ':', size), *group;

	if (!names)
		return false;
	names++;
	group = __builtin_memchr(names, ':', (size_t)(text + size - names));
	if (!group)
		return false;
	*ret_line = (struct line){ names, group + 1, (size_t)(group - names),
				   (size_t)(text + size - group - 1) };
	return true;
}

/*
 * Keep the quotas of the group that controls CPU time.  In version 1 of control groups, the mount point
 * is named after the controllers of the hierarchy.  If there is none, use version 2, whose line in
 * /proc/self/cgroup names no controllers.
 */
static void keep_group(const struct line *v1, const struct line *v2, int (*raise)(int fd))
{
	struct path mount = { .size = 0 };
	static const char root[] = "/sys/fs/cgroup";

	add(&mount, root, sizeof(root) - 1);
	if (v1->group) {
		add(&mount, "/", 1);
		add(&mount, v1->names, v1->names_size);
		keep_all(mount.text, v1->group, v1->group_size, false, raise);
	} else if (v2->group) {
		keep_all(mount.text, v2->group, v2->group_size, true, raise);
	}
}

void fz_cpus_find_quotas(int (*raise)(int fd))
{
	char text[4096];
	long fd = fz_syscall4(__NR_openat, AT_FDCWD, (long)"/proc/self/cgroup", O_RDONLY | O_CLOEXEC, 0);
	long size = fd < 0 ? 0 : fz_syscall3(__NR_read, fd, (long)text, sizeof(text));
	struct line v1 = { .group = NULL }, v2 = { .group = NULL }, line;
	const char *at = text, *end;

	if (fd >= 0)
		fz_syscall1(__NR_close, fd);
	for (; size > 0 && (end = __builtin_memchr(at, '\n', (size_t)(text + size - at))); at = end + 1) {
		if (!parse(at, (size_t)(end - at), &line))
			continue;
		if (!line.names_size)
			v2 = line;
		else if (has_word(line.names, line.names_size, "cpu"))
			v1 = line;
	}
	keep_group(&v1, &v2, raise);
}

/* ---- reading them ----------------------------------------------------------- */

/* Read up to two numbers of file i.  Returns how many there are; "max" and -1 are none. */
static int read_numbers(uint32_t i, uint64_t *ret_numbers)
{
	/* relaxed: if the library moves its descriptor just now, the old and the new number name the same file. */
	const int fd = atomic_load_explicit(&files[i], memory_order_relaxed);
	char text[64];
	long size = fd < 0 ? 0 : fz_syscall4(__NR_pread64, fd, (long)text, sizeof(text) - 1, 0);
	const char *at = text;
	int n = 0;

	text[size < 0 ? 0 : size] = '\0';
	for (; n < 2 && *at >= '0' && *at <= '9'; n++) {
		uint64_t value = 0;

		for (; *at >= '0' && *at <= '9'; at++)
			value = value * 10 + (uint64_t)(*at - '0');
		ret_numbers[n] = value;
		at += *at == ' ';
	}
	return n;
}

uint32_t fz_cpus_quota(void)
{
	uint64_t least = UINT32_MAX;

	for (uint32_t i = 0; i < quotas; i++) {
		uint64_t n[3] = { 0, 0, 0 };
		uint64_t cpus;
		int found = read_numbers(2 * i, n);

		if (found == 1)
			found += read_numbers(2 * i + 1, n + 1) >= 1;
		if (found < 2 || !n[0] || !n[1])
			continue;
		cpus = n[0] / n[1] + (n[0] % n[1] != 0);
		least = cpus < least ? cpus : least;
	}
	return (uint32_t)least;
}

uint32_t fz_cpus_fd_count(void)
{
	return 2 * quotas;
}

int fz_cpus_fd(uint32_t i)
{
	return atomic_load_explicit(&files[i], memory_order_relaxed);
}

int fz_cpus_vacate_fd(int fd, int (*elsewhere)(int fd))
{
	for (uint32_t i = 0; i < 2 * quotas; i++) {
		int copy;

		if (fz_cpus_fd(i) != fd || fd < 0)
			continue;
		copy = elsewhere(fd);
		if (copy < 0)
			return copy;
		atomic_store_explicit(&files[i], copy, memory_order_relaxed);
	}
	return 0;
}

void fz_cpus_close(void (*close)(int fd))
{
	for (uint32_t i = 0; i < 2 * quotas; i++) {
		if (fz_cpus_fd(i) >= 0)
			close(fz_cpus_fd(i));
		atomic_store_explicit(&files[i], -1, memory_order_relaxed);
	}
	quotas = 0;
}
