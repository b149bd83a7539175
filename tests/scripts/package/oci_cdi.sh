#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/package/oci_cdi.sh - the CDI file: that it keeps the rules of the Container Device Interface, and that podman
# gives the library by it to a program of another root, and nothing without it.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/container.inc
. "$(dirname "$0")/../../lib/container.inc"
need jq podman crun unshare

# ---- the file

must env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" install B="$build" DESTDIR="$work/tree" PREFIX=/usr
installed=$work/tree/usr/share/doc/fiberize/examples/cdi.json
same 'installed: where the library is' /usr/lib/fiberize \
	"$(jq -r '.devices[].containerEdits.mounts[].hostPath' "$installed")"
# The rules of the specification's text: fields and their types, the form of the names, no mount without both paths.
rules='
	def only(names): (keys - names) == [];
	only(["cdiVersion", "kind", "devices", "containerEdits", "annotations"]) and
	(.cdiVersion | test("^(0|[1-9][0-9]*)(\\.[0-9]+){2}$")) and
	(.kind | test("^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]/[A-Za-z][A-Za-z0-9_-]*[A-Za-z0-9]$")) and
	(.devices | length > 0 and ([.[].name] | unique | length) == length) and
	all(.devices[]; only(["name", "containerEdits", "annotations"]) and
		(.name | test("^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$")) and (.containerEdits | length > 0 and
		only(["env", "mounts", "deviceNodes", "hooks"]) and
		all(.env[]?; test("^[A-Za-z_][A-Za-z0-9_]*=")) and
		all(.mounts[]?; only(["hostPath", "containerPath", "options", "type"]) and
			(.hostPath | startswith("/")) and (.containerPath | startswith("/")) and all(.options[]?; type == "string"))))'
same 'the rules of CDI' true "$(jq "$rules" "$installed")"
for change in '.kind = "fiberize"' '.devices = []' '.devices[0].name = "a b"' '.devices[0].containerEdits.mount = []' \
	'del(.devices[0].containerEdits.mounts[0].hostPath)' '.devices[0].containerEdits.env = ["LD_PRELOAD"]'; do
	yes "the rules find $change" [ "$(jq "$change" "$installed" | jq "$rules" 2>/dev/null)" != true ]
done

# ---- podman

rootfs=$work/rootfs
mkdir -p "$rootfs"/{bin,dev,proc,sys,etc,run,tmp}
must cp "$helpers/busy" "$rootfs/bin/cdi-server"
for file in $(ldd "$helpers/busy" | grep -o '/[^ ]*'); do
	mkdir -p "$rootfs/${file%/*}"
	cp "$file" "$rootfs/$file"
done
before=$(cd "$rootfs" && find . -type f -exec sha256sum {} + | sort)

# podman 4.3 reads /etc/cdi, which is our own in this namespace; nothing of the machine's storage is touched.
# The limits that it would raise may be out of its reach.
mkdir "$work/cdi"
jq --arg lib "$work/tree/usr/lib/fiberize" '.devices[].containerEdits.mounts[].hostPath = $lib' "$installed" \
	>"$work/cdi/fiberize.json"
cat >"$work/enter" <<'ENTER'
work=$1 seccomp=$2
shift 2
mount --make-rprivate / && mkdir -p /etc/cdi && mount --bind "$work/cdi" /etc/cdi || exit
# crun wants one hierarchy of control groups.
umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit
exec podman --root "$work/storage" --runroot "$work/runroot" --storage-driver vfs --cgroup-manager cgroupfs \
	--runtime crun run --rm --network none --cgroups disabled --ulimit nofile=1024:1024 \
	--ulimit nproc=4096:4096 --security-opt "seccomp=$seccomp" "$@" --rootfs "$work/rootfs" /bin/cdi-server idle
ENTER

stop()
{
	[ -z "$child" ] || kill -KILL "$child"
	kill "$pid"
}
at_exit stop

found()
{
	child=$(grep -lsx cdi-server /proc/[0-9]*/comm | tr -dc '0-9\n' | while read -r one; do
		[ "/proc/$one/root/bin/cdi-server" -ef "$rootfs/bin/cdi-server" ] && echo "$one" && break
	done)
	[ -n "$child" ] || ! kill -0 "$pid" 2>/dev/null
}

# contained SECCOMP OPTION...: runs the program; sets row to what "fiberize status" says of it, variables to its
# LD_PRELOAD, ended to what podman said if it did not start
contained()
{
	ended='' row='' variables=''
	launch unshare --mount --cgroup sh "$work/enter" "$work" "$@"
	must eventually found
	if [ -z "$child" ]; then
		ended=$(tail -n 1 "$work/complaints")
		return
	fi
	must eventually test -s "$work/said"
	variables=$(tr '\0' '\n' <"/proc/$child/environ" | grep '^LD_PRELOAD=')
	must eventually seen
	kill -KILL "$child"
	wait "$pid" 2>/dev/null
	child=
}

child='' pid=''
[ -e /etc/cdi ] || at_exit rmdir /etc/cdi
contained unconfined
if [ -n "$ended" ]; then
	skip 'podman' "it cannot run a container here: $ended"
	finish
	exit
fi
same 'without the device: natively' ':' "$variables:$row"
run "$fiberize" check --json "$helpers/busy"
contained unconfined --device fiberize/library=all
like 'the device' "*libfiberize*:cdi-server $(jq -r .backend <<<"$out") 5" "$variables:$row"
# The default of Debian's golang-github-containers-common does not list io_uring.
default=/usr/share/containers/seccomp.json
if [ -e $default ]; then
	contained $default --device fiberize/library=all
	like "the device, podman's default seccomp profile" '*:cdi-server epoll 5' "$variables:$row"
	jq --slurpfile one "$root/scripts/package/seccomp.json" '.syscalls += $one' $default >"$work/with.json"
	contained "$work/with.json" --device fiberize/library=all
	like 'the device, that profile and seccomp.json' "*:cdi-server $(jq -r .backend <<<"$out") 5" "$variables:$row"
fi
contained unconfined --device fiberize/library=none
like 'no such device: podman says so' '*fiberize/library=none*' "$ended"
same 'the root is unchanged' '' "$(diff <(echo "$before") <(cd "$rootfs" && find . -type f -exec sha256sum {} + | sort) |
	grep -v '/etc/\|/run/' | grep '^[<>]')"
finish
