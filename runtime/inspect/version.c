/* SPDX-License-Identifier: MIT */
#include "runtime/inspect/version.h"

_Static_assert(sizeof(FZ_VERSION) <= sizeof(fz_version), "VERSION is too long");

char fz_version[32] = FZ_VERSION;
