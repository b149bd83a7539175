#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/reach.sh OBJECT... - does an explored object reach around the model?  Names
#
# - each function of an object that has an instruction which the hooks do not see: a system call, an atomic access,
#   a fence, the clock, a random number, a change of the thread pointer or of a protection key, an access by %gs,
#   a call of a fixed address; the store of a struct that a call returns in registers;
# - each call of a function that is neither explored, nor the model's, nor on the list below;
# - in the preprocessed source of each object, headers included: assembly with text in it, an attribute that keeps
#   the hooks out of a function, and memory of another segment.
#
# The preprocessed source of a.o is a.i.  Exit status 1 if it names something, 2 if a file is missing.
# A call through memory or through a computed address is not followed.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)

# Of the compiler: it touches no memory.
allowed='__popcountdi2'
# Of the linker, the compiler's hooks, and what host.c, kernel.c and hooks.c have instead of libc.
own='_GLOBAL_OFFSET_TABLE_ __ehdr_start __rseq_offset __rseq_size etext __sanitizer_cov_pcs_init
	__sanitizer_cov_trace_pc_guard __sanitizer_cov_trace_pc_guard_init __start___sancov_guards __stop___sancov_guards
	__start___sancov_pcs __stop___sancov_pcs'
# In sources: file, the beginning of the words, why they may be there.
in_sources='/usr/*|__asm__ ("" "|the name of a symbol, no code
/usr/include/signal.h|__asm__ ("__xpg_sigpause")|the name of a symbol, no code
/usr/include/*asm/swab.h|__asm__("bswap|registers only
runtime/*|__asm__ __volatile__ (".altmacro" "\n" ".macro _SDT_SIGN x"|a probe of sys/sdt.h: a nop, and a note
runtime/*|__asm__ __volatile__ (".ifndef _.stapsdt.base"|the same
runtime/backend/liburing.h|__asm__("fz_" "|the name of a symbol, no code
runtime/inspect/describe.c|__asm__(".pushsection .note.fiberize,|a note for debuggers, which is not executed
arch/x86_64/frame.c|__asm__ volatile("stmxcsr %0"|the state of the CPU, which a switch keeps
arch/x86_64/frame.c|__asm__ volatile("fnstcw %0"|the same
arch/x86_64/frame.c|__asm__ volatile("fnstsw %0"|the same
arch/x86_64/frame.c|__asm__ volatile("rdgsbase %0"|the same
arch/x86_64/shadow.c|__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8"|the same
arch/x86_64/cpu.h|__asm__ volatile("movq %%fs:0, %0"|reads the thread pointer, which each thread has for good
arch/x86_64/cpu.h|__asm__ volatile("wrfsbase %0"|tests/model/arch/cpu.h has its own fz_tcb_set()
arch/x86_64/cpu.h|__asm__ volatile("pause"|tests/model/arch/cpu.h has its own fz_cpu_relax()
arch/x86_64/cpu.h|__asm__ volatile("addq %1, %0"|tests/model/arch/cpu.h has its own fz_add_here()
arch/x86_64/cpu.h|__asm__ volatile("lsl %2, %0|tests/model/arch/cpu.h has its own fz_cpu_number()'

# What the functions of the switch may have.  The explorer switches by the first one, never by the second, and has
# others of its own instead of the next two.
own_instructions='fz_switch_fsgsbase>: ((rd|wr)gsbase|wrfsbase)
	fz_switch_prctl>: syscall
	adopt_of_this_cpu>: (syscall|rdgsbase)
	clone_resume_of_this_cpu>: syscall
	fz_frame_(inherit|make)>: rdgsbase
	fz_arch_shadow_stack>: rdsspq'

# These store what a call returns into an array of their own, which nobody else knows.
own_array='fill_pool_with'

failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for file; do
	[ -e "$file" ] || { echo "reach.sh: no object $file" >&2; exit 2; }
	[ -e "${file%.o}.i" ] || { echo "reach.sh: $file has no preprocessed source" >&2; exit 2; }
done

# Prints "FILE|LINE|WHAT|TEXT" for each word of a preprocessed source that is assembly with text in it, or keeps
# hooks out.  An empty assembly is a barrier for the compiler.
look_at_source()
{
	awk '
		# Each string with something in it becomes "NUMBER", and each character, too.
		function without_strings(text, code)
		{
			while (match(text, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/)) {
				code = code substr(text, 1, RSTART - 1)
				strings[++stringed] = substr(text, RSTART, RLENGTH)
				code = code (RLENGTH == 2 ? "\"\"" : "\"" stringed "\"")
				text = substr(text, RSTART + RLENGTH)
			}
			return code text
		}

		function tell(what, text, said)
		{
			gsub(/[ \t]+/, " ", text)
			gsub(/\( /, "(", text)
			while (match(text, /"[0-9]+"/)) {
				said = said substr(text, 1, RSTART - 1) strings[substr(text, RSTART + 1, RLENGTH - 2)]
				text = substr(text, RSTART + RLENGTH)
			}
			print file "|" began "|" what "|" substr(said text, 1, 200)
		}

		# The clause of an assembly, from its first word to the parenthesis that closes it; 0: it goes on.
		function ends_at(text, i, c, depth)
		{
			for (i = 1; i <= length(text); i++) {
				c = substr(text, i, 1)
				depth += (c == "(") - (c == ")")
				if (c == ")" && !depth)
					return i
			}
			return 0
		}

		function scan(text, word, end, after)
		{
			while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
				word = substr(text, RSTART, RLENGTH)
				after = substr(text, RSTART + RLENGTH)
				if (word ~ /^_*(no_sanitize.*|disable_sanitizer_instrumentation|naked|optimize)$/)
					tell("keeps the hooks out", substr(text, RSTART))
				else if (word ~ /^(__seg_[fg]s|_*address_space_*)$/)
					tell("is memory of another segment", substr(text, RSTART))
				else if (word ~ /^(asm|__asm|__asm__)$/) {
					text = substr(text, RSTART)
					end = ends_at(text)
					if (!end) {
						pending = text
						return
					}
					after = substr(text, length(word) + 1, end - length(word))
					sub(/^([ \t\n]|__volatile__|__volatile|volatile|__inline__|__inline|inline|goto)*/, "",
					    after)
					if (after !~ /^\(([ \t\n]|"")*[:)]/)
						tell("is assembly", substr(text, 1, end))
					after = substr(text, end + 1)
				}
				text = after
			}
		}

		/^# [0-9]+ "/ {
			number = $2 - 1
			file = $0
			sub(/^[^"]*"(\.\/)?/, "", file)
			sub(/".*/, "", file)
			next
		}
		{ number++ }
		pending != "" {
			line = pending " " without_strings($0)
			pending = ""
			scan(line)
			next
		}
		/asm|no_sanitize|sanitizer_instr|naked|optimize|__seg_|address_space/ {
			began = number
			scan(without_strings($0))
		}' "$1"
}

