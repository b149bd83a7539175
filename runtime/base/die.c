/* SPDX-License-Identifier: MIT */
#include "runtime/base/die.h"

#include <linux/fcntl.h>
#include <linux/stat.h>
#include <stdarg.h>

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

bool fz_verbose;

struct line {
	char text[512];
	size_t used;
};

static void put(struct line *line, char c)
{
	if (line->used < sizeof(line->text) - 1)
		line->text[line->used++] = c;
}

static void put_string(struct line *line, const char *s)
{
	for (s = s ? s : "(null)"; *s; s++)
		put(line, *s);
}

static void put_number(struct line *line, uint64_t value, unsigned base)
{
	char digits[24];
	size_t n = 0;

	do {
		digits[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (n)
		put(line, digits[--n]);
}

static void put_signed(struct line *line, int64_t value)
{
	if (value < 0)
		put(line, '-');
	put_number(line, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

static void format_line(struct line *line, const char *format, va_list args)
{
	for (; *format; format++) {
		if (*format != '%') {
			put(line, *format);
			continue;
		}
		switch (*++format) {
		case 's': put_string(line, va_arg(args, const char *)); break;
		case 'd': put_signed(line, va_arg(args, int)); break;
		case 'u': put_number(line, va_arg(args, unsigned), 10); break;
		case 'x': put_number(line, va_arg(args, unsigned), 16); break;
		case 'l':
			format++;
			if (*format == 'u')
				put_number(line, va_arg(args, unsigned long), 10);
			else if (*format == 'x')
				put_number(line, va_arg(args, unsigned long), 16);
			else
				put_signed(line, va_arg(args, long));
			break;
		case '%': put(line, '%'); break;
		default: return;
		}
	}
}

/* ---- standard error ------------------------------------------------------ */

enum { STDERR = 2 };

/* The file that had number 2 at the start; written by fz_say_init() alone. */
static struct {
	bool known, none;
	struct fz_file_id id;
	/* Besides the inode, since a file system may give the inode number of a deleted file to a new one. */
	struct statx_timestamp birth;
} standard_error;

/* Returns false if number 2 is closed. */
static bool look(struct statx *ret)
{
	enum { AT_EMPTY = 0x1000, AT_DONT_SYNC = 0x4000 };

	return fz_syscall5(__NR_statx, STDERR, (long)"", AT_EMPTY | AT_DONT_SYNC,
			   STATX_INO | STATX_BTIME, (long)ret) == 0;
}

static bool is_file(const struct statx *st, const struct fz_file_id *id)
{
	return st->stx_ino == id->inode && st->stx_dev_major == id->major &&
	       st->stx_dev_minor == id->minor;
}

/* Was number 2 redirected, as a shell does it?  Otherwise it may be a data file that got this number by chance. */
static bool is_redirected(void)
{
	enum { GET_TERMINAL = 0x5401 };
	char terminal[64];

	return (fz_syscall2(__NR_fcntl, STDERR, F_GETFL) & O_ACCMODE) == O_WRONLY ||
	       fz_syscall3(__NR_ioctl, STDERR, GET_TERMINAL, (long)terminal) == 0;
}

void fz_say_init(const struct fz_file_id *launchers)
{
	struct statx st;

	standard_error.known = true;
	standard_error.none = !look(&st) ||
			      (launchers && !is_file(&st, launchers) && !is_redirected());
	if (standard_error.none)
		return;
	standard_error.id = (struct fz_file_id){ st.stx_ino, st.stx_dev_major, st.stx_dev_minor };
	standard_error.birth = st.stx_btime;
}

static bool is_standard_error(void)
{
	struct statx st;

	return !standard_error.known ||
	       (!standard_error.none && look(&st) && is_file(&st, &standard_error.id) &&
		st.stx_btime.tv_sec == standard_error.birth.tv_sec &&
		st.stx_btime.tv_nsec == standard_error.birth.tv_nsec);
}

/* A message to a closed pipe or a full file must not end the program by a signal. */
static void write_quietly(const char *text, size_t size)
{
	const int sig_block = 0, sig_setmask = 2;
	const uint64_t set = 1 << (13 - 1) | 1 << (25 - 1);	/* SIGPIPE, SIGXFSZ */
	const struct __kernel_timespec none = { 0, 0 };
	uint64_t before, pending = 0;
	long n;

	fz_sys_sigmask(sig_block, &set, &before);
	fz_syscall2(__NR_rt_sigpending, (long)&pending, sizeof(pending));
	do
		n = fz_syscall3(__NR_write, STDERR, (long)text, (long)size);
	while (n == -EINTR);
	if ((n == -EPIPE || n == -EFBIG) && !(pending & set))
		fz_syscall4(__NR_rt_sigtimedwait, (long)&set, 0, (long)&none, sizeof(set));
	fz_sys_sigmask(sig_setmask, &before, NULL);
}

static void say(const char *format, va_list args)
{
	struct line line = { .used = 0 };

	if (!is_standard_error())
		return;
	put_string(&line, "fiberize: ");
	format_line(&line, format, args);
	line.text[line.used++] = '\n';
	write_quietly(line.text, line.used);
}

void fz_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

static _Noreturn void die(void)
{
	const int sigabrt = 6;

	fz_syscall3(__NR_tgkill, fz_sys_getpid(), fz_sys_gettid(), sigabrt);
	/* If SIGABRT is blocked or handled, end the process with the status of an abort. */
	for (;;)
		fz_syscall1(__NR_exit_group, 128 + sigabrt);
}

_Noreturn void fz_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	die();
}

_Noreturn void fz_assert_failed(const char *cond, const char *file, int line)
{
	fz_die("%s:%d: assertion failed: %s", file, line, cond);
}
