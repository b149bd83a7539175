/* SPDX-License-Identifier: MIT */
#include "runtime/sched/sleep.h"

#include <asm/errno.h>

#include "runtime/base/host.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

enum fz_why fz_sleep(struct fz_fiber *self, fz_nsec deadline, unsigned flags)
{
	enum fz_why why;

	fz_enter_runtime(self);
	fz_wait_arm(self, flags);
	why = fz_park(self, deadline);
	fz_leave_runtime(self);
	return why;
}

int fz_sleep_until(struct fz_fiber *self, fz_nsec deadline)
{
	for (;;) {
		fz_signal_mark(self);
		switch (fz_sleep(self, deadline, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL)) {
		case FZ_WHY_TIMEOUT:
			return 0;
		case FZ_WHY_CANCEL:
			fz_host.test_cancel();
			break;
		default:
			return -EINTR;
		}
	}
}
