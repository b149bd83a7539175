/* SPDX-License-Identifier: MIT */
/*
 * tests/modules/stack_module.c - a library that says that it needs executable stacks, for
 * tests/programs/thread/stack_code_late.c.
 */
#include "stack_code.h"

int module_value(int value);
int module_value(int value)
{
	return value_from_stack(value);
}