# Each once, whatever includes it; but for what is allowed.
for file; do
	look_at_source "${file%.o}.i"
done | sort -u >"$work/found"
while IFS='|' read -r file number what text; do
	name=${file#"$root/"}
	permitted=
	while IFS='|' read -r its_file its_text _; do
		# shellcheck disable=SC2254 # a pattern
		case $name in
		$its_file)
			case $text in
			"$its_text"*)	permitted=1 ;;
			esac ;;
		esac
	done <<-END
		$in_sources
	END
	[ -z "$permitted" ] || continue
	printf '%s\n' "$name:$number: $what, which the model does not see: $text"
	failed=1
done <"$work/found"

# shellcheck disable=SC2086 # words
nm -g --defined-only "$@" ${MODEL_OBJECTS:-} | awk 'NF == 3 { print $3 }' >"$work/defined"
# shellcheck disable=SC2086 # words
printf '%s\n' $allowed $own >>"$work/defined"
sort -u -o "$work/defined" "$work/defined"
for object; do
	objdump -dr --no-show-raw-insn "$object" | awk -v object="$object" -v own_array="^<($own_array)>:\$" \
		-v own_instructions="^<($(printf '%s' "$own_instructions" | tr -d '\t' | tr '\n' '|'))\$" '
		BEGIN {
			prefix = "^(rep|repe|repne|repz|repnz|rex(\\.[WRXB]+)?|xacquire|xrelease|bnd|notrack|" \
				 "data16|data32|addr16|addr32|[c-gs]s|\\{.*\\})$"
			# System calls and traps; the clock, random numbers, the number and the state of the CPU.
			bad = "syscall|sysenter|sysret[lq]?|sysexit[lq]?|int|int1|int3|icebp|into|iret[lqw]?|hlt|" \
			      "vmcall|vmmcall|vmfunc|in[blw]?|out[blw]?|ins[blw]?|outs[blw]?|" \
			      "lsl|lar|verr|verw|s[gil]dt[lqw]?|str|smsw[lqw]?|" \
			      "rdtsc|rdtscp|rdpmc|rdpid|rdpru|rdrand[lqw]?|rdseed[lqw]?|cpuid|rdmsr|wrmsr|" \
			      "pause|tpause|umonitor|umwait|u?monitorx?|mwaitx?|"
			# Atomic accesses, fences, transactions, stores that bypass the cache or go past the order.
			bad = bad "lock|cmpxchg[a-z0-9]*|xadd[blqw]?|cmp[a-z]+xadd|aadd|aand|aor|axor|" \
			      "[lms]fence|serialize|xbegin|xend|xabort|xtest|xsusldtrk|xresldtrk|" \
			      "v?movnt[a-z0-9]*|v?maskmovdqu|maskmovq|movdir64b|movdiri|enqcmds?|" \
			      "clflush(opt)?|clwb|cldemote|clzero|"
			# The thread pointer, protection keys, state that a switch of contexts restores, far jumps.
			bad = bad "(wr|rd)[fg]sbase[lq]?|swapgs|l[defgs]s[lqw]?|rdpkru|wrpkru|xsave[a-z0-9]*|xrstor[a-z0-9]*|" \
			      "fxsave[a-z0-9]*|fxrstor[a-z0-9]*|xgetbv|xsetbv|" \
			      "rdssp[dq]|incssp[dq]|saveprevssp|rstorssp|wru?ss[dq]|(set|clr)ssbsy|" \
			      "senduipi|clui|stui|testui|uiret|ptwrite[lq]?|l(call|jmp|ret)[lqw]?|\\(bad\\)"
			bad = "^(" bad ")$"
		}
		function tell(what)
		{
			print object ": " place " " what
			found = 1
		}

		# %r8d -> 8, %eax and %rax -> ax
		function register(name)
		{
			gsub(/^%[er]?|d$/, "", name)
			return name
		}

		# What calls a number: directly, through a place with a number, or by a register that was given one.
		function look_at_call(operands, target)
		{
			target = operands
			if (relocation ~ /^\*ABS\*/ || (relocation == "" && operands ~ /^\*(ds:)?(0x)?[0-9a-f]+$/) ||
			    (sub(/^\*/, "", target) && register(target) in given))
				tell(name " of a fixed address reaches around the model")
			if (name ~ /^(call|jmp|ret)/)
				split("", given)
		}

		# An instruction, once the line behind it has shown whether it has a relocation.
		function look(n, operands, last)
		{
			if (instruction == "")
				return
			$0 = instruction
			instruction = ""
			for (n = 2; n < NF && $n ~ prefix; n++)
				continue
			name = $n
			operands = $0
			sub(/[ \t]*[#<].*/, "", operands)
			sub(/.*[ \t]/, "", operands)
			if ((name ~ bad || (name ~ /^xchg/ && operands !~ /^%[a-z0-9]+,%[a-z0-9]+$/) ||
			     (name ~ /^(mov|pop)/ && operands ~ /(^|,)%[fg]s$/)) && place " " name !~ own_instructions)
				tell(name " reaches around the model")
			else if ($0 ~ /[ \t*,]%gs:/)
				tell(name " of another segment reaches around the model")
			if (name ~ /^(call|jmp|ret)/) {
				look_at_call(operands)
				split("", returned)
				if (name ~ /^call/ && relocation !~ /^__tsan_/)
					returned["ax"] = returned["dx"] = returned["xmm0"] = returned["xmm1"] = 1
				return
			}
			# The compiler puts no hook at the store of a struct that a call returns in registers.
			if (name ~ /^mov/ && operands ~ /^%[a-z0-9]+,[^%]/ && operands !~ /\(%r[bs]p[,)]|%fs:/ &&
			    register(substr(operands, 1, index(operands, ",") - 1)) in returned && place !~ own_array)
				tell(name " of a returned struct has no hook: it reaches around the model")
			last = operands
			if (sub(/.*,/, "", last)) {
				delete returned[register(last)]
				delete given[register(last)]
				if (name ~ /^mov(abs|[lq])?$/ && operands ~ /^\$0x[0-9a-f]+,%/ && relocation == "")
					given[register(last)]
			}
		}

		/^[0-9a-f]+ <.*>:$/ { header = $2; look(); place = header; split("", given); next }
		$2 ~ /^R_X86_64_/ { relocation = $3; next }
		$1 ~ /^[0-9a-f]+:$/ { line = $0; look(); instruction = line; relocation = "" }
		END { look(); exit found }' || failed=1
	nm -u "$object" | awk '{ print $2 }' | grep -v '^__tsan_' | sort -u | comm -23 - "$work/defined" >"$work/unknown"
	while read -r name; do
		echo "$object: calls $name, which is not modelled"
		failed=1
	done <"$work/unknown"
done
exit $failed
