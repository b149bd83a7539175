/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/unwind.c - functions of libgcc_s that code with cleanups needs, found when an
 * exception or a cancellation passes. The code that started the unwinding has loaded libgcc_s by
 * then; linking to it would load it into every program.
 */
#include <dlfcn.h>
#include <unwind.h>

#include "runtime/base/base.h"
#include "runtime/base/die.h"

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class exception_class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context) FZ_HIDDEN;

static void *find(const char *name)
{
	void *libgcc = dlopen("libgcc_s.so.1", RTLD_LAZY);
	void *fn = libgcc ? dlsym(libgcc, name) : NULL;

	if (!fn)
		fz_die("cannot unwind a thread: libgcc_s.so.1 is not installed or has no %s", name);
	return fn;
}

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class exception_class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context)
{
	static _Atomic(__typeof__(&__gcc_personality_v0)) real;
	__typeof__(&__gcc_personality_v0) fn = atomic_load_explicit(&real, memory_order_relaxed);

	/* relaxed: all threads find one address. */
	if (!fn) {
		fn = (__typeof__(fn))find("__gcc_personality_v0");
		atomic_store_explicit(&real, fn, memory_order_relaxed);
	}
	return fn(version, actions, exception_class, exception, context);
}

void _Unwind_Resume(struct _Unwind_Exception *exception)
{
	void (*fn)(struct _Unwind_Exception *) =
		(void (*)(struct _Unwind_Exception *))find("_Unwind_Resume");

	fn(exception);
	__builtin_unreachable();
}
