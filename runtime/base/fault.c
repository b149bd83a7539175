/* SPDX-License-Identifier: MIT */
#include "runtime/base/fault.h"

#include "runtime/base/die.h"

#ifdef FZ_FAULTS

/* Fires at call number `first`, and then at each `every`-th call after that; 0: never. */
static struct point {
	const char *name, *what;
	uint64_t first, every;
	_Atomic uint64_t reached, fired;
} points[] = {
#define FZ_FAULT_POINT(name_, what_) { .name = #name_, .what = what_ },
#include "runtime/base/fault.def"
#undef FZ_FAULT_POINT
};

bool fz_fault_fires(enum fz_fault fault)
{
	struct point *p = &points[fault];
	/* relaxed: counts, here and below. */
	uint64_t n = atomic_fetch_add_explicit(&p->reached, 1, memory_order_relaxed) + 1;

	if (!p->first || n < p->first || (n > p->first && (!p->every || (n - p->first) % p->every)))
		return false;
	atomic_fetch_add_explicit(&p->fired, 1, memory_order_relaxed);
	return true;
}

static struct point *find(const char *name, size_t length)
{
	for (struct point *p = points; p < points + FZ_FAULT_COUNT; p++)
		if (!__builtin_strncmp(p->name, name, length) && !p->name[length])
			return p;
	return NULL;
}

static const char *parse_number(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9' && value < 1000000000; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	*ret_value = value;
	return text;
}

/* Parse one NAME:WHEN.  Returns the text behind it, or NULL after a mistake. */
static const char *parse_one(const char *text)
{
	const char *colon = text;
	struct point *p;
	uint64_t n;

	while (*colon && *colon != ':' && *colon != ',')
		colon++;
	p = find(text, (size_t)(colon - text));
	if (*colon != ':' || !p)
		return NULL;
	text = parse_number(colon + 1, &n);
	p->every = 0;
	if (*text == '+') {
		p->every = 1;
		text++;
	} else if (*text == '/' && n == 1) {
		text = parse_number(text + 1, &n);
		p->every = n;
	}
	p->first = n;
	return n && (*text == ',' || !*text) ? text : NULL;
}

void fz_fault_init(const char *value)
{
	const char *text = value;

	while (text && *text) {
		text = parse_one(text);
		if (!text)
			break;
		text += *text == ',';
	}
	if (text || !value)
		return;
	fz_say("FZ_FAULTS=%s: a list of NAME:N, NAME:1/N and NAME:N+ is allowed; none fires", value);
	for (struct point *p = points; p < points + FZ_FAULT_COUNT; p++) {
		p->first = 0;
		fz_say("NAME may be %s: %s", p->name, p->what);
	}
}

void fz_fault_say(void)
{
	for (struct point *p = points; p < points + FZ_FAULT_COUNT; p++) {
		unsigned long reached = atomic_load_explicit(&p->reached, memory_order_relaxed);
		unsigned long fired = atomic_load_explicit(&p->fired, memory_order_relaxed);

		if (reached)
			fz_say("fault %s: reached %lu, fired %lu", p->name, reached, fired);
	}
}

#endif
