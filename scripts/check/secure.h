/* SPDX-License-Identifier: MIT */
#ifndef CHECK_SECURE_H
#define CHECK_SECURE_H

/*
 * scripts/check/secure.h - does the kernel tell the loader of a program not to trust the
 * environment (AT_SECURE; ld.so(8), "Secure-execution mode")?  By the rules of the kernel's
 * security/commoncap.c, for a program that the caller starts:
 *
 *	secure	if the effective user or group after exec is not the real one, or
 *		if the real user is not root, and file capabilities are marked as
 *		effective or leave any permitted
 *	nosuid	on the mount makes all of that ineffective; so do a user or group of the
 *		file that the user namespace does not have
 *	no_new_privs	makes the bits for user and group ineffective, and permits no
 *		capability that was not permitted before
 *
 * The effect of a security module (AppArmor, SELinux) cannot be seen from here.
 */

/*
 * Why the kernel would set AT_SECURE at exec of path: "set-user-ID", "set-group-ID" or "file
 * capabilities"; NULL if it would not.
 */
const char *secure_why(const char *path);

#endif
