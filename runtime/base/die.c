/* SPDX-License-Identifier: MIT */
#include "runtime/base/die.h"

#include <stdarg.h>

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

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

static void say(const char *format, va_list args)
{
	struct line line = { .used = 0 };

	put_string(&line, "fiberize: ");
	format_line(&line, format, args);
	line.text[line.used++] = '\n';
	fz_syscall3(__NR_write, 2, (long)line.text, (long)line.used);
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
