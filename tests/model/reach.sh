#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/model/reach.sh OBJECT... - does an explored object reach around the model?  Names
#
# - each function of an object that has an instruction which the hooks do not see: a system call, an
#   atomic access, a fence, the clock, a random number, a change of the thread pointer or of a protection key;
# - each call of a function that is neither explored, nor the model's, nor on the list below;
# - in the source of each object, and in the headers of runtime/, arch/ and tests/model/: assembly with text in it, and
#   an attribute that keeps the hooks out of a function.
#
# The source of a/b/c.o is a/b/c.c, or the b/c.c or c.c of this repository.  Exit status 1 if it names something,
# 2 if a file is missing.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)

# Of the compiler: it touches no memory.
allowed='__popcountdi2'
# Of the linker, the compiler's hooks, and what host.c, kernel.c and hooks.c have instead of libc.
own='_GLOBAL_OFFSET_TABLE_ __ehdr_start __rseq_offset __rseq_size etext __sanitizer_cov_pcs_init
	__sanitizer_cov_trace_pc_guard __sanitizer_cov_trace_pc_guard_init __start___sancov_guards __stop___sancov_guards
	__start___sancov_pcs __stop___sancov_pcs'
# In sources: file, a part of the line, why it may be there.
in_sources='runtime/backend/liburing.h|extern __typeof__(name) name __asm__("fz_" #name)|the name of a symbol, no code
runtime/inspect/describe.c|__asm__(".pushsection .note.fiberize,|a note for debuggers, which is not executed
arch/x86_64/cpu.h|__asm__ volatile("movq %%fs:0, %0"|reads the thread pointer, which each thread has for good
arch/x86_64/cpu.h|__asm__ volatile("wrfsbase %0"|tests/model/arch/cpu.h has its own fz_tcb_set()
arch/x86_64/cpu.h|__asm__ volatile("pause"|tests/model/arch/cpu.h has its own fz_cpu_relax()
arch/x86_64/cpu.h|__asm__ volatile("addq %1, %0"|tests/model/arch/cpu.h has its own fz_add_here()
arch/x86_64/cpu.h|__asm__ volatile("lsl %2, %0|tests/model/arch/cpu.h has its own fz_cpu_number()'

failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for file; do
	[ -e "$file" ] || { echo "reach.sh: no object $file" >&2; exit 2; }
done

# Prints the source of an object.
source_of()
{
	suffix=${1%.o}.c
	[ ! -e "$suffix" ] || { echo "$suffix"; return; }
	while :; do
		case $suffix in
		*/*)	suffix=${suffix#*/} ;;
		*)	break ;;
		esac
		[ ! -e "$root/$suffix" ] || { echo "$root/$suffix"; return; }
	done
	echo "reach.sh: $1 has no source" >&2
	return 2
}

# Prints "FILE|LINE|WHAT|TEXT" for each word in a file that is assembly with text in it, or keeps hooks out.
look_at_source()
{
	awk -v file="$1" '
		{ text = text $0 "\n"; line[NR] = $0 }

		# Keeps the newlines of what it leaves out.
		function newlines(part) { gsub(/[^\n]/, "", part); return part }

		function tell(what, at, before, number)
		{
			before = substr(code, 1, at)
			number = gsub(/\n/, "", before) + 1
			print file "|" number "|" what "|" line[number]
		}

		END {
			gsub(/\\\n/, " \n", text)
			# Without comments and #include; a string is empty, or has one character.
			while (match(text, /"([^"\\\n]|\\.)*"|\047([^\047\\\n]|\\.)*\047|\/\*|\/\/|#[ \t]*include[^\n]*/)) {
				token = substr(text, RSTART, RLENGTH)
				code = code substr(text, 1, RSTART - 1)
				text = substr(text, RSTART + RLENGTH)
				first = substr(token, 1, 1)
				if (first == "\"")
					code = code (token == "\"\"" ? "\"\"" : "\"x\"")
				else if (first == "\047")
					code = code "\047x\047"
				else if (token == "/*") {
					end = index(text, "*/")
					code = code " " newlines(end ? substr(text, 1, end) : text)
					text = end ? substr(text, end + 2) : ""
				} else if (token == "//") {
					end = index(text, "\n")
					text = end ? substr(text, end) : ""
				}
			}
			code = code text
			at = 0
			rest = code
			while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
				word = substr(rest, RSTART, RLENGTH)
				place = at + RSTART
				at += RSTART + RLENGTH - 1
				rest = substr(rest, RSTART + RLENGTH)
				if (word ~ /^_*(no_sanitize.*|disable_sanitizer_instrumentation|naked|optimize)$/)
					tell("keeps the hooks out", place)
				if (word !~ /^(asm|__asm|__asm__)$/)
					continue
				after = rest
				sub(/^([ \t\n]|__volatile__|__volatile|volatile|__inline__|__inline|inline|goto)*/, "", after)
				if (after !~ /^\(([ \t\n]|"")*[:)]/)
					tell("is assembly", place)
			}
		}' "$1"
}

# Each once: what headers and sources have, but for what is allowed.
: >"$work/sources"
for file; do
	source_of "$file" >>"$work/sources" || exit 2
done
# arch/x86_64/syscall.h: tests/model/arch/cpu.h has its functions.
find "$root/runtime" "$root/arch/arch.h" "$root/arch/x86_64" "$root/tests/model" \
	-name '*.h' ! -path "$root/arch/x86_64/syscall.h" >>"$work/sources"
sort -u "$work/sources" | tr '\n' '\0' | xargs -0 grep -lE '[^</]asm|^asm|no_sanitize|sanitizer_instr|naked|optimize' \
	>"$work/suspects" || [ $? -le 123 ]
while read -r file; do
	look_at_source "$file"
done <"$work/suspects" >"$work/found"
while IFS='|' read -r file number what text; do
	name=${file#"$root/"}
	permitted=
	while IFS='|' read -r its_file its_text _; do
		case $name:$text in
		"$its_file:"*"$its_text"*)	permitted=1 ;;
		esac
	done <<-END
		$in_sources
	END
	[ -z "$permitted" ] || continue
	echo "$name:$number: $what, which the model does not see: $text"
	failed=1
done <"$work/found"

# shellcheck disable=SC2086 # words
nm -g --defined-only "$@" ${MODEL_OBJECTS:-} | awk 'NF == 3 { print $3 }' >"$work/defined"
# shellcheck disable=SC2086 # words
printf '%s\n' $allowed $own >>"$work/defined"
sort -u -o "$work/defined" "$work/defined"
for object; do
	objdump -d --no-show-raw-insn "$object" | awk -v object="$object" '
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
		/^[0-9a-f]+ <.*>:$/ { place = $2 }
		$1 ~ /^[0-9a-f]+:$/ {
			for (n = 2; n < NF && $n ~ prefix; n++)
				continue
			operands = $0
			sub(/[ \t]*[#<].*/, "", operands)
			sub(/.*[ \t]/, "", operands)
			reaches = $n ~ bad || ($n ~ /^xchg/ && operands !~ /^%[a-z0-9]+,%[a-z0-9]+$/) ||
				($n ~ /^(mov|pop)/ && operands ~ /(^|,)%[fg]s$/)
			if (reaches) {
				print object ": " place " " $n " reaches around the model"
				found = 1
			}
		}
		END { exit found }' || failed=1
	nm -u "$object" | awk '{ print $2 }' | grep -v '^__tsan_' | sort -u | comm -23 - "$work/defined" >"$work/unknown"
	while read -r name; do
		echo "$object: calls $name, which is not modelled"
		failed=1
	done <"$work/unknown"
done
exit $failed
