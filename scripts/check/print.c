/* SPDX-License-Identifier: MIT */
/*
 * scripts/check/print.c - prints a report, as text for people and as JSON for programs. Names
 * in a report come from the examined file and may hold any bytes.
 */
#include <string.h>
#include <sys/syscall.h>

#include "report.h"

static const char *const rung_names[] = {
#define FZ_RUNG(rung, word, text) [RUNG_##rung] = word,
#include "preload/rungs.def"
};

static const char *const trait_names[TRAIT_COUNT] = {
	[TRAIT_THREADS] = "threads",	 [TRAIT_CPU_BOUND] = "cpu-bound",
	[TRAIT_LOOP] = "event loop",	 [TRAIT_PROCESSES] = "processes",
	[TRAIT_SERVES] = "serves",	 [TRAIT_PLUGINS] = "plugins",
	[TRAIT_EXECS] = "execs",
};

/* The system calls in which a thread waits. */
static const struct {
	long number;
	const char *name;
} waiting[] = {
	{ SYS_read, "read" }, { SYS_write, "write" }, { SYS_futex, "futex" },
	{ SYS_nanosleep, "nanosleep" }, { SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_ppoll, "ppoll" }, { SYS_pselect6, "pselect6" }, { SYS_accept, "accept" },
	{ SYS_accept4, "accept4" }, { SYS_connect, "connect" }, { SYS_recvfrom, "recvfrom" },
	{ SYS_recvmsg, "recvmsg" }, { SYS_sendto, "sendto" }, { SYS_sendmsg, "sendmsg" },
	{ SYS_epoll_pwait, "epoll_pwait" }, { SYS_wait4, "wait4" }, { SYS_waitid, "waitid" },
	{ SYS_io_uring_enter, "io_uring_enter" }, { SYS_io_getevents, "io_getevents" },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait" },
#ifdef SYS_poll
	{ SYS_poll, "poll" }, { SYS_select, "select" }, { SYS_epoll_wait, "epoll_wait" },
	{ SYS_pause, "pause" },
#endif
};

static const char *const backend_names[] = {
	[BY_IO_URING] = "io_uring", [BY_EPOLL] = "epoll", [BY_THREADS] = "none",
};

static const char *waiting_name(uint32_t number)
{
	for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++)
		if (waiting[i].number == (long)number)
			return waiting[i].name;
	return NULL;
}

static const char *base_name(const struct object *o)
{
	const char *slash = strrchr(o->path, '/');

	return slash ? slash + 1 : o->path;
}

/* ---- text --------------------------------------------------------------- */

void put_line(const char *text, FILE *out)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

void put_backend(const struct backend *b, FILE *out)
{
	fprintf(out, "%-12s%s", "backend", backend_names[b->by]);
	if (*b->why)
		fprintf(out, ": io_uring cannot be used here: %s", b->why);
	fputc('\n', out);
}

static void put_names(const struct names *names, FILE *out)
{
	for (size_t i = 0; i < names->count; i++) {
		fputc(' ', out);
		put_line(names->name[i], out);
	}
}

static void put_field(const char *name, const char *value, FILE *out)
{
	fprintf(out, "%-12s", name);
	put_line(value, out);
	fputc('\n', out);
}

static void put_object(const struct findings *f, FILE *out)
{
	bool any = f->own.count || f->raw.sites;

	for (int i = 0; i < RUNG_COUNT; i++)
		any = any || f->calls[i].count;
	if (!any && !f->object->damage)
		return;
	put_line(base_name(f->object), out);
	fputs(":\n", out);
	if (f->object->damage)
		fprintf(out, "  damaged     %s\n", f->object->damage);
	for (int i = 0; i < RUNG_COUNT; i++) {
		if (!f->calls[i].count)
			continue;
		fprintf(out, "  %-11s", rung_names[i]);
		put_names(&f->calls[i], out);
		fputc('\n', out);
	}
	if (f->own.count) {
		fputs("  its own    ", out);
		put_names(&f->own, out);
		fputc('\n', out);
	}
	if (f->raw.sites) {
		fprintf(out, "  raw         %u system calls past libc", f->raw.sites);
		for (unsigned i = 0; i < f->raw.number_count; i++)
			if (waiting_name(f->raw.numbers[i]))
				fprintf(out, " %s", waiting_name(f->raw.numbers[i]));
		fputc('\n', out);
	}
}

