/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/config.h - glibc's configuration: nothing that the tests use.
 */
