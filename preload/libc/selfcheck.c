/* SPDX-License-Identifier: MIT */
#include "preload/libc/selfcheck.h"

#include <dlfcn.h>

#include "preload/gate.h"
#include "preload/sync/cond.h"
#include "runtime/fiber/fiber.h"

/*
 * Find a field of the TCB in libc's description for debuggers: bits of an element, number of
 * elements, offset in bytes. Only a single field of 32 bits is usable.
 */
static bool find_field(const char *symbol, intptr_t *ret_offset)
{
	const uint32_t *field = dlsym(RTLD_DEFAULT, symbol);

	if (!field || field[0] != 32 || field[1] != 1)
		return false;
	*ret_offset = (intptr_t)field[2];
	return true;
}

static bool find_layout(const char **ret_why)
{
	uintptr_t tcb = fz_tcb_get();
	struct fz_layout layout = {
		.record = (intptr_t)fz_self() - (intptr_t)tcb,
		.handle = (intptr_t)pthread_self() - (intptr_t)tcb,
	};
	_Atomic int *tid, *cancelhandling;

	*ret_why = "this libc does not describe its thread control block";
	if (!find_field("_thread_db_pthread_tid", &layout.tid) ||
	    !find_field("_thread_db_pthread_cancelhandling", &layout.cancelhandling))
		return false;
	layout.tid += layout.handle;
	layout.cancelhandling += layout.handle;
	*ret_why = "this libc's thread control block is not what it says";
	/* The TCB begins at the thread pointer, or ends at it. */
	if (layout.handle > 0 || layout.handle < -65536)
		return false;
	/* relaxed, here and below: only this thread writes these words. */
	tid = (_Atomic int *)(tcb + (uintptr_t)layout.tid);
	cancelhandling = (_Atomic int *)(tcb + (uintptr_t)layout.cancelhandling);
	if (atomic_load_explicit(tid, memory_order_relaxed) != (int)fz_sys_gettid() ||
	    (atomic_load_explicit(cancelhandling, memory_order_relaxed) & ~2) != 0)
		return false;
	fz_layout = layout;
	return true;
}

static int cancel_word(void)
{
	return atomic_load_explicit(fz_tcb_cancelhandling(fz_tcb_get()), memory_order_relaxed);
}

/* Check the bits that runtime/sched/park.c and pthread_cancel() read and write. */
static bool cancel_bits(const char **ret_why)
{
	enum { DISABLED = 1, ASYNCHRONOUS = 2 };
	int before = cancel_word(), disabled, both, old_state, old_type;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_state);
	disabled = cancel_word();
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old_type);
	both = cancel_word();
	pthread_setcanceltype(old_type, NULL);
	pthread_setcancelstate(old_state, NULL);
	*ret_why = "this libc marks cancellation otherwise";
	return disabled == (before | DISABLED) && both == (before | DISABLED | ASYNCHRONOUS) &&
	       cancel_word() == before;
}

/* Check the words of a mutex, which our mutexes and libc's share. */
static bool mutex_words(const char **ret_why)
{
	pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	bool held, freed;

	fz_real.pthread_mutex_lock(&m);
	fz_real.pthread_mutex_lock(&m);
	held = m.__data.__lock == 1 && m.__data.__count == 2 && m.__data.__nusers == 1 &&
	       m.__data.__owner == (int)fz_sys_gettid() &&
	       m.__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP;
	fz_real.pthread_mutex_unlock(&m);
	fz_real.pthread_mutex_unlock(&m);
	freed = m.__data.__lock == 0 && m.__data.__count == 0 && m.__data.__nusers == 0 &&
		m.__data.__owner == 0;
	*ret_why = "this libc's mutexes are not what its headers say";
	return held && freed;
}

bool fz_libc_check(const char **ret_why)
{
	if (!find_layout(ret_why) || !cancel_bits(ret_why) || !mutex_words(ret_why))
		return false;
	*ret_why = "this libc's condition variables are not what its headers say";
	return fz_cond_find_flags();
}
