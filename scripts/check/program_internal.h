/* SPDX-License-Identifier: MIT */
#ifndef CHECK_PROGRAM_INTERNAL_H
#define CHECK_PROGRAM_INTERNAL_H

/*
 * scripts/check/program_internal.h - one search for the program that will run: program.c finds
 * the file, judge.c judges it.
 */

#include "program.h"

/* The machine that this tool was built for (an EM_ value of ELF). */
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

struct search {
	struct program *program;
	const struct object *library;
	char *whose;			/* begins messages: "SCRIPT: its interpreter ", or "" */
	char *credentials;		/* the file whose set-user-ID counts; NULL: the ELF file's counts */
};

/* Refuse the program, with an exit code, its kind in a few words, and a message of one line. */
void program_refuse(struct search *s, enum code code, const char *kind, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Refuse path if it is set-user-ID or set-group-ID or has capabilities. Returns true if so. */
bool program_refuse_secure(struct search *s, const char *path);

/* Read the dynamic section of o and judge it. */
void program_judge(struct search *s, struct object *o);

/*
 * Find the program that env(1) would run: the first word after its options and variables. NULL if
 * there is none, or if the words change PATH or the directory, so that env searches elsewhere.
 */
const char *program_behind_env(char **word);

#endif
