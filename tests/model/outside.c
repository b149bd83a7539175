/* SPDX-License-Identifier: MIT */
/*
 * tests/model/outside.c - what the explored files call and the model does not have: io_uring, so far.
 * A call of it ends the exploration by name.
 */
#include "tests/model/model.h"

#define OUTSIDE(name)							\
	void name(void);						\
	void name(void)							\
	{								\
		model_outside(#name);					\
	}

OUTSIDE(fz_io_uring_queue_init_params)
OUTSIDE(fz_io_uring_queue_exit)
OUTSIDE(fz_io_uring_register_probe)
OUTSIDE(fz_io_uring_ring_dontfork)
OUTSIDE(fz_io_uring_submit)
