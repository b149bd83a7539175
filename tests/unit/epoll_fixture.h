/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_UNIT_EPOLL_FIXTURE_H
#define FZ_TESTS_UNIT_EPOLL_FIXTURE_H

/* tests/unit/epoll_fixture.h - the runtime on epoll, and how many watches it has. */

#include "runtime/backend/backend.h"
#include "runtime/sched/sched.h"
#include "runtime_setup.h"

static inline void start_runtime(unsigned processors)
{
	setup_start_on(processors, FZ_BACKEND_EPOLL);
}

static inline unsigned watching(void)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < fz_sched.count; i++)
		n += GET(fz_sched.processors[i].backend.epoll.watching);
	return n;
}

#endif
