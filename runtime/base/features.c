/* SPDX-License-Identifier: MIT */
#include "runtime/base/features.h"

uint64_t fz_features_without;
