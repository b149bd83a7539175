/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#define MEMBER(type, member) (offsetof(type, member) / sizeof(uint64_t))

#if defined(__x86_64__)
#define PLACE(name) MEMBER(struct user_regs_struct, name)
/* The place in the kernel's record of the register with DWARF number N. */
static const uint8_t places[] = {
	PLACE(rax), PLACE(rdx), PLACE(rcx), PLACE(rbx), PLACE(rsi), PLACE(rdi), PLACE(rbp),
	PLACE(rsp), PLACE(r8), PLACE(r9), PLACE(r10), PLACE(r11), PLACE(r12), PLACE(r13),
	PLACE(r14), PLACE(r15), PLACE(rip),
};
enum { SP = 7, PC = PLACE(rip), TCB = PLACE(fs_base), CALL = PLACE(orig_rax) };
static const uint8_t arguments[] = { PLACE(rdi), PLACE(rsi), PLACE(rdx), PLACE(r10), PLACE(r8), PLACE(r9) };

bool registers_call(const struct source *s, const struct registers *r, struct system_call *ret)
{
	(void)s;
	*ret = r->call;
	return ret->number >= 0;
}
#elif defined(__aarch64__)
#define PLACE(name) MEMBER(struct user_regs_struct, name)
static const uint8_t places[] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
	25, 26, 27, 28, 29, 30, PLACE(sp),
};
/* TCB is -1: the kernel has the thread pointer in another record (NT_ARM_TLS). */
enum { SP = 31, PC = PLACE(pc), TCB = -1, CALL = 8 };
static const uint8_t arguments[] = { 0, 1, 2, 3, 4, 5 };

static bool is_svc(const struct source *s, uint64_t address)
{
	const uint32_t svc = 0xd4000001;
	uint32_t instruction;

	return s->ops->read(s, address, &instruction, sizeof(instruction)) && instruction == svc;
}

/*
 * Before a thread stops or ends in a call, the kernel forgets the number (NT_ARM_SYSTEM_CALL is -1 then), but x8 still
 * has it. If the kernel would make the call again, pc is at the instruction svc again, and x0 has the first argument
 * again. Otherwise pc is behind svc, and x0 has the result.
 */
bool registers_call(const struct source *s, const struct registers *r, struct system_call *ret)
{
	*ret = r->call;
	if (is_svc(s, r->pc))
		return true;
	ret->arguments[0] = UINT64_MAX;
	return r->values[0] == (uint64_t)-EINTR && is_svc(s, r->pc - sizeof(uint32_t));
}
#else
#error "no table of registers for this CPU"
#endif

void registers_take(struct registers *r, const void *record, size_t size)
{
	uint64_t words[sizeof(struct user_regs_struct) / sizeof(uint64_t)] = { 0 };

	memcpy(words, record, MIN(size, sizeof(words)));
	r->count = sizeof(places) / sizeof(*places);
	for (size_t i = 0; i < r->count; i++)
		r->values[i] = words[places[i]];
	r->pc = words[PC];
	r->sp = r->values[SP];
	if (TCB >= 0)
		r->tcb = words[TCB];
	r->call.number = (long)words[CALL];
	for (size_t i = 0; i < sizeof(arguments); i++)
		r->call.arguments[i] = words[arguments[i]];
}

size_t source_read_pieces(const struct source *s, const struct piece *pieces, size_t count)
{
	size_t n = 0;

	if (s->ops->read_pieces)
		return s->ops->read_pieces(s, pieces, count);
	while (n < count && s->ops->read(s, pieces[n].address, pieces[n].buffer, pieces[n].size))
		n++;
	return n;
}

size_t source_read_up_to(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	enum { PAGE = 4096 };		/* no page of the kernel's is smaller */
	struct piece pieces[PIECES_MOST];
	size_t count = 0, read, done = 0;

	/* A read ends at the first page that is missing, but only between two pieces. */
	for (size_t at = 0; at < size && count < PIECES_MOST; at += pieces[count++].size) {
		const size_t rest = PAGE - (address + at) % PAGE;

		pieces[count] = (struct piece){
			address + at, (char *)buffer + at, rest < size - at ? rest : size - at,
		};
	}
	read = source_read_pieces(s, pieces, count);
	while (read--)
		done += pieces[read].size;
	return done;
}

int source_open_file(const char *path)
{
	char again[32];
	struct stat st;
	const int fd = open(path, O_PATH | O_CLOEXEC);
	int file = -1;

	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		file = open(again, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return file;
}