static void put_trait(const struct report *r, enum trait trait, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < r->libraries.count; i++) {
		const struct findings *f = &r->findings[i];

		if (!f->traits[trait].count)
			continue;
		if (!any)
			fprintf(out, "%-11s", trait_names[trait]);
		fputs(any ? "; " : " ", out);
		put_line(base_name(f->object), out);
		fputc(':', out);
		put_names(&f->traits[trait], out);
		any = true;
	}
	if (any)
		fputc('\n', out);
}

static void put_profile(const struct profile *p, FILE *out)
{
	fprintf(out, "%-12s", "profile");
	put_line(p->file, out);
	fputs(" [", out);
	put_line(p->pattern, out);
	fputc(']', out);
	for (size_t i = 0; i < p->count; i++) {
		fprintf(out, "%s %s = ", i ? "," : ":", p->settings[i].option);
		put_line(p->settings[i].value, out);
		if (!p->settings[i].used)
			fputs(" (set before)", out);
	}
	fputc('\n', out);
}

static void put_start(const struct start *s, FILE *out)
{
	fprintf(out, "%-12s", "starts");
	put_line(s->path, out);
	fprintf(out, ": %s: ", s->verdict);
	put_line(s->reason, out);
	fputc('\n', out);
}

void report_text(const struct report *r, FILE *out)
{
	const struct program *p = &r->program;

	if (p->path)
		put_field("program", p->path, out);
	if (p->script_count && p->object)
		put_field("interpreter", p->object->path, out);
	put_field("kind", p->kind, out);
	if (p->object && p->object->elf_class != ELFCLASSNONE)
		put_field("machine", machine_name(p->object->header.e_machine), out);
	if (p->object && p->object->interpreter)
		put_field("loader", p->object->interpreter, out);
	fprintf(out, "%-12s%s: ", "verdict", r->verdict);
	put_line(r->reason, out);
	fputc('\n', out);
	put_field("advice", r->advice, out);
	if (r->switch_ns)
		fprintf(out, "%-12sa system call of %u ns each\n", "switches", r->switch_ns);
	put_backend(&r->backend, out);
	for (size_t i = 0; r->profiles && i < r->profiles->count; i++)
		put_profile(&r->profiles->all[i], out);
	for (size_t i = 0; i < r->start_count; i++)
		put_start(&r->starts[i], out);
	for (size_t i = r->libraries.needed_count; i < r->libraries.count; i++)
		put_field("may load", r->libraries.objects[i]->path, out);
	for (size_t i = 0; i < r->libraries.missing_count; i++)
		put_field("not found", r->libraries.missing[i], out);
	if (r->libraries.odd)
		put_field("no library", r->libraries.odd, out);
	for (int i = 0; i < TRAIT_COUNT; i++)
		put_trait(r, i, out);
	for (size_t i = 0; i < r->libraries.count; i++)
		put_object(&r->findings[i], out);
}

/* ---- JSON --------------------------------------------------------------- */

/* The length, in bytes, of the UTF-8 character that begins at c; 0 if no valid one does. */
static unsigned utf8_length(const unsigned char *c)
{
	unsigned length = *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;

	for (unsigned i = 1; i < length; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
	    (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f))
		return 0;
	return length;
}

void put_string(const char *text, FILE *out)
{
	const unsigned char *c = (const unsigned char *)text;

	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	while (*c) {
		unsigned length = utf8_length(c);

		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c++);
		else if (*c >= ' ' && *c < 0x7f)
			fputc(*c++, out);
		else if (length)
			c += fwrite(c, 1, length, out);
		else
			/*
			 * A byte that is no valid UTF-8 is printed as a lone surrogate, which
			 * no valid text contains.
			 */
			fprintf(out, *c < 0x80 ? "\\u%04x" : "\\udc%02x", *c), c++;
	}
	fputc('"', out);
}

void put_backend_json(const struct backend *b, FILE *out)
{
	fprintf(out, "\"backend\":\"%s\",\"io_uring\":", backend_names[b->by]);
	put_string(*b->why ? b->why : NULL, out);
}

/* Print names as an array. Its key is key with _ for each blank; key is a word of the text report. */
static void put_array(const char *key, const struct names *names, FILE *out)
{
	fputc('"', out);
	for (; *key; key++)
		fputc(*key == ' ' ? '_' : *key, out);
	fputs("\":[", out);
	for (size_t i = 0; i < names->count; i++) {
		fputs(i ? "," : "", out);
		put_string(names->name[i], out);
	}
	fputc(']', out);
}

