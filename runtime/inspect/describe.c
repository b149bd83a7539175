/* SPDX-License-Identifier: MIT */
#include "runtime/inspect/describe.h"

#include <linux/io_uring.h>

#include "frame.h"
#include "runtime/backend/choice.h"
#include "runtime/base/count.h"
#include "runtime/base/role.h"
#include "runtime/base/uapi.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/registry.h"
#include "runtime/inspect/dormant.h"
#include "runtime/inspect/version.h"
#include "runtime/io/op.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/trace.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/rwlock.h"

#define SIZE_OF(type, member) sizeof(((type *)0)->member)

/*
 * Not const, because a core file contains only data that the process may write.  Readers check the
 * magic.  Not static, because the assembler below names the object.
 */
extern struct fz_description fz_description FZ_HIDDEN;
struct fz_description fz_description = {
	.magic = FZ_DESCRIPTION_MAGIC,
	.version = FZ_DESCRIPTION_VERSION,
	.entry_size = sizeof(struct fz_entry),
	.count = 0
#define FZ_FIELD(name, type, member) +1
#define FZ_ROOT(name, object) +1
#define FZ_VALUE(name, value) +1
#define FZ_WAIT(name, value, word, by) +2
#define FZ_REQUEST(opcode, word) +1
#define REGISTER(number, offset) +1
#include "runtime/inspect/fields.def"
	FZ_FRAME_REGISTERS(REGISTER),
#undef REGISTER
	.entries = {
#define FZ_FIELD(name, type, member) \
	{ #name, offsetof(type, member), SIZE_OF(type, member), FZ_ENTRY_FIELD },
#define FZ_ROOT(name, object) \
	{ #name, (uintptr_t)&(object), sizeof(object), FZ_ENTRY_ROOT },
#define FZ_VALUE(name, value) { #name, value, 0, FZ_ENTRY_VALUE },
#define FZ_WAIT(name, value, word, by) \
	{ #name, value, 0, FZ_ENTRY_VALUE }, { word, value, 0, FZ_ENTRY_WORD },
#define FZ_REQUEST(opcode, word) { word, opcode, 0, FZ_ENTRY_REQUEST },
#define REGISTER(number, offset) { #number, offset, sizeof(uint64_t), FZ_ENTRY_REGISTER },
#include "runtime/inspect/fields.def"
		FZ_FRAME_REGISTERS(REGISTER)
	},
};

#define TEXT(number) TEXT_(number)
#define TEXT_(number) #number

__asm__(".pushsection .note.fiberize, \"a\", %note\n\t"
	".balign 4\n\t"
	".long 2f - 1f, 8, " TEXT(FZ_NOTE_DESCRIPTION) "\n"
	"1:\t.asciz \"" FZ_NOTE_OWNER "\"\n"
	"2:\t.balign 4\n"
	"3:\t.quad fz_description - 3b\n\t"
	".popsection");
