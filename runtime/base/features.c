/* SPDX-License-Identifier: MIT */
#include "runtime/base/features.h"

_Atomic uint64_t fz_features_without;
