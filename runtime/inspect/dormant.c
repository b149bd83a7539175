/* SPDX-License-Identifier: MIT */
#include "runtime/inspect/dormant.h"

char fz_dormant_why[256];