static void put_object_json(const struct report *r, size_t index, FILE *out)
{
	const struct findings *f = &r->findings[index];
	bool any = false;

	fputs("{\"path\":", out);
	put_string(f->object->path, out);
	fprintf(out, ",\"at_run_time\":%s,\"damage\":",
		index >= r->libraries.needed_count ? "true" : "false");
	put_string(f->object->damage, out);
	fputs(",\"calls\":{", out);
	for (int i = 0; i < RUNG_COUNT; i++) {
		if (!rung_waits(i))
			continue;
		fputs(i ? "," : "", out);
		put_array(rung_names[i], &f->calls[i], out);
	}
	fputs("},", out);
	for (int i = 0; i < TRAIT_COUNT; i++) {
		put_array(trait_names[i], &f->traits[i], out);
		fputc(',', out);
	}
	put_array("own", &f->own, out);
	fprintf(out, ",\"raw_system_calls\":{\"sites\":%u,\"waiting\":[", f->raw.sites);
	for (unsigned i = 0; i < f->raw.number_count; i++)
		if (waiting_name(f->raw.numbers[i])) {
			fprintf(out, "%s\"%s\"", any ? "," : "", waiting_name(f->raw.numbers[i]));
			any = true;
		}
	fputs("]}}", out);
}

static void put_profile_json(const struct profile *p, FILE *out)
{
	fputs("{\"file\":", out);
	put_string(p->file, out);
	fputs(",\"pattern\":", out);
	put_string(p->pattern, out);
	fputs(",\"settings\":[", out);
	for (size_t i = 0; i < p->count; i++) {
		fputs(i ? ",{\"option\":" : "{\"option\":", out);
		put_string(p->settings[i].option, out);
		fputs(",\"value\":", out);
		put_string(p->settings[i].value, out);
		fprintf(out, ",\"used\":%s}", p->settings[i].used ? "true" : "false");
	}
	fputs("]}", out);
}

void report_json(const struct report *r, FILE *out)
{
	const struct program *p = &r->program;

	fputs("{\"program\":", out);
	put_string(p->path, out);
	fputs(",\"scripts\":[", out);
	for (unsigned i = 0; i < p->script_count; i++) {
		fputs(i ? "," : "", out);
		put_string(p->scripts[i], out);
	}
	fputs("],\"file\":", out);
	put_string(p->object ? p->object->path : NULL, out);
	fputs(",\"kind\":", out);
	put_string(p->kind, out);
	fputs(",\"machine\":", out);
	put_string(p->object && p->object->elf_class != ELFCLASSNONE ?
			   machine_name(p->object->header.e_machine) : NULL, out);
	fputs(",\"loader\":", out);
	put_string(p->object ? p->object->interpreter : NULL, out);
	fprintf(out, ",\"code\":%d,\"verdict\":\"%s\",\"reason\":", p->code, r->verdict);
	put_string(r->reason, out);
	fputs(",\"advice\":", out);
	put_string(r->advice, out);
	fprintf(out, ",\"switch_ns\":%u,", r->switch_ns);
	put_backend_json(&r->backend, out);
	fputs(",\"starts\":[", out);
	for (size_t i = 0; i < r->start_count; i++) {
		fputs(i ? ",{\"program\":" : "{\"program\":", out);
		put_string(r->starts[i].path, out);
		fprintf(out, ",\"verdict\":\"%s\",\"reason\":", r->starts[i].verdict);
		put_string(r->starts[i].reason, out);
		fputc('}', out);
	}
	fputs("],\"profiles\":[", out);
	for (size_t i = 0; r->profiles && i < r->profiles->count; i++) {
		fputs(i ? "," : "", out);
		put_profile_json(&r->profiles->all[i], out);
	}
	fputs("],\"not_found\":[", out);
	for (size_t i = 0; i < r->libraries.missing_count; i++) {
		fputs(i ? "," : "", out);
		put_string(r->libraries.missing[i], out);
	}
	fputs("],\"no_library\":", out);
	put_string(r->libraries.odd, out);
	fputs(",\"objects\":[", out);
	for (size_t i = 0; i < r->libraries.count; i++) {
		fputs(i ? "," : "", out);
		put_object_json(r, i, out);
	}
	fputs("]}\n", out);
}
