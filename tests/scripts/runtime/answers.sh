#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/runtime/answers.sh - each system call of the library fails in turn, with each error that it may
# have: what happens is what tests/ANSWERS.md says (tests/lib/answers.py).  Minutes.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/checked.inc
. "$(dirname "$0")/../../lib/checked.inc"

build_checked libfiberize.so
lines "$root/tests/lib/answers.py" "$build" "$root/tests/ANSWERS.md"
finish
