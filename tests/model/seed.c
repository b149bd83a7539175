/* SPDX-License-Identifier: MIT */
#include "tests/model/seed.h"

#include <stdio.h>
#include <string.h>

/* The run that has just failed, as a list of what was not the default. */
void seed_print(enum how how)
{
	char *comma = "";

	printf("   seed: %s%s%s/", scenario_now->name, tso ? "+tso" : "", plain_points ? "+plain" : "");
	if (how == HOW_PCT || how == HOW_RANDOM) {
		printf("%s/%lu", how == HOW_PCT ? "pct" : "random", (unsigned long)seed);
	} else {
		printf("listed%d/", budget);
		for (uint32_t i = 0; i < decisions; i++)
			if (decided[i].pick) {
				printf("%s%u.%u", comma, decided[i].step, decided[i].pick);
				comma = "-";
			}
	}
	printf("@%s\n", MODEL_SOURCES);
}

const struct scenario *scenario_find(const char *name, size_t length)
{
	for (const struct scenario *s = __start_model_scenarios; s < __stop_model_scenarios; s++)
		if (strlen(s->name) == length && !strncmp(s->name, name, length))
			return s;
	return NULL;
}

int seed_refuse(const char *text, const char *why)
{
	fprintf(stderr, "explore: seed %s: %s\n", text, why);
	return 2;
}

bool number_at(const char **at, uint64_t most, uint64_t *ret)
{
	uint64_t n = 0;

	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; ++*at) {
		const uint64_t digit = (uint64_t)(**at - '0');

		if (n > (most - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*ret = n;
	return true;
}

/* STEP.PICK-STEP.PICK, in the order of the steps. */
static bool list_at(const char **at)
{
	uint64_t number;

	for (decisions = 0; decisions < DECISIONS; decisions++, ++*at) {
		struct decision *d = &decided[decisions];

		if (!number_at(at, UINT32_MAX, &number))
			return false;
		d->step = (uint32_t)number;
		if (*(*at)++ != '.' || !number_at(at, UINT16_MAX, &number) || !number)
			return false;
		d->pick = (uint16_t)number;
		if (decisions && d->step <= d[-1].step)
			return false;
		if (**at != '-') {
			decisions++;
			return true;
		}
	}
	return false;
}

/* The list of a seed becomes the next run's. */
static int take_list(const char *text, const char *at)
{
	decisions = 0;
	if (*at != '@' && (!list_at(&at) || *at != '@'))
		return seed_refuse(text, "a list is STEP.PICK-STEP.PICK, in the order of the steps");
	if (decisions > (uint32_t)budget)
		return seed_refuse(text, "more picks than its BOUND");
	return 0;
}

/* What comes before the first slash: the scenario, and how memory is explored. */
static const struct scenario *scenario_at(const char *text, const char *end)
{
	const size_t length = strcspn(text, "+/");
	size_t n;

	for (const char *at = text + length; at < end; at += n) {
		n = 1 + strcspn(at + 1, "+/");
		if (n == 4 && !strncmp(at, "+tso", n) && !tso)
			tso = true;
		else if (n == 6 && !strncmp(at, "+plain", n) && !plain_points)
			plain_points = true;
		else
			return NULL;
	}
	return scenario_find(text, length);
}

int seed_read(const char *text, struct named_run *ret)
{
	const char *slash = strchr(text, '/'), *at = strrchr(text, '@');
	uint64_t bound = 2;
	int err;

	if (!slash || !at || at < slash)
		return seed_refuse(text, "not a seed: SCENARIO/KIND/NUMBER@SOURCES");
	if (strcmp(at + 1, MODEL_SOURCES))
		return seed_refuse(text, "of other sources than these, which are " MODEL_SOURCES
			      ": check out the commit that it was found in, and build");
	scenario_now = scenario_at(text, slash);
	if (!scenario_now)
		return seed_refuse(text, "no such scenario, or more behind it than +tso and +plain");
	slash++;
	if (!strncmp(slash, "pct/", 4)) {
		ret->how = HOW_PCT;
		slash += 4;
	} else if (!strncmp(slash, "random/", 7)) {
		ret->how = HOW_RANDOM;
		slash += 7;
	} else if (!strncmp(slash, "listed", 6)) {
		ret->how = HOW_LISTED;
		slash += 6;
		if (!number_at(&slash, BOUND_MOST, &bound) || *slash++ != '/')
			return seed_refuse(text, "a list is of kind listedBOUND");
	} else {
		return seed_refuse(text, "unknown kind");
	}
	budget = (int)bound;
	ret->list = slash;
	if (ret->how == HOW_LISTED) {
		err = take_list(text, slash);
		/* The run that sets the scenario up has a list, too: none of these picks is for it. */
		decisions = 0;
		return err;
	}
	if (!number_at(&slash, UINT64_MAX, &ret->number) || slash != at)
		return seed_refuse(text, "no number");
	return 0;
}

void seed_take(const char *text, const struct named_run *run)
{
	if (run->how == HOW_LISTED)
		take_list(text, run->list);
	else
		seed = run->number;
}
