/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/test_tcb.c - the thread pointer, which a context may lend; raw system calls.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "adopted.h"

/* No TLS between the two, not even a stack protector's canary. */
static __attribute__((noinline)) uintptr_t under_other_tcb(uintptr_t tcb)
{
	uintptr_t mine = fz_tcb_get(), seen;

	fz_tcb_set(tcb);
	seen = fz_tcb_get();
	fz_tcb_set(mine);
	return seen;
}

static uintptr_t handler_tcb;
static volatile uintptr_t handler_saw;

static void on_signal(int sig)
{
	(void)sig;
	handler_saw = under_other_tcb(handler_tcb);
}

TEST(variants_are_chosen_and_set_the_thread_pointer)
{
	struct adopted a = { .id = 0 };
	uintptr_t mine = fz_tcb_get();

	adopted_start(&a, body_ends);
	REQUIRE(wait_for(&a.parked, 1), "never parked");
	CHECK(a.tcb != mine, "two threads, one TCB");
	signal(SIGUSR1, on_signal);
	handler_tcb = a.tcb;

	/* Before fz_arch_init everything works as well. */
	CHECK(fz_switch == probe_variants[0].fn, "unsafe variant at start");
	CHECK(under_other_tcb(a.tcb) == a.tcb, "before fz_arch_init");

	for (unsigned v = 0; v < probe_variant_count(); v++) {
		fz_arch_init(probe_variants[v].hwcap2);
		CHECK(fz_switch == probe_variants[v].fn, "not %s",
		      probe_variants[v].name);
		CHECK(under_other_tcb(a.tcb) == a.tcb, "%s",
		      probe_variants[v].name);
		handler_saw = 0;
		raise(SIGUSR1);
		CHECK(handler_saw == a.tcb, "%s: in a signal handler",
		      probe_variants[v].name);
		CHECK(fz_tcb_get() == mine, "%s: not restored",
		      probe_variants[v].name);
	}
	CHECK(end_as_thread(&a), "not joined");
}

TEST(system_calls_pass_every_argument)
{
	long page = sysconf(_SC_PAGESIZE), fd, addr, moved;
	char buf[8] = "";
	struct timespec ts = { .tv_sec = -1 };

	errno = 99;
	CHECK(fz_syscall0(SYS_getpid) == getpid(), "0 arguments");
	CHECK(fz_syscall1(SYS_close, -1) == -EBADF, "1 argument");
	CHECK(fz_syscall2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts) == 0 &&
	      ts.tv_sec >= 0, "2 arguments");
	fd = fz_syscall2(SYS_memfd_create, (long)"arch", 0);
	REQUIRE(fd >= 0, "memfd_create: %ld", fd);
	CHECK(fz_syscall2(SYS_ftruncate, fd, 2 * page) == 0, "ftruncate");
	CHECK(fz_syscall3(SYS_write, fd, (long)"abcdef", 6) == 6, "3 arguments");
	CHECK(fz_syscall4(SYS_pwrite64, fd, (long)"xyz", 3, page + 1) == 3,
	      "4 arguments");

	/* The second page of the file, and nothing else, holds "xyz" at 1. */
	addr = fz_syscall6(SYS_mmap, 0, page, PROT_READ, MAP_SHARED, fd, page);
	REQUIRE(addr > 0, "mmap: %ld", addr);
	CHECK(memcmp((char *)addr, "\0xyz", 5) == 0, "6 arguments");

	/* Room to move it to, so that a wrong fifth argument is noticed. */
	moved = fz_syscall6(SYS_mmap, 0, page, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(moved > 0, "mmap: %ld", moved);
	CHECK(fz_syscall5(SYS_mremap, addr, page, page,
			  MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved &&
	      memcmp((char *)moved, "\0xyz", 5) == 0, "5 arguments");
	CHECK(fz_syscall4(SYS_pread64, fd, (long)buf, 3, 2) == 3 &&
	      memcmp(buf, "cde", 3) == 0, "pread");
	CHECK(errno == 99, "errno was touched");
}
