/* SPDX-License-Identifier: MIT */
#include "runtime/base/limits.h"

#include <linux/mman.h>
#include <linux/resource.h>

#include "runtime/base/die.h"
#include "runtime/base/sys.h"

bool fz_limits_told;

void fz_limits_tell(const char *text)
{
	static _Atomic bool told;

	if (fz_limits_told && !atomic_exchange_explicit(&told, true, memory_order_relaxed))
		fz_say("%s", text);
}

bool fz_limits_count_address_space(void)
{
	static const int limits[] = { RLIMIT_AS, RLIMIT_DATA };
	struct { uint64_t now, most; } limit;

	for (int i = 0; i < 2; i++)
		if (fz_syscall4(__NR_prlimit64, 0, limits[i], 0, (long)&limit) == 0 &&
		    limit.now != UINT64_MAX)
			return true;
	return false;
}

bool fz_limits_allow_memory(size_t size)
{
	long mem;

	if (!fz_limits_count_address_space())
		return true;
	mem = fz_sys_mmap(size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (fz_sys_failed(mem))
		return false;
	fz_syscall2(__NR_munmap, mem, (long)size);
	return true;
}
