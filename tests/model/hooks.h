/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_HOOKS_H
#define FZ_MODEL_HOOKS_H

/*
 * tests/model/hooks.h - what each explored file begins with (-include): the built-in functions of the compiler
 * that read or write memory are hooks.c's.
 *
 * The compiler makes moves of those with a constant size, and puts no hook at these.  memcpy() & co.
 * themselves are calls by -fno-builtin, which build.mk renames.
 */

#include <stddef.h>

void *model_memcpy(void *to, const void *from, size_t size);
void *model_memmove(void *to, const void *from, size_t size);
void *model_memset(void *to, int byte, size_t size);
int model_memcmp(const void *a, const void *b, size_t size);
void *model_memchr(const void *p, int byte, size_t size);
char *model_strchr(const char *text, int c);
size_t model_strcspn(const char *text, const char *set);
size_t model_strlen(const char *text);

#define __builtin_memcpy model_memcpy
#define __builtin_memmove model_memmove
#define __builtin_memset model_memset
#define __builtin_memcmp model_memcmp
#define __builtin_bcmp model_memcmp
#define __builtin_memchr model_memchr
#define __builtin_strchr model_strchr
#define __builtin_strcspn model_strcspn
#define __builtin_strlen model_strlen

/* Not modelled. */
#pragma GCC poison __builtin_bcopy __builtin_bzero __builtin_mempcpy __builtin_memccpy __builtin_stpcpy
#pragma GCC poison __builtin_stpncpy __builtin_strcpy __builtin_strncpy __builtin_strcat __builtin_strncat
#pragma GCC poison __builtin_strcmp __builtin_strncmp __builtin_strcasecmp __builtin_strncasecmp __builtin_strrchr
#pragma GCC poison __builtin_strstr __builtin_strspn __builtin_strpbrk __builtin_strnlen __builtin_index
#pragma GCC poison __builtin_rindex __builtin_memcpy_inline __builtin_memset_inline __builtin___memcpy_chk
#pragma GCC poison __builtin___memmove_chk __builtin___memset_chk __builtin___mempcpy_chk __builtin___strcpy_chk
#pragma GCC poison __builtin___strncpy_chk __builtin___strcat_chk __builtin_sprintf __builtin_snprintf
#pragma GCC poison __builtin_vsprintf __builtin_vsnprintf __builtin_clear_padding

#endif
