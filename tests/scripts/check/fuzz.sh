#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/check/fuzz.sh [FILES] - what "fiberize check" says of damaged programs: FILES
# (default 2000) of them, made by zzuf(1) from a few small ones, each with its
# own seed.  Fails on a crash, a hang, an answer without a code or a message.

# In memory if there is such a place: each file lives for a moment.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
files=${1-2000}
case $files in
*[!0-9]* | '')	echo "fuzz.sh: not a number: $files"; exit 2 ;;
esac
need zzuf
fuzz=$helpers/fuzz
mkdir "$work/seeds" "$work/batch"

# ---- small programs of each kind

cat >"$work/library.c" <<'END'
#include <unistd.h>
#include <stdio.h>
int one_v1(void) { char c; return (int)read(0, &c, 1); }
int one_v2(void) { return puts("two"); }
__asm__(".symver one_v1, one@ONE_1");
__asm__(".symver one_v2, one@@ONE_2");
END
printf 'ONE_1 { global: one; local: *; };\nONE_2 { } ONE_1;\n' >"$work/library.map"
cat >"$work/main.c" <<'END'
#include <pthread.h>
#include <unistd.h>
int one(void);
static void *run(void *arg) { char c; return read(0, &c, 1) < 0 ? arg : 0; }
int main(void) { pthread_t t; return pthread_create(&t, 0, run, 0) + one(); }
END
cat >"$work/bare.c" <<'END'
__attribute__((section(".note.go.buildid"))) static const struct {
	unsigned namesz, descsz, type; char name[4], id[4];
} note = { 4, 4, 4, "Go", "abc" };
const void *keep = &note;
void _start(void) { __asm__ volatile("movl $60, %eax\n\tsyscall"); }
END
must "$CC" -shared -fPIC -Wl,-soname,libone.so,--version-script="$work/library.map" \
	-o "$work/libone.so" "$work/library.c"
must "$CC" -o "$work/seeds/dynamic" "$work/main.c" -L"$work" -lone -Wl,-rpath,"$work"
must "$CC" -o "$work/seeds/sysv-hash" "$work/main.c" -L"$work" -lone -Wl,--hash-style=sysv \
	-Wl,-rpath,"\$ORIGIN/../\${LIB}:$work" -Wl,--disable-new-dtags
must "$CC" -nostdlib -static -o "$work/seeds/bare" "$work/bare.c"
must "$CC" -nostdlib -static-pie -o "$work/seeds/static-pie" "$work/bare.c"
cp "$work/libone.so" "$work/seeds/library"
strip -o "$work/seeds/stripped" "$work/seeds/dynamic"
# shellcheck disable=SC2016
printf '#!/usr/bin/env -S A=1 sh\necho $0\n' >"$work/seeds/script"
printf '#!/bin/sh\nif /bin/true; then\n\texec -a x env A=1 "/bin/ls" >&2\nfi\nexec cat\n' \
	>"$work/seeds/wrapper"
printf '%s\n' '#include <dlfcn.h>' '#include <unistd.h>' 'int main(int argc, char **argv) {' \
	'return dlopen("libone.so", 1) && dlopen("%s/libm.so.6", argc) && execv("/bin/ls", argv); }' \
	>"$work/loads.c"
must "$CC" -o "$work/seeds/loads" "$work/loads.c"

cat >"$work/seeds/profile" <<'END'
# a profile
[pro*]
processors = 3
stack-size = 64k
without = fsgsbase,rwf-nowait
[other] 
native-threads = @libx.so,name?
backend = epoll
END

# ---- damage: the ELF header, the program headers, all of it

seeds=("$work"/seeds/*)
ranges=(0-64 64-800 64-4096 '')
made=0
while [ "$made" -lt "$files" ]; do
	batch=()
	while [ "$made" -lt "$files" ] && [ ${#batch[@]} -lt 500 ]; do
		seed=${seeds[made % ${#seeds[@]}]}
		range=${ranges[made / ${#seeds[@]} % ${#ranges[@]}]}
		file=$work/batch/${seed##*/}.$made
		zzuf -s "$made" -r 0.0003:0.03 ${range:+-b "$range"} <"$seed" >"$file"
		batch+=("$file")
		made=$((made + 1))
	done
	limited "$fuzz" "${batch[@]}" >>"$work/codes" 2>"$work/errors" || {
		status=$?
		cat "$work/errors"
		# What it died of is kept.
		file=$(sed -n 's/^fuzz: [a-z]*: \(\/[^ ]*\).*/\1/p' "$work/errors" | head -n 1)
		mkdir -p "$build/tests/failures"
		[ -z "$file" ] || cp "$file" "$build/tests/failures/"
		die "exit status $status within the first $made files"
	}
	rm -f "${batch[@]}"
done
pass "$files damaged files"

# That the damage is neither none nor total.
awk '{ n[$1] += $2 } END { for (c in n) print c, n[c] }' "$work/codes" | sort -n >"$work/sums"
for code in 0 116 126; do
	has "some have code $code" "$work/sums" "^$code "
done
finish
