/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/remains.h"

#include <asm/errno.h>
#include <linux/mman.h>

#include "runtime/base/fault.h"
#include "runtime/base/sys.h"

enum { PAGE = 4096 };

static void unmap(char *begin, const char *end)
{
	if (begin != end)
		fz_syscall2(__NR_munmap, (long)begin, end - begin);
}

/* Returns 0, or -EEXIST if something else is mapped there, or another -errno. */
static long map_again(char *begin, const char *end, long prot)
{
	const long size = end - begin;
	long mem;

	if (size == 0)
		return 0;
	mem = FZ_FAULT(mmap) ? -ENOMEM :
		fz_syscall6(__NR_mmap, (long)begin, size, prot,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_FIXED_NOREPLACE, -1, 0);
	if (fz_sys_failed(mem))
		return mem;
	if (mem == (long)begin) {
		fz_syscall3(__NR_madvise, mem, size, MADV_NOHUGEPAGE);
		return 0;
	}
	/* Linux before 4.17 maps it elsewhere. */
	unmap((char *)mem, (char *)mem + size);
	return -EEXIST;
}

char *fz_remains_mend(struct fz_remains remains, size_t slot_size, size_t closed, int *ret_err)
{
	char *slot = (char *)((uintptr_t)remains.slot * PAGE);
	char *kept = slot + (size_t)remains.hole * PAGE;
	char *kept_end = kept + (size_t)remains.pages * PAGE;
	const long open = PROT_READ | PROT_WRITE;
	long err = map_again(slot, kept, closed ? PROT_NONE : open);

	*ret_err = 0;
	if (!err) {
		if (closed)
			err = fz_syscall3(__NR_mprotect, (long)slot + (long)closed,
					  kept - slot - (long)closed, open);
		if (!err)
			err = map_again(kept_end, slot + slot_size, open);
		if (!err)
			return slot;
		unmap(slot, kept);
	}
	if (err != -EEXIST)
		*ret_err = (int)err;
	return NULL;
}
