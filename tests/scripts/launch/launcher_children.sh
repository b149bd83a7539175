#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/launch/launcher_children.sh - programs that a program under fiberize starts, of every libc and kind, run as
# they do natively; those of this glibc get the library, also if a program of another libc starts them.

# Some is expanded by inner shells, and $LIB by the loader:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"
# shellcheck source=tests/lib/class32.inc
. "$(dirname "$0")/../../lib/class32.inc"
stub=$build/libfiberize-preload.so
maps=/proc/self/maps

# ---- the programs

# Starts a program in each way that there is, from a thread, and prints how each ends.
cat >"$work/ways.c" <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *program;

static void ended(const char *way, int status)
{
	printf("%s %d\n", way, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	fflush(stdout);
}

static void executes(const char *way)
{
	char *argv[] = { program, NULL };
	int fd = open(program, O_RDONLY);

	if (strcmp(way, "execve") == 0)
		execve(program, argv, environ);
	else if (strcmp(way, "execvp") == 0)
		execvp(program, argv);
	else if (strcmp(way, "execl") == 0)
		execl(program, program, (char *)NULL);
	else if (strcmp(way, "fexecve") == 0)
		fexecve(fd, argv, environ);
	else if (strcmp(way, "execveat") == 0)
		syscall(SYS_execveat, fd, "", argv, environ, 0x1000 /* AT_EMPTY_PATH */);
	else
		syscall(SYS_execve, program, argv, environ);
	_exit(99);
}

static void *start_all(void *unused)
{
	static const char *const ways[] = { "execve", "execvp", "execl", "fexecve", "execveat", "SYS_execve" };
	char *argv[] = { program, NULL };
	FILE *pipe;
	pid_t pid;
	int status;

	ended("system", system(program));
	pipe = popen(program, "w");
	ended("popen", pclose(pipe));
	if (posix_spawn(&pid, program, NULL, NULL, argv, environ) == 0 && waitpid(pid, &status, 0) == pid)
		ended("posix_spawn", status);
	pid = vfork();
	if (pid == 0) {
		execv(program, argv);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	ended("vfork", status);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		pid = fork();
		if (pid == 0)
			executes(ways[i]);
		waitpid(pid, &status, 0);
		ended(ways[i], status);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		return 2;
	program = argv[1];
	pthread_create(&thread, NULL, start_all, NULL);
	pthread_join(thread, NULL);
	return 0;
}
C
cat >"$work/hello.c" <<'C'
#include <stdio.h>

int main(int argc, char **argv)
{
	printf("hello %d %s\n", argc, argv[argc - 1]);
	fflush(stdout);
	fprintf(stderr, "said\n");
	return 3;
}
C
cat >"$work/runs.c" <<'C'
#include <stdlib.h>

int main(int argc, char **argv)
{
	return argc == 2 && system(argv[1]) == 0 ? 0 : 1;
}
C
must "$CC" -w -pthread "$work/ways.c" -o "$work/ways"

# as_it_is NAME COMMAND...: a program under fiberize starts the command in each way; all is as natively
as_it_is()
{
	local name=$1
	shift
	run sh -c '"$0" "$@"; echo $?' "$@"
	local native=$code$out$err
	run "$fiberize" sh -c '"$0" "$@"; echo $?' "$@"
	same "$name: a child" "$native" "$code$out$err"
	[ $# = 1 ] || return
	run "$work/ways" "$1"
	native=$code$out$err
	like "$name: ways" '*SYS_execve [0-9]*' "$native"
	run "$fiberize" "$work/ways" "$1"
	same "$name: in each way" "$native" "$code$out$err"
}

# built NAME COMMAND...: false, and a skipped case, if the compiler cannot do it here
built()
{
	local name=$1
	shift
	"$@" 2>"$work/compiler" && return
	skip "$name" "cannot be built here: $(head -n 1 "$work/compiler")"
	return 1
}

must "$CC" "$work/hello.c" -o "$work/hello"
as_it_is 'of this glibc' "$work/hello"
for kind in static static-pie; do
	! built $kind "$CC" -$kind "$work/hello.c" -o "$work/hello-$kind" || as_it_is "$kind" "$work/hello-$kind"
done
if command -v musl-gcc >/dev/null; then
	must musl-gcc "$work/hello.c" -o "$work/hello-musl"
	must musl-gcc "$work/runs.c" -o "$work/runs-musl"
	as_it_is musl "$work/hello-musl"
	as_it_is 'musl, with arguments' "$work/hello-musl" 'a  b' ''
	printf '#!%s\n' "$work/hello-musl" >"$work/script"
	chmod 755 "$work/script"
	as_it_is 'a script for a program of musl' "$work/script"
	as_it_is 'musl, through two shells' sh -c "sh -c '$work/hello-musl; echo \$?'; echo \$?"
	as_it_is 'musl, and its child of musl' "$work/runs-musl" "$work/hello-musl || exit 1; exit 5"
	run "$fiberize" sh -c '"$1" "grep -c /libfiberize.so /proc/self/maps"' - "$work/runs-musl"
	like 'the child of a program of musl has the library' '0|[1-9]*|' "$code|$out|$err"
	must musl-gcc -static "$work/hello.c" -o "$work/hello-musl-static"
	as_it_is 'musl, static' "$work/hello-musl-static"
else
	skip musl 'musl-gcc is not installed'
fi
if can_make_32 && [ -e "$build/lib32" ]; then
	program_32 "$work/hello-32"
	as_it_is '32 bits' "$work/hello-32"
	run "$fiberize" sh -c '"$0"; echo $?' "$work/hello-32"
	same '32 bits: ran, and no loader complained' '0|7|' "$code|$out|$err"
else
	skip '32 bits' 'libc6-i386 is not installed'
fi

# ---- the loaders

like 'this loader: the library' '*/libfiberize.so*' "$(LD_PRELOAD=$named_library cat $maps)"
# has_library NAME WANTED COMMAND...: yes or no; it says nothing
has_library()
{
	local name=$1 wanted=$2
	shift 2
	run "$@"
	same "$name" "$wanted: 0 " "$(grep -q /libfiberize.so "$work/out" && echo yes || echo no): $code $err"
}
cat >"$work/old.c" <<'C'
const char *gnu_get_libc_version(void);
const char *gnu_get_libc_version(void) { return "2.28"; }
C
must "$CC" -shared -fPIC "$work/old.c" -o "$work/old.so"
for directory in lib64 lib; do
	other=$build/$directory/libfiberize.so
	[ "$(readlink -f "$other")" = "$(readlink -f "$stub")" ] || continue
	has_library "a loader whose \$LIB is $directory" yes env LD_PRELOAD="$other" cat $maps
	has_library "a loader whose \$LIB is $directory, of an older glibc" no env LD_PRELOAD="$work/old.so:$other" cat $maps
done
must mkdir "$work/away"
must cp "$library" "$work/away/libother.so"
prints 'a library without links: by its path' "$work/away/libother.so" \
	"$fiberize" --library "$work/away/libother.so" printenv LD_PRELOAD
must mkdir "$work/away/lib64" "$work/away/lib" "$work/away/lib/$($CC -print-multiarch)"
for directory in lib64 lib "lib/$($CC -print-multiarch)"; do
	must cp "$library" "$work/away/$directory/libother.so"
done
prints 'a library with other files there: by its path' "$work/away/libother.so" \
	"$fiberize" --library "$work/away/libother.so" printenv LD_PRELOAD
for directory in lib64 lib "lib/$($CC -print-multiarch)"; do
	must ln -sfr "$work/away/libother.so" "$work/away/$directory/libother.so"
done
prints 'a library with links: by ${LIB}' "$work/away/"'${LIB}/libother.so' \
	"$fiberize" --library "$work/away/libother.so" printenv LD_PRELOAD
has_library 'a library with links: loaded' no "$fiberize" --library "$work/away/libother.so" cat $maps
has 'a library with links: its name' "$work/out" '/away/libother.so$'

# ---- programs that expand the variable once more

cat >"$work/makefile" <<'MAKE'
look = grep -c "r-xp.*/libfiberize" /proc/self/maps
all:
	@$(look)
	@LD_PRELOAD="$(LD_PRELOAD)" $(look)
	@LD_PRELOAD="$$LD_PRELOAD" $(look)
	@LD_PRELOAD="$(LD_PRELOAD):libm.so.6" $(look)
MAKE
printf 'export LD_PRELOAD += :libm.so.6\n' | cat - "$work/makefile" >"$work/makefile.export"
for file in makefile makefile.export; do
	# Not a part of the make that runs us.
	run env -u MAKEFLAGS -u MAKELEVEL "$fiberize" make -s -f "$work/$file"
	same "make, $file: its children have the library" "0|1${newline}1${newline}1${newline}1|" "$code|$out|$err"
done
look='grep -c "r-xp.*/libfiberize" /proc/self/maps'
run "$fiberize" sh -c 'sh -c "LD_PRELOAD=$LD_PRELOAD $0"' "$look"
same 'a shell that expands it in a command: the library' '0|1|' "$code|$out|$err"
run "$fiberize" sh -c "sh -uc 'LD_PRELOAD=\$LD_PRELOAD \$0' true"
same 'a shell with -u, which expands it once' '0||' "$code|$out|$err"

# ---- what children see, and --no-children

look='grep -c "r-xp.*/libfiberize" /proc/self/maps; printf "<%s>" "${LD_PRELOAD-none}"'
run "$fiberize" sh -c "$look"
same 'a child: the library, by its name in LD_PRELOAD' "1$newline<$named_library>" "$out"
run "$fiberize" -p 2 sh -c "sh -c '$look'"
same 'a grandchild, too' "1$newline<$named_library>" "$out"
run env LD_PRELOAD=libm.so.6 "$fiberize" sh -c "$look"
same 'a child: others behind it' "1$newline<$named_library:libm.so.6>" "$out"
run "$fiberize" --no-children sh -c "$look"
same '--no-children' "0$newline<none>" "$out"
run env LD_PRELOAD=libm.so.6 "$fiberize" --no-children sh -c "$look"
same '--no-children: others stay' "0$newline<libm.so.6>" "$out"
run "$fiberize" --library "$work/away/libother.so" --no-children sh -c "${look/fiberize/other}"
same '--no-children: a library of another name' "0$newline<none>" "$out"
run env LD_PRELOAD="$stub" "$fiberize" sh -c "$look"
same 'the launcher takes the place of the stub' "1$newline<$named_library>" "$out"
run env LD_PRELOAD="$stub" sh -c "sh -c '$look'"
same 'the stub: children have it, and the library' "2$newline<$stub>" "$out"
for list in "$stub" "libm.so.6:$stub" "$stub libm.so.6" "$build/"'${LIB}/libfiberize.so:libm.so.6'; do
	left=$(tr ' ' '\n' <<<"${list//:/ }" | grep -v fiberize)
	run env FIBERIZE_CHILDREN=0 LD_PRELOAD="$list" sh -c "$look"
	same "FIBERIZE_CHILDREN=0, LD_PRELOAD=$list" "0$newline<${left:-none}>" "$out"
done

finish
