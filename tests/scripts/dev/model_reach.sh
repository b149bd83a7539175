#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/model_reach.sh - what reaches around the schedule explorer's model is refused by name; each way
# in which a compiler writes to memory has a hook; what a run leaves behind is found; and seeds end with the sources
# that they were found in.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"

# A file that reaches around the model.
cat >"$work/around.c" <<-'END'
	#include <unistd.h>
	long ask(void);
	void wait_a_while(void);
	long ask(void)
	{
		long ret;

		__asm__ volatile("syscall" : "=a"(ret) : "a"(39) : "rcx", "r11", "memory");
		return ret;
	}
	void wait_a_while(void)
	{
		sleep(1);
	}
END
"$CC" -O1 -c "$work/around.c" -o "$work/around.o"
"$CC" -E "$work/around.c" -o "$work/around.i"
"$root/tests/model/reach.sh" "$work/around.o" >"$work/out" 2>&1
status=$?
if [ $status -eq 1 ] && grep -q 'around.o: <ask>: syscall reaches around' "$work/out" &&
   grep -q 'around.o: calls sleep, which is not modelled' "$work/out"; then
	pass "a file that reaches around the model"
else
	fail "a file that reaches around the model" "exit status $status"
	cat "$work/out"
fi

# reaches NAME TEXT...: reach.sh names each TEXT for the file of this NAME, which is on standard input
reaches() {
	local name=$1 file text missing='' status
	shift
	file=$work/${name// /-}
	cat >"$file.c"
	must "$CC" -O1 -fno-pie -c "$file.c" -o "$file.o"
	must "$CC" -E "$file.c" -o "$file.i"
	"$root/tests/model/reach.sh" "$file.o" >"$work/out" 2>&1
	status=$?
	for text; do
		grep -qF -- "$text" "$work/out" || missing+="${missing:+, }$text"
	done
	if [ $status -eq 1 ] && [ -z "$missing" ]; then
		pass "$name"
	else
		fail "$name" "exit status $status${missing:+; not named: $missing}"
		cat "$work/out"
	fi
}

reaches "an exchange with memory" '<swap>: xchg reaches around' '<swap_fixed>: xchg reaches around' <<-'END'
	int w;
	int swap(int *p);
	void swap_fixed(void);
	int swap(int *p)
	{
		return __atomic_exchange_n(p, 1, __ATOMIC_RELAXED);
	}
	void swap_fixed(void)
	{
		__asm__ volatile("xchgl %%eax, w" : : : "eax", "memory");
	}
END
reaches "an instruction that only the switch may have" '<f>: rdgsbase reaches around' \
	'<fz_frame_make>: syscall reaches around' <<-'END'
	void f(void);
	void fz_frame_make(void);
	void f(void) { __asm__ volatile("rdgsbase %%rax" : : : "rax"); }
	void fz_frame_make(void)
	{
		__asm__ volatile("rdgsbase %%rax\n\tsyscall" : : : "rax", "rcx", "r11", "memory");
	}
END
reaches "a system call behind a prefix" '<ask>: syscall reaches around' <<-'END'
	void ask(void);
	void ask(void)
	{
		__asm__ volatile("rex.W syscall" : : : "rax", "rcx", "r11", "memory");
	}
END
# Each has a name of its own, which is the function's, too.
instructions='cmpxchg=cmpxchg_%ecx,(%rdi) xadd=xadd_%ecx,(%rdi) lock=xacquire_lock_incl_(%rdi) int3=int3 rdpid=rdpid_%rax
	rdrand=rdrand_%eax rdseed=rdseed_%eax rdpkru=rdpkru wrpkru=wrpkru xbegin=xbegin_. mov=mov_%eax,%fs
	rdtsc=rdtsc lsl=lsl_%ecx,%eax movnti=movnti_%eax,(%rdi) wrgsbase=wrgsbase_%rax pause=pause mfence=mfence'
named=()
for instruction in $instructions; do
	named+=("<f_${instruction%%=*}>: ${instruction%%=*} reaches around")
done
for instruction in $instructions; do
	text=${instruction#*=}
	printf '__attribute__((used)) static void f_%s(void) { __asm__ volatile("%s"); }\n' "${instruction%%=*}" \
		"${text//_/ }"
done | reaches "instructions that the hooks do not see" "${named[@]}"
reaches "a function without hooks" "no_sanitize" "a-function-without-hooks.c:3: keeps the hooks out" \
	"a-function-without-hooks.c:5: keeps the hooks out" <<-'END'
	/* no_sanitize in a comment. */
	int w;
	__attribute__((no_sanitize("thread"))) int get(void);
	int get(void) { return w; }
	__attribute__((__no_sanitize_thread__)) void set(int n);
	void set(int n) { w = n; }
END
reaches "assembly with text" "assembly-with-text.c:5: is assembly" "assembly-with-text.c:8: is assembly" <<-'END'
	int w;
	void set(void);
	void set(void)
	{
		__asm__ volatile("" /* nothing yet */
				 "movl $1, w" : : : "memory");
	}
	__asm__(".globl w");
END
echo '__asm__ volatile("nop");' >"$work/words.inc"
reaches "assembly in an included file" "words.inc:1: is assembly" <<-'END'
	int w;
	void set(void);
	void set(void)
	{
	#include "words.inc"
	}
END
reaches "a word that the preprocessor makes" "preprocessor-makes.c:7: is assembly" \
	"preprocessor-makes.c:4: keeps the hooks out" <<-'END'
	#define MADE(a, b) a##b
	int w;
	void set(void);
	__attribute__((MADE(no_sani, tize_thread)))
	void set(void)
	{
		MADE(__as, m__) volatile("movl $1, w" : : : "memory");
	}
END
reaches "memory of another segment" "another-segment.c:3: is memory of another segment" \
	"another-segment.c:4: is memory of another segment" "<by_gs>: mov of another segment" <<-'END'
	long by_fs(void);
	long by_gs(void);
	long by_fs(void) { return *(long __seg_fs *)8; }
	long by_gs(void) { return *(long __seg_gs *)8; }
END
reaches "a call of a fixed address" "<once>: call of a fixed address" "<repeated>: call of a fixed address" \
	"<through>: call of a fixed address" <<-'END'
	void once(void);
	void repeated(int n);
	void through(void);
	void once(void) { ((void (*)(void))0x401000)(); }
	void repeated(int n) { while (n--) ((void (*)(void))0x401000)(); }
	void through(void) { (*(void (**)(void))0x5000)(); }
END
reaches "functions of libc that read memory" "calls memcmp, which is" "calls strlen, which is" <<-'END'
	#include <string.h>
	int differ(const char *a, const char *b);
	int differ(const char *a, const char *b) { return memcmp(a, b, strlen(a)); }
END
reaches "a returned struct that is stored without a hook" "<keep>: mov of a returned struct has no hook" \
	"<keep_there>: mov of a returned struct has no hook" <<-'END'
	struct pair { long a, b; };
	struct pair make(void);
	struct pair kept;
	void keep(void);
	void keep_there(struct pair *p);
	__attribute__((noinline, noipa)) struct pair make(void) { return (struct pair){ 1, 2 }; }
	void keep(void) { kept = make(); }
	void keep_there(struct pair *p) { *p = make(); }
END

# What the hooks do see: registers that are exchanged, a barrier for the compiler, and the words in a text.
cat >"$work/within.c" <<-'END'
	int barrier(int n);
	const char *text(void);
	/* asm("syscall"), no_sanitize */
	int barrier(int n)
	{
		__asm__ volatile("" : "+r"(n) : : "memory");
		return n;
	}
	const char *text(void)
	{
		return "no_sanitize /* asm(\"syscall\")";	// asm("lock")
	}
	void call(void (*function)(void));
	void call(void (*function)(void))
	{
		function();
	}
END
printf '\t.globl swap\nswap:\txchg %%rax, %%rbx\n\txchg %%ax, %%ax\n\tret\n' >"$work/registers.S"
must "$CC" -O1 -fno-pie -c "$work/within.c" -o "$work/within.o"
must "$CC" -c "$work/registers.S" -o "$work/registers.o"
: >"$work/registers.i"
must "$CC" -E "$work/within.c" -o "$work/within.i"
prints "a file within the model" "" "$root/tests/model/reach.sh" "$work/within.o" "$work/registers.o"
must "$CC" -x c -c -o "$work/lonely.o" - <<<"int lonely;"
for refusal in 'lonely:has no preprocessed source' 'nothing:no object'; do
	run "$root/tests/model/reach.sh" "$work/${refusal%%:*}.o"
	like "an object: ${refusal#*:}" "2:*${refusal#*:}*" "$code:$err"
done

# Each byte that an explored file writes, or reads for a copy, has a hook.
cat >"$work/writes.h" <<-'END'
	struct large { char b[40]; };
	#define WRITERS \
		X(set, 0, __builtin_memset(to, 1, 16)) \
		X(set_plainly, 0, memset(to, 1, 16)) \
		X(copy_8, 8, __builtin_memcpy(to, from, 8)) \
		X(copy_32, 32, __builtin_memcpy(to, from, 32)) \
		X(copy_8_plainly, 8, memcpy(to, from, 8)) \
		X(copy_32_plainly, 32, memcpy(to, from, 32)) \
		X(move_16, 16, __builtin_memmove(to, from, 16)) \
		X(copy_struct, 40, *(struct large *)to = *(const struct large *)from) \
		X(zero_struct, 0, *(struct large *)to = (struct large){ { 0 } }) \
		X(compare, 16, *to = __builtin_memcmp(to, from, 16) < 0) \
		X(measure, 7, *to = (char)__builtin_strlen(from))
END
cat >"$work/writes.c" <<-'END'
	#include <string.h>
	#include "writes.h"
	#define X(name, reads, does) void name(char *to, const char *from); \
		void name(char *to, const char *from) { (void)from; does; }
	WRITERS
END
cat >"$work/writes-hooks.c" <<-'END'
	#include <stdio.h>
	#include <string.h>
	#include "writes.h"
	static char to[64], from[64], wrote[64], was_read[64];
	static void mark(char *marks, const char *of, const char *p, size_t n)
	{
		for (; n; n--, p++)
			if (p >= of && p < of + 64)
				marks[p - of] = 1;
	}
	static void reads(const void *p, size_t n) { mark(was_read, from, p, n); }
	static void writes(void *p, size_t n) { mark(wrote, to, p, n); }
	#define HOOKS(size) \
		void __tsan_read##size(void *p) { reads(p, size); } \
		void __tsan_write##size(void *p) { writes(p, size); } \
		void __tsan_unaligned_read##size(void *p) { reads(p, size); } \
		void __tsan_unaligned_write##size(void *p) { writes(p, size); }
	HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
	void __tsan_init(void) { }
	void __tsan_func_entry(void *pc) { (void)pc; }
	void __tsan_func_exit(void) { }
	void __tsan_read_range(const void *p, size_t n) { reads(p, n); }
	void __tsan_write_range(void *p, size_t n) { writes(p, n); }
	void *model_memcpy(void *a, const void *b, size_t n) { reads(b, n); writes(a, n); return memcpy(a, b, n); }
	void *model_memmove(void *a, const void *b, size_t n) { return model_memcpy(a, b, n); }
	void *model_memset(void *a, int c, size_t n) { writes(a, n); return memset(a, c, n); }
	int model_memcmp(const void *a, const void *b, size_t n) { reads(a, n); reads(b, n); return memcmp(a, b, n); }
	size_t model_strlen(const char *a) { reads(a, strlen(a) + 1); return strlen(a); }
	static void judge(const char *name, int its_reads, void (*does)(char *, const char *))
	{
		memset(to, 'a', 64);
		memcpy(from, "bbbbbb\0bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 64);
		memset(wrote, 0, 64);
		memset(was_read, 0, 64);
		does(to, from);
		for (int i = 0; i < 64; i++)
			if ((to[i] != 'a' && !wrote[i]) || (i < its_reads && !was_read[i])) {
				printf("%s: byte %d has no hook\n", name, i);
				return;
			}
		printf("%s\n", name);
	}
	#define X(name, reads, does) void name(char *, const char *);
	WRITERS
	#undef X
	#define X(name, reads, does) judge(#name, reads, name);
	int main(void) { WRITERS return 0; }
END
in_root() { (cd "$root" && eval "$1"); }
# In the words of the shell.
{ read -r compile && read -r rename; } < <(make -s --no-print-directory -C "$root" model-command)
clang=${compile/#"${compile%% *}"/clang}
must "$CC" -O1 -c "$work/writes-hooks.c" -o "$work/writes-hooks.o"
for command in "$compile" "$clang"; do
	name="writes of ${command%% *} have hooks"
	if ! command -v "${command%% *}" >/dev/null; then
		skip "$name" "it is missing"
		continue
	fi
	must in_root "$command -w -c $work/writes.c -o $work/writes.o && objcopy $rename $work/writes.o"
	must "$CC" -no-pie "$work/writes.o" "$work/writes-hooks.o" -o "$work/writes"
	prints "$name" "$(sed -n 's/.*X(\([a-z0-9_]*\),.*/\1/p' "$work/writes.h")" "$work/writes"
done

# What no hook sees is found, too, when it stays after a run: here gdb stores it.
if command -v gdb >/dev/null; then
	seed=mutex2/pct/1@$(cut -d ' ' -f 1 "$build/tests/model/sources")
	gdb -batch -nx -ex 'set breakpoint pending on' -ex 'break memory_undo' -ex "run --replay $seed" \
		-ex "set var 'tests/model/scenarios/sync/cond.c'::ready = 5" -ex delete -ex continue \
		"$build/tests/model/explore" >"$work/out" 2>&1
	has "a store without a hook" "$work/out" 'is not what it was before the run: a store has no hook'
else
	skip "a store without a hook" "gdb is not installed"
fi

# A source that goes away: the explorer is linked again, with the seeds of the sources that are left.
mkdir -p "$work/tree/tests/fuzz" "$work/bin"
cp -a "$root"/{Makefile,arch,runtime} "$work/tree"
cp -a "$root/tests/model" "$work/tree/tests"
cp -a "$root/tests/fuzz/build.mk" "$work/tree/tests/fuzz"
cat >"$work/bin/compiler" <<-END
	#!/bin/sh
	[ "\$1" != --version ] || exit 0
	while [ \$# -gt 1 ]; do
		[ "\$1" != -o ] || { echo "\$2" >>"$work/made"; : >"\$2"; }
		shift
	done
END
printf '#!/bin/sh\n' >"$work/bin/objcopy"
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"%s"\n' "$work/judged" >"$work/tree/tests/model/reach.sh"
chmod +x "$work/bin"/*
makes() {
	: >"$work/made"
	PATH=$work/bin:$PATH must make -s -C "$work/tree" B=b CC="$work/bin/compiler" b/tests/model/explore \
		>"$work/out" 2>&1
	grep -E 'model/(explore|seed\.o)$' "$work/made" | tr '\n' ' '
}
same "an explorer is made" "b/tests/model/tests/model/seed.o b/tests/model/explore " "$(makes)"
same "what switches contexts is judged, too" "arch/x86_64/frame.o arch/x86_64/shadow.o arch/x86_64/switch.o" \
	"$(sed -n 's|.*/\(arch/\)|\1|p' "$work/judged" | sort | xargs)"
same "an explorer is not made again" "" "$(makes)"
rm "$work/tree/tests/model/scenarios/sync/sem.c"
same "an explorer without one of its sources" "b/tests/model/tests/model/seed.o b/tests/model/explore " "$(makes)"
finish
