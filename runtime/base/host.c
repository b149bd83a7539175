/* SPDX-License-Identifier: MIT */
#include "runtime/base/host.h"

struct fz_host fz_host;
