/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/unwind.c - two functions of libgcc_s, which code of this library with the cleanup
 * attribute needs. They are looked for when an exception or a cancellation passes through that code,
 * in the library that unwinds. Linking to libgcc_s would load it into every program.
 */
#include <dlfcn.h>
#include <unwind.h>

#include "preload/libc/loader.h"
#include "preload/libc/text.h"
#include "runtime/base/base.h"
#include "runtime/base/die.h"

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class exception_class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context) FZ_HIDDEN;

/*
 * _Unwind_Resume() of the library that has last unwound code of this library in this thread.  Another thread may be
 * unwound by another library at the same time.
 */
static __thread __typeof__(&_Unwind_Resume) resume;

/*
 * Find a function of libgcc_s in the module that unwinds, which is libgcc_s itself unless the program has an
 * unwinder of its own. Load libgcc_s only in the latter case: in the child of a fork, dlopen() ends the process if
 * the fork came in the middle of another thread's dlopen().
 */
static void *find(const char *name, const void *unwinder)
{
	const struct link_map *module = fz_loader_module(unwinder);
	void *fn = module ? fz_text_symbol(module, name) : NULL, *libgcc;

	if (!fn) {
		libgcc = dlopen("libgcc_s.so.1", RTLD_LAZY);
		fn = libgcc ? dlsym(libgcc, name) : NULL;
	}
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

	resume = (__typeof__(&_Unwind_Resume))find("_Unwind_Resume", unwinder);
	return fn(version, actions, exception_class, exception, context);
}

void _Unwind_Resume(struct _Unwind_Exception *exception)
{
	resume(exception);
	__builtin_unreachable();
}
