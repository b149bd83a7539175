#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/model.sh - the schedule explorer (tests/model/), with fixed seeds: each scenario passes
# all runs with one deviation, and some by PCT and at random, with store buffers, too (15 times as
# many with FZ_ALL); what it refuses, it refuses by name; and each fault of tests/model/planted/ can be
# planted in the code as it is.
. "$(dirname "$0")/../../lib/judge.inc"

explore=$build/tests/model/explore
replay=$root/tests/model/replay

runs=${FZ_ALL:+1500} runs=${runs:-100}

explores() {
	local name=$1 log=$work/$1.log
	if "$explore" --exhaustive --bound 1 --pct "$runs" --random "$runs" "$name" >"$log" 2>&1 &&
	   "$explore" --tso --pct $((runs / 4)) --random $((runs / 4)) "$name" >>"$log" 2>&1; then
		pass "$name"
	else
		fail "$name" "a run fails"
		grep -E -A 60 '^FAILED|outside' "$log"
	fi
}

# refuses NAME TEXT COMMAND...: it exits with 2 and says TEXT.
refuses() {
	local name=$1 text=$2 status
	shift 2
	"$@" >"$work/out" 2>&1
	status=$?
	if [ $status -eq 2 ] && grep -qF -- "$text" "$work/out"; then
		pass "$name"
	else
		fail "$name" "exit status $status, and not: $text"
		cat "$work/out"
	fi
}

for scenario in $("$explore" --list | awk '{ print $1 }'); do
	explores "$scenario"
done

# Not whether it is found: that is `make check-planted`.
scenarios=$("$explore" --list)
planted=
for patch in "$root"/tests/model/planted/*.patch; do
	name=${patch##*/}
	scenario=$(sed -n 's/^Found-by: *\([a-z0-9_]*\).*/\1/p' "$patch")
	patch -d "$root" -p1 -N -F 0 -s --dry-run <"$patch" >"$work/out" 2>&1 ||
		planted+="$name: $(head -n 1 "$work/out"); "
	grep -q "^${scenario:-?} " <<<"$scenarios" || planted+="$name: no scenario '$scenario'; "
done
if [ -z "$planted" ]; then
	pass "each planted fault applies"
else
	fail "each planted fault applies" "$planted"
fi

sources=$("$replay" mutex2/pct/1@0 2>&1 | sed -n 's/.*which are \([0-9a-f]*\):.*/\1/p')
if "$replay" "mutex2/pct/1@$sources" >"$work/out" 2>&1 && grep -q '^passed: mutex2' "$work/out"; then
	pass "a seed is replayed"
else
	fail "a seed is replayed" "it does not pass"
	tail -n 5 "$work/out"
fi
refuses "a seed of other sources" "of other sources than these" "$replay" mutex2/pct/1@0123456789
refuses "no seed" "not a seed" "$replay" mutex2
refuses "a seed of an unknown scenario" "no such scenario" "$replay" "mutex9/pct/1@$sources"
refuses "a seed of an unknown kind" "unknown kind" "$replay" "mutex2/luck/1@$sources"
refuses "a list with a pick that is no choice" "no such choices" "$replay" "mutex2/listed2/50.99@$sources"
refuses "a list with a step that is not reached" "no such choices" "$replay" "mutex2/listed2/999999.1@$sources"
refuses "a list out of order" "in the order of the steps" "$replay" "mutex2/listed2/200.1-100.1@$sources"
refuses "a list that goes on" "in the order of the steps" "$replay" "mutex2/listed2/100.1-@$sources"
refuses "a list of more picks than its bound" "more picks than its BOUND" "$replay" "mutex2/listed0/100.1@$sources"
refuses "a number with a sign" "no number" "$replay" "mutex2/pct/-5@$sources"
refuses "a number too large" "no number" "$replay" "mutex2/pct/99999999999999999999999@$sources"
refuses "a count that is no number" "--pct -1: must be a number" "$explore" --pct -1 mutex2
refuses "a bound that is no number" "--bound x: must be a number" "$explore" --exhaustive --bound x mutex2
refuses "an unknown scenario" "no scenario mutex9" "$explore" --pct 1 mutex9

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
END
printf '\t.globl swap\nswap:\txchg %%rax, %%rbx\n\txchg %%ax, %%ax\n\tret\n' >"$work/registers.S"
must "$CC" -O1 -fno-pie -c "$work/within.c" -o "$work/within.o"
must "$CC" -c "$work/registers.S" -o "$work/registers.o"
: >"$work/registers.c"
prints "a file within the model" "" "$root/tests/model/reach.sh" "$work/within.o" "$work/registers.o"
must "$CC" -x c -c -o "$work/lonely.o" - <<<"int lonely;"
refuses "an object without a source" "has no source" "$root/tests/model/reach.sh" "$work/lonely.o"
refuses "no object" "no object" "$root/tests/model/reach.sh" "$work/nothing.o"

# Hours and names that are none.
for hours in abc -1 0 0.0 1.2.3 ''; do
	refuses "explore.sh '$hours'" "number of hours: '$hours'" "$root/tests/model/explore.sh" "$hours"
done
refuses "explore.sh without hours" "one argument is needed" "$root/tests/model/explore.sh"
refuses "planted.sh with unknown names" "'nosuch', '../x'" "$root/tests/model/planted.sh" join-lost nosuch ../x
finish
