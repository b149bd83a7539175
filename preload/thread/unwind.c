/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/unwind.c - functions of libgcc_s that code with cleanups needs, found when an
 * exception or a cancellation passes, in the library that unwinds; linking to it would load it into
 * every program.
 */
#include <dlfcn.h>
#include <unwind.h>

#include "preload/libc/loader.h"
#include "runtime/base/base.h"
#include "runtime/base/die.h"

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class exception_class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context) FZ_HIDDEN;

/* Of the library that last unwound code of ours. */
static _Atomic(__typeof__(&_Unwind_Resume)) resume;

/*
 * The unwinder has loaded the library. Loaded again it is only where the loader cannot tell what has
 * called: in a fork's child that would end the process if the fork came in the middle of another
 * thread's dlopen.
 */
static void *find(const char *name, const void *unwinder)
{
	void *module = fz_loader_module(unwinder);
	void *fn = module ? dlsym(module, name) : NULL;

	if (!fn)
		module = dlopen("libgcc_s.so.1", RTLD_LAZY);
	if (!fn && module)
		fn = dlsym(module, name);
	if (!fn)
		fz_die("cannot unwind a thread: libgcc_s.so.1 is not installed or has no %s", name);
	return fn;
}

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class exception_class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context)
{
	const void *unwinder = __builtin_return_address(0);
	__typeof__(&__gcc_personality_v0) fn =
		(__typeof__(fn))find("__gcc_personality_v0", unwinder);

	/* relaxed: the thread that goes on with the unwinding is this one. */
	atomic_store_explicit(&resume, (__typeof__(&_Unwind_Resume))find("_Unwind_Resume", unwinder),
			      memory_order_relaxed);
	return fn(version, actions, exception_class, exception, context);
}

void _Unwind_Resume(struct _Unwind_Exception *exception)
{
	atomic_load_explicit(&resume, memory_order_relaxed)(exception);
	__builtin_unreachable();
}
