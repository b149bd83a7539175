#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/inspect/inspect_files.sh - "fiberize bt", ps and trace of a process whose files have other names here, or were
# replaced: a mount namespace in which other files have these names, chroot, an upgrade; as root, who may open the
# mapped files themselves, and as another user.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/target.inc
. "$(dirname "$0")/../../lib/target.inc"
need jq unshare setpriv chroot strip objcopy mkfifo
if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
	skip 'files of a container' 'not permitted here: it needs CAP_SYS_ADMIN'
	finish
fi
chmod 755 "$work"
nobody=(setpriv --reuid 65534 --clear-groups)
must "${nobody[@]}" true

# another FILE NAME: another file gets the name, as by an upgrade
another()
{
	must cp "$1" "$work/new"
	must mv "$work/new" "$2"
}

# hidden PROGRAM OTHER [COMMAND...]: PROGRAM and the library run, by COMMAND, in a mount namespace; there they have the names that
# OTHER and another library have here
hidden()
{
	local program=$1 other=$2
	shift 2
	rm -rf "$work/there" "$work/place"
	must mkdir "$work/there" "$work/place"
	must cp "$program" "$work/there/program"
	must cp "$library" "$work/there/libfiberize.so"
	another "$other" "$work/place/program"
	another "$helpers/changes.so" "$work/place/libfiberize.so"
	# shellcheck disable=SC2016 # the shell in the namespace expands them
	start unshare --mount sh -c 'mount --bind "$0/there" "$0/place" && exec "$@"' "$work" "$@" \
		"$fiberize" --library "$work/place/libfiberize.so" "$work/place/program"
}

# Waits, in the words of bt and ps, and frames of the program and of the library that only the right files give.
right='thread * "awaits", waits: condition variable 0x* (cond)*switch_to at *preload/sync/cond.c:*awaits at *waiters.c:*start_thread *'

addresses()
{
	sed -n 's/^  #[0-9]*  *\(0x[0-9a-f]*\) .*/\1/p' <<<"$out"
}

# sees NAME [COMMAND...]: by COMMAND, bt and ps have all names
sees()
{
	local name=$1
	shift
	run "$@" "$fiberize" bt "$pid" "$tid"
	like "$name: bt" "$right" "$out"
	same "$name: bt says nothing" '' "$err"
	run "$@" "$fiberize" ps --name awaits "$pid"
	like "$name: ps" '*condition variable 0x* (cond)*' "$out"
}

awaits()
{
	must eventually settled
	tid=$(jq '.threads[] | select(.name == "awaits") | .tid' <<<"$out")
}

# ---- a mount namespace

hidden "$helpers/waiters" "$helpers/traced" "${nobody[@]}"
awaits
sees 'another mount namespace' "${nobody[@]}"
sees 'another mount namespace, root'
frames=$(addresses)
# What is mapped is gone in the namespace, too.
another "$helpers/traced" "$work/there/program"
another "$helpers/changes.so" "$work/there/libfiberize.so"
run "${nobody[@]}" "$fiberize" bt "$pid" "$tid"
same 'files are replaced: the same frames' "$(run "$fiberize" bt "$pid" "$tid" && addresses)" "$(addresses)"
like 'files are replaced: exported names' "thread $tid \"awaits\"*[0-9a-f] pthread_cond_wait in *start_thread *" "$out"
same 'files are replaced: no name of another file' '' "$(grep -e traced -e changes <<<"$out")"
same 'files are replaced: it is said, of each' 2 "$(grep -c '^fiberize: .*: its file is gone, or another one by now, or cannot be opened: only exported' <<<"$err")"
same 'files are replaced: exit status' 0 "$code"
# Root may open the mapped files.
if [ -r "/proc/$pid/map_files/$(sed -n 's/^0*\([0-9a-f]*\)-0*\([0-9a-f]*\) .*/\1-\2/p; q' "/proc/$pid/maps")" ]; then
	sees 'files are replaced, root'
	same 'files are replaced, root: frames' "$(grep -c . <<<"$frames")" "$(addresses | grep -c .)"
else
	skip 'files are replaced, root' 'the kernel does not let it open mapped files'
fi
yes 'the process goes on' settled
stop

# ---- debug information

# What libdwfl knows a program by is gone: its names, and its build id.
must strip --strip-all --remove-section=.note.gnu.build-id -o "$work/stripped" "$helpers/waiters"

