/* SPDX-License-Identifier: MIT */
#include "runtime/backend/hooks.h"

struct fz_backend_hooks fz_backend_hooks;
