/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/forbid_exec_memory.c - run a program that may not change code:
 *
 *	forbid_exec_memory mdwe PROGRAM [ARGS]		PR_SET_MDWE (Linux 6.3)
 *	forbid_exec_memory seccomp PROGRAM [ARGS]	EPERM for mprotect(PROT_EXEC), as
 *							systemd's MemoryDenyWriteExecute
 *
 * Exit status 77 if the kernel cannot do that.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

static int filter_mprotect(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ?
		       -1 :
		       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: forbid_exec_memory mdwe|seccomp PROGRAM [ARGS]\n");
		return 2;
	}
	if (strcmp(argv[1], "seccomp") == 0 ? filter_mprotect() :
					      prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)) {
		perror("forbid_exec_memory");
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
