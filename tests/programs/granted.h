/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/granted.h - state of a thread that must be had from elsewhere before the thread can take it:
 * a namespace that a child has made, the right to use I/O ports, a protection key.
 */
#ifndef GRANTED_H
#define GRANTED_H

#include "check.h"

#include <setjmp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif

/* Of those that use the states; here, files that are no namespace. */
static int pipes[2][2];

/* May a child do it?  Then so may this process, and the child's change goes with the child. */
static bool child_can(bool (*try)(void))
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child)
		_exit(!try());
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status) == 0;
}

/* ---- another host name, in a namespace that a child has made ------------- */

static int other_name = -1;

static bool try_name(void)
{
	return unshare(CLONE_NEWUTS) == 0 && sethostname("other.example", 13) == 0;
}

static bool find_other_name(void)
{
	int go[2], ready[2];
	char path[64], c;
	pid_t child;

	if (!child_can(try_name))
		return false;
	CHECK_OK(pipe(go));
	CHECK_OK(pipe(ready));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(try_name());
		CHECK_INT(write(ready[1], "x", 1), 1);
		CHECK_INT(read(go[0], &c, 1), 1);
		_exit(0);
	}
	CHECK_INT(read(ready[0], &c, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/ns/uts", (int)child);
	other_name = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(other_name >= 0);
	CHECK_INT(write(go[1], "x", 1), 1);
	CHECK_INT(waitpid(child, NULL, 0), child);
	CHECK_OK(close(go[0]) || close(go[1]) || close(ready[0]) || close(ready[1]));
	return true;
}

static void set_name(void)
{
	CHECK_ERR(setns(-1, 0), EBADF);
	CHECK_ERR(setns(pipes[0][0], 0), EINVAL);
	CHECK_ERR(setns(other_name, CLONE_NEWNET), EINVAL);
	CHECK_OK(setns(other_name, CLONE_NEWUTS));
}

static bool has_name(void)
{
	struct utsname name;

	CHECK_OK(uname(&name));
	return strcmp(name.nodename, "other.example") == 0;
}

/* ---- I/O ports: without the right, the instruction is a fault ------------ */

#ifdef __x86_64__
static __thread sigjmp_buf refused;

static void on_fault(int sig)
{
	siglongjmp(refused, sig);
}

/* Port 0x80 is for codes of the firmware's self test: reading it does nothing. */
static bool has_port(void)
{
	if (sigsetjmp(refused, 1))
		return false;
	inb(0x80);
	return true;
}

static void set_port(void)
{
	CHECK_ERR(ioperm(65536, 1, 1), EINVAL);
	CHECK_OK(ioperm(0x80, 1, 1));
}

static void set_level(void)
{
	CHECK_ERR(iopl(4), EINVAL);
	CHECK_OK(iopl(3));
}

static bool try_port(void) { return ioperm(0x80, 1, 1) == 0; }
static bool try_level(void) { return iopl(3) == 0; }

static bool catch_faults(void)
{
	struct sigaction sa = { .sa_handler = on_fault };

	CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
	return true;
}

static bool may_ports(void) { return child_can(try_port) && catch_faults(); }
static bool may_level(void) { return child_can(try_level) && catch_faults(); }
#endif

/* ---- a protection key: the thread's rights are in a register ------------- */

static int key = -1;

static bool has_keys(void)
{
	int first = pkey_alloc(0, 0);

	if (first < 0) {
		CHECK(errno == ENOSPC || errno == EINVAL || errno == ENOSYS);
		CHECK_INT(pkey_set(-1, 0), -1);
		return false;
	}
	key = first;
	return true;
}

static void set_key(void)
{
	CHECK_ERR(pkey_alloc(1, 0), EINVAL);
	CHECK_ERR(pkey_alloc(0, 1 << 8), EINVAL);
	CHECK_ERR(pkey_set(100, 0), EINVAL);
	CHECK_ERR(pkey_set(key, 1 << 8), EINVAL);
	CHECK_OK(pkey_set(key, PKEY_DISABLE_WRITE));
}

static bool has_rights(void) { return pkey_get(key) == PKEY_DISABLE_WRITE; }

#endif
