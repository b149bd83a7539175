/* SPDX-License-Identifier: MIT */
/*
 * preload/signal/jump.c - longjmp out of handlers and elsewhere, and the program's own contexts
 * (makecontext). libc's functions set a saved signal mask for the kernel thread, so that mask
 * becomes the fiber's before they are called.
 */
#include "preload/gate.h"
#include "preload/sigset.h"
#include "runtime/signal/signal.h"

#include <ucontext.h>

static void restore_mask(uint64_t mask)
{
	struct fz_fiber *self = fz_self();

	if (self->kind == FZ_KIND_FIBER)
		fz_signal_set_mask(self, SIG_SETMASK, &mask, NULL);
}

static void note_restored_mask(const struct __jmp_buf_tag *env)
{
	if (env->__mask_was_saved)
		restore_mask(fz_sigset_word(&env->__saved_mask));
}

FZ_EXPORT _Noreturn void longjmp(struct __jmp_buf_tag env[1], int value)
{
	fz_enter(FZ_SYM_longjmp);
	note_restored_mask(env);
	fz_real.longjmp(env, value);
	__builtin_unreachable();
}
FZ_EXPORT_ALIAS(siglongjmp, longjmp);
FZ_EXPORT_ALIAS(_longjmp, longjmp);

FZ_EXPORT _Noreturn void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
{
	fz_enter(FZ_SYM___longjmp_chk);
	note_restored_mask(env);
	fz_real.__longjmp_chk(env, value);
	__builtin_unreachable();
}

FZ_EXPORT int setcontext(const ucontext_t *to)
{
	fz_enter(FZ_SYM_setcontext);
	restore_mask(fz_sigset_word(&to->uc_sigmask));
	return fz_real.setcontext(to);
}

/*
 * The new mask is in force when libc saves the context, so libc saves the new mask in `from`. The old
 * mask is restored here, when `from` is resumed.
 */
FZ_EXPORT int swapcontext(ucontext_t *from, const ucontext_t *to)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_swapcontext);
	uint64_t mask, new_mask;
	int ret;

	if (!self)
		return fz_real.swapcontext(from, to);
	mask = self->mask;
	new_mask = fz_sigset_word(&to->uc_sigmask);
	restore_mask(new_mask);
	ret = fz_real.swapcontext(from, to);
	/* Another thread may have resumed this context. */
	self = fz_self();
	if (new_mask != mask && self->kind == FZ_KIND_FIBER)
		fz_signal_load_mask(self->carrier, mask);
	restore_mask(mask);
	return ret;
}
