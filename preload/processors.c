/* SPDX-License-Identifier: MIT */
#include "preload/processors.h"

#include "preload/config.h"
#include "runtime/backend/own_fd.h"
#include "runtime/base/cpus.h"
#include "runtime/backend/filter.h"

uint32_t fz_processors_wanted(uint32_t *ret_open)
{
	const uint32_t most = 256, at_least = 8, spread = 4;
	uint32_t n = (uint32_t)fz_config.processors, quota = UINT32_MAX;

	*ret_open = 0;
	if (!n) {
		n = fz_cpus_allowed();
		/* Quotas are read from files; a seccomp filter of the program may end the process for that. */
		if (n > 1 && !atomic_load_explicit(&fz_filter_is_programs, memory_order_relaxed)) {
			fz_cpus_find_quotas(fz_own_fd_raise);
			quota = fz_cpus_quota();
		}
		*ret_open = quota < n ? quota : n;
		if (quota < n / spread)
			n = quota * spread > at_least ? quota * spread : n < at_least ? n : at_least;
	}
	return !n ? 1 : n < most ? n : most;
}