# unnamed NAME [COMMAND...]: by COMMAND, bt has the frames of the program, without names
unnamed()
{
	local name=$1
	shift
	run "$@" "$fiberize" bt "$pid" "$tid"
	like "$name: bt" "0 thread $tid \"awaits\"*pthread_cond_wait *[0-9a-f] \?\? in $work/*start_thread *" "$code $out"
	same "$name: no name is of another file" '' "$(grep -e 'awaits at' -e waiters.c <<<"$out")"
	run "$@" "$fiberize" ps --name awaits "$pid"
	like "$name: ps" '0 *condition variable 0x*' "$code $out"
	same "$name: ps has no name of another file" '' "$(grep '(cond)' <<<"$out")"
}

# A similar file has the name here, and names.
must objcopy --remove-section=.note.gnu.build-id "$helpers/waiters" "$work/similar"
hidden "$work/stripped" "$work/similar" "${nobody[@]}"
for name in program.debug .debug/program .debug/program.debug; do
	must mkdir -p "$work/place/.debug"
	must cp "$work/similar" "$work/place/$name"
done
awaits
unnamed 'stripped, and a similar file here' "${nobody[@]}"
unnamed 'stripped, and a similar file here, root'
stop

# FIFOs have the names here that libdwfl would look for.
hidden "$work/stripped" "$helpers/traced" "${nobody[@]}"
for name in program program.debug '.debug/program' '.debug/program.debug' 'program (deleted)' 'program (deleted).debug'; do
	must mkdir -p "$work/place/.debug"
	rm -f "$work/place/$name"
	must mkfifo "$work/place/$name"
done
awaits
unnamed 'stripped, and FIFOs here' "${nobody[@]}"
unnamed 'stripped, and FIFOs here, root'
must rm "$work/there/program"
unnamed 'stripped and removed, and FIFOs here' "${nobody[@]}"
unnamed 'stripped and removed, and FIFOs here, root'
stop

# By .gnu_debuglink: only the file that has the CRC.
must objcopy --only-keep-debug "$work/similar" "$work/linked.debug"
must cp "$work/stripped" "$work/linked"
(cd "$work" && must objcopy --add-gnu-debuglink=linked.debug linked) || exit 1
start "$fiberize" "$work/linked"
awaits
sees 'debug link'
must mkdir "$work/.debug"
must mv "$work/linked.debug" "$work/.debug"
sees 'debug link, in .debug'
must cp "$work/similar" "$work/linked.debug"
sees 'debug link, in .debug, and another file of the name'
echo >>"$work/.debug/linked.debug"
unnamed 'debug link, and files with another CRC'
rm "$work/linked.debug"
must mkfifo "$work/linked.debug"
unnamed 'debug link, and a FIFO'
stop

hidden "$helpers/traced" "$helpers/waiters"
run "$fiberize" trace --summary --seconds 1 "$pid"
like 'another mount namespace: trace' '* usleep *user space * sleeps at traced.c:*' "$out"
stop
rm -f /tmp/traced.*

# ---- another root directory

build_jail()
{
	must mkdir "$work/jail"
	must cp "$library" "$helpers/waiters" "$(command -v env)" "$work/jail"
	while read -r file; do
		must mkdir -p "$work/jail$(dirname "$file")"
		must cp -L "$file" "$work/jail$file"
	done < <(ldd "$helpers/waiters" "$library" "$(command -v env)" | grep -o '/[^ ]*lib[^ ]*\.so[^ ]*' | grep -v ':$' | sort -u)
}

build_jail
jail=(chroot --userspec=65534:0 "$work/jail" /env LD_PRELOAD=/libfiberize.so /waiters)
start "${jail[@]}"
awaits
sees 'chroot' "${nobody[@]}"
stop
start unshare --mount "${jail[@]}"
awaits
sees 'chroot in another mount namespace' "${nobody[@]}"
stop

# ---- all files are removed

start "${jail[@]}"
awaits
run "$fiberize" bt "$pid" "$tid"
frames=$(addresses)
must rm -r "$work/jail"
run "${nobody[@]}" "$fiberize" bt "$pid" "$tid"
like 'all files are removed: bt' "0 thread $tid \"awaits\"*[0-9a-f] pthread_cond_wait in *" "$code $out"
same 'all files are removed: the same frames' "$(sort -u <<<"$frames")" "$(addresses | sort -u)"
yes 'all files are removed: it is said' grep -q '/waiters (deleted): its file is gone' "$work/err"
run "$fiberize" bt "$pid" "$tid"
same 'all files are removed, root: the same frames' "$(sort -u <<<"$frames")" "$(addresses | sort -u)"
yes 'the process goes on' settled
stop
finish
