/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/c11.c - C11's threads. libc's thrd_, mtx_ and cnd_ functions call its pthread
 * functions directly, past this library; here they call our pthread functions and translate the
 * result. libc's own mtx_init, mtx_destroy, cnd_init, tss_get, tss_set, thrd_current and
 * thrd_equal serve, because the objects are those of pthreads. tss_create and tss_delete are in
 * preload/thread/tls.c.
 */
#include "preload/gate.h"
#include "runtime/sync/mutex.h"

static int c11_result(int err)
{
	switch (err) {
	case 0: return thrd_success;
	case ENOMEM: return thrd_nomem;
	case ETIMEDOUT: return thrd_timedout;
	case EBUSY: return thrd_busy;
	default: return thrd_error;
	}
}

/* Define the C11 function `name`, which makes a call of pthreads and translates its result. */
#define FZ_EXPORT_C11(type, name, parameters, call)      \
	FZ_EXPORT type name parameters                   \
	{                                                \
		fz_enter(FZ_SYM_##name);                 \
		return c11_result(call);                 \
	}

/* ---- threads ------------------------------------------------------------ */

FZ_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *arg)
{
	fz_enter(FZ_SYM_thrd_create);
	/* The int that start returns is the low half of the word that a pthread returns. */
	return c11_result(pthread_create(thread, NULL, (void *(*)(void *))(void *)start, arg));
}

FZ_EXPORT int thrd_join(thrd_t thread, int *result)
{
	void *value;
	int err;

	fz_enter(FZ_SYM_thrd_join);
	err = pthread_join(thread, &value);
	if (!err && result)
		*result = (int)(uintptr_t)value;
	return c11_result(err);
}

FZ_EXPORT_C11(int, thrd_detach, (thrd_t thread), pthread_detach(thread))

FZ_EXPORT _Noreturn void thrd_exit(int result)
{
	fz_enter(FZ_SYM_thrd_exit);
	pthread_exit((void *)(uintptr_t)result);
}

FZ_EXPORT void thrd_yield(void)
{
	fz_enter(FZ_SYM_thrd_yield);
	sched_yield();
}

FZ_EXPORT int thrd_sleep(const struct timespec *span, struct timespec *rest)
{
	fz_enter(FZ_SYM_thrd_sleep);
	switch (clock_nanosleep(CLOCK_REALTIME, 0, span, rest)) {
	case 0: return 0;
	case EINTR: return -1;
	default: return -2;
	}
}

FZ_EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
	fz_enter(FZ_SYM_call_once);
	pthread_once((pthread_once_t *)flag, routine);
}

/* ---- mutexes ------------------------------------------------------------ */

FZ_EXPORT int mtx_lock(mtx_t *m)
{
	struct fz_mutex *mutex = (struct fz_mutex *)(void *)m;

	/* mtx_init makes no mutex that is libc's. */
	if (FZ_LIKELY(!fz_locks_are_libcs && fz_mutex_lock_quickly(mutex)))
		return thrd_success;
	if (!fz_mutex_is_locked_again(mutex))
		fz_enter(FZ_SYM_mtx_lock);
	return c11_result(pthread_mutex_lock((pthread_mutex_t *)m));
}

FZ_EXPORT_C11(int, mtx_trylock, (mtx_t *m), pthread_mutex_trylock((pthread_mutex_t *)m))
FZ_EXPORT_C11(int, mtx_timedlock, (mtx_t *restrict m, const struct timespec *restrict when),
		pthread_mutex_timedlock((pthread_mutex_t *)m, when))

FZ_EXPORT int mtx_unlock(mtx_t *m)
{
	int err = pthread_mutex_unlock((pthread_mutex_t *)m);

	if (FZ_LIKELY(!err))
		return thrd_success;
	fz_enter(FZ_SYM_mtx_unlock);
	return c11_result(err);
}

/* ---- condition variables ------------------------------------------------ */

FZ_EXPORT_C11(int, cnd_wait, (cnd_t *c, mtx_t *m),
		pthread_cond_wait((pthread_cond_t *)c, (pthread_mutex_t *)m))
FZ_EXPORT_C11(int, cnd_timedwait,
		(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict when),
		pthread_cond_timedwait((pthread_cond_t *)c, (pthread_mutex_t *)m, when))
FZ_EXPORT_C11(int, cnd_signal, (cnd_t *c), pthread_cond_signal((pthread_cond_t *)c))
FZ_EXPORT_C11(int, cnd_broadcast, (cnd_t *c), pthread_cond_broadcast((pthread_cond_t *)c))

FZ_EXPORT void cnd_destroy(cnd_t *c)
{
	fz_enter(FZ_SYM_cnd_destroy);
	pthread_cond_destroy((pthread_cond_t *)c);
}
