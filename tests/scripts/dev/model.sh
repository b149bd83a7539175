#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/dev/model.sh - the schedule explorer (tests/model/), with fixed seeds: each scenario passes
# all runs with one deviation, one scenario all with two, and each some by PCT and at random, with store
# buffers and with plain accesses as points, too (15 times as many with FZ_ALL); what it refuses, it refuses
# by name; and each fault of tests/model/planted/ can be planted in the code as it is.
. "$(dirname "$0")/../../lib/judge.inc"

explore=$build/tests/model/explore
replay=$root/tests/model/replay

runs=${FZ_ALL:+1500} runs=${runs:-100}

explores() {
	local name=$1 log=$work/$1.log
	if "$explore" --exhaustive --bound 1 --pct "$runs" --random "$runs" "$name" >"$log" 2>&1 &&
	   "$explore" --tso --pct $((runs / 4)) --random $((runs / 4)) "$name" >>"$log" 2>&1 &&
	   "$explore" --plain --pct $((runs / 4)) --random $((runs / 4)) "$name" >>"$log" 2>&1 &&
	   # Only the last of the passes that find more shared memory.
	   [ "$(grep -c ', all tried' "$log")" -eq 1 ]; then
		pass "$name"
	else
		fail "$name" "a run fails, or not all have been tried"
		grep -E -A 60 '^FAILED|outside|tried' "$log"
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

# The smallest with two deviations: some 100,000 runs, 5 s of CPU time.
two=cond_native
all=$("$root/tests/model/explore_all.sh" 2 $two | sed -E 's/ +[0-9]+ runs +[0-9.]+ s +/ runs /')
same "every run with 2 deviations" "$two runs all tried${newline}total runs 1 of 1 scenarios tried wholly" "$all"

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

# shellcheck disable=SC2016 # backquotes
same "PLANTED.md has just the planted faults: else, run planted.sh --write" \
	"$(basename -as .patch "$root"/tests/model/planted/*.patch | xargs)" \
	"$(sed -n 's/^| `\([^`]*\)` .*/\1/p' "$root/tests/model/PLANTED.md" 2>/dev/null | xargs)"
sources=$("$replay" mutex2/pct/1@0 2>&1 | sed -n 's/.*which are \([0-9a-f]*\):.*/\1/p')
if "$replay" "mutex2/pct/1@$sources" >"$work/out" 2>&1 && grep -q '^passed: mutex2' "$work/out"; then
	pass "a seed is replayed"
else
	fail "a seed is replayed" "it does not pass"
	tail -n 5 "$work/out"
fi

# A run has more points with plain accesses than without: PCT's change points must reach those beyond, too.
changes_late() {
	local scenario=yield most i last all
	most=$("$explore" --pct 1 $scenario | sed -n 's/.*, \([0-9]*\) points at most.*/\1/p')
	for i in {1..60}; do
		"$replay" "$scenario+plain/pct/$i@$sources" >"$work/out" 2>&1 || return 1
		last=$(sed -n 's/.*change point //p' "$work/out" | tail -n 1)
		all=$(sed -n 's/^passed: .*, \([0-9]*\) points$/\1/p' "$work/out")
		[ "${last:-0}" -le "${most:?}" ] || [ $((last * 3)) -le $((all * 2)) ] || return 0
	done
	return 1
}
yes "PCT changes priorities late in a run with plain accesses" changes_late
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

seed="mutex2/pct/1@$sources"
refuses "a seed with an option" "--replay SEED goes alone" "$explore" --tso --plain --replay "$seed"
refuses "a seed, then an option" "--replay SEED goes alone" "$explore" --replay "$seed" --list
refuses "words after a seed" "--replay SEED goes alone" "$explore" --replay "$seed" mutex3
refuses "replay: words after a seed" "usage: replay" "$replay" "$seed" mutex3
refuses "replay --gdb without a seed" "usage: replay" "$replay" --gdb
refuses "store buffers twice" "no such scenario" "$replay" "mutex2+tso+tso/pct/1@$sources"

# The one that is preempted, and the one whose deadline it was.
for i in {1..20}; do
	"$replay" "nap/random/$i@$sources" >"$work/out" 2>&1
	! grep -q "deadline has come" "$work/out" || break
done
has "a trace says whose deadline has come" "$work/out" \
	'^   step [0-9]*: [^,;]* \(is preempted\|sleeps\); [^;]* ([0-9]*), whose deadline has come, goes on$'

# What the kernel does, but not by default.
kernel_deviates() {
	local i text left=("the futex wait ends by itself" "is woken to report" "in another order") rest
	for i in {1..40}; do
		"$replay" "ring/random/$i@$sources" >"$work/out" 2>&1 || return 1
		rest=()
		for text in "${left[@]}"; do
			grep -qF "$text" "$work/out" || rest+=("$text")
		done
		[ ${#rest[@]} -gt 0 ] || return 0
		left=("${rest[@]}")
	done
	echo "never: ${left[*]}"
	return 1
}
yes "the kernel is early, late, out of order" kernel_deviates

# stops NAME STATUS TEXT COMMAND...: it exits so and says just one line, with TEXT; fd 3 is its output.
stops() {
	local name=$1 status=$2 text=$3 got
	shift 3
	"$@" >&3 2>"$work/err"
	got=$?
	if [ $got -eq "$status" ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -qF -- "$text" "$work/err"; then
		pass "$name"
	else
		fail "$name" "exit status $got, and: $(head -c 500 "$work/err")"
	fi
}
for how in "--pct 5 mutex2 mutex3" --list "--replay $seed"; do
	# shellcheck disable=SC2086 # words
	stops "a full disk: ${how%% *}" 4 "explore: its output cannot be written: No space left" \
		"$explore" $how 3>/dev/full
done
closed() { "$@" >&-; }
stops "a closed output" 4 "explore: its output cannot be written: Bad file" \
	closed "$explore" --pct 5 mutex2 mutex3 3>/dev/null
piped() { "$@" | :; return "${PIPESTATUS[0]}"; }
stops "a pipe that nobody reads" 4 "explore: its output cannot be written: Broken pipe" \
	piped "$explore" --exhaustive mutex_native mutex2 3>/dev/null
unprivileged=()
[ "$(id -u)" -ne 0 ] || unprivileged=(setpriv --reuid 65534 --clear-groups)
stops "no process is to be had" 3 "explore: fork: Resource temporarily unavailable" \
	"${unprivileged[@]}" prlimit --nproc=1 "$explore" --pct 5 mutex2 mutex3 3>/dev/null

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
refuses "an object without its source" "has no preprocessed source" "$root/tests/model/reach.sh" "$work/lonely.o"
refuses "no object" "no object" "$root/tests/model/reach.sh" "$work/nothing.o"

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
printf '#!/bin/sh\n' | tee "$work/bin/objcopy" >"$work/tree/tests/model/reach.sh"
chmod +x "$work/bin"/*
makes() {
	: >"$work/made"
	PATH=$work/bin:$PATH must make -s -C "$work/tree" B=b CC="$work/bin/compiler" b/tests/model/explore \
		>"$work/out" 2>&1
	grep -E 'model/(explore|main\.o)$' "$work/made" | tr '\n' ' '
}
same "an explorer is made" "b/tests/model/tests/model/main.o b/tests/model/explore " "$(makes)"
same "an explorer is not made again" "" "$(makes)"
rm "$work/tree/tests/model/scenarios/sem.c"
same "an explorer without one of its sources" "b/tests/model/tests/model/main.o b/tests/model/explore " "$(makes)"

# Hours and names that are none.
for hours in abc -1 0 0.0 1.2.3 ''; do
	refuses "explore.sh '$hours'" "number of hours: '$hours'" "$root/tests/model/explore.sh" "$hours"
done
refuses "explore.sh without hours" "one argument is needed" "$root/tests/model/explore.sh"
coverage=$root/tests/model/coverage.sh
refuses "coverage.sh without a number" "coverage.sh: one argument is needed" "$coverage"
for number in x 0 -1 1.5 '' 1234567890; do
	refuses "coverage.sh '$number'" "not a number of runs: '$number'" "$coverage" "$number"
done
refuses "coverage.sh without an explorer" "is missing: run make model-coverage" env FZ_BUILD="$work/none" "$coverage" 1
same "coverage.sh counts the files of signals" "$(cd "$root/runtime" && echo signal/*.c)" \
	"$("$coverage" --files | grep '^signal/.*c$' | xargs)"
refuses "planted.sh --write with a name" "--write takes no name" "$root/tests/model/planted.sh" --write join-lost
# Its processes that are there still.
group_lives() {
	ps -eo pgid=,stat= | awk -v group="$1" '$1 == group && $2 !~ /^Z/ { lives = 1 } END { exit !lives }'
}
group_is_gone() { ! group_lives "$1"; }
# ends_by SIGNAL STATUS: explore.sh takes the explorer with it, and says where it was.
ends_by() {
	local status sum
	# In a group of its own, and with SIGINT not ignored.
	set -m
	launch "$root/tests/model/explore.sh" 1
	set +m
	eventually grep -qs ' runs ' "$work/said" || { echo "no runs"; kill -KILL -- -"$pid"; return 1; }
	kill -"$1" "$pid"
	wait "$pid"
	status=$?
	eventually group_is_gone "$pid" || { echo "its processes run on"; kill -KILL -- -"$pid"; return 1; }
	sum=$(awk '$4 == "runs" { sum += $3 } END { print sum }' "$work/said")
	grep -q '; next seed [0-9]*$' "$work/said" || status+=", no next seed"
	grep -q "^$sum runs in [0-9.]* s of CPU time, [0-9]* schedules per second$" "$work/said" || status+=", no sum"
	[ "$status" = "$2" ] || { echo "exit status $status"; tail -n 3 "$work/said"; return 1; }
}
yes "explore.sh at SIGINT" ends_by INT 130
yes "explore.sh at SIGTERM" ends_by TERM 143

for bound in x -1 100 ''; do
	refuses "make explore-all BOUND='$bound'" "number of deviations from 0 to 99: '$bound'" \
		"$root/tests/model/explore_all.sh" "$bound"
done
all=$("$root/tests/model/explore_all.sh" 1 barrier mutex2 | sed -E 's/ +[0-9]+ runs +[0-9.]+ s +/ runs /')
same "every run with 1 deviation" \
	"barrier runs all tried${newline}mutex2 runs all tried${newline}total runs 2 of 2 scenarios tried wholly" "$all"
refuses "explore_all.sh without a bound" "an argument is needed" "$root/tests/model/explore_all.sh"
refuses "explore_all.sh with an unknown scenario" "no scenario mutex9" \
	"$root/tests/model/explore_all.sh" 1 mutex2 mutex9
refuses "planted.sh with unknown names" "'nosuch', '../x'" "$root/tests/model/planted.sh" join-lost nosuch ../x
finish
